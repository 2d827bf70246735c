"""Local randomizers with finitely many outputs: exact privacy, exact noise, exact samplers."""

from tacit.privacy.finite.bits import UnaryEncoding
from tacit.privacy.finite.oracle import Oracle, domain_size
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection

FAMILIES: tuple[type[Oracle], ...] = (KaryResponse, SubsetSelection, UnaryEncoding)
"""Frequency oracles to choose from; the first of equally good ones is taken."""


def best_oracle(epsilon: float, domain: int) -> Oracle:
    """The oracle of least predicted variance per report at pure epsilon, by formula.

    Users inside a cell and outside it contribute different variance: one of D is inside.

    Args:
        epsilon: what one report may cost.
        domain: number of cells D.
    """
    cells = domain_size(domain)
    candidates = [oracle for family in FAMILIES for oracle in family.candidates(epsilon, cells)]
    return min(candidates, key=lambda oracle: oracle.variance(1.0 / cells))
