"""Local randomizers with finitely many outputs: exact privacy, exact noise, exact samplers."""

from tacit.privacy.finite.bits import UnaryEncoding
from tacit.privacy.finite.oracle import Oracle, domain_size
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection
from tacit.validate import number

FAMILIES: tuple[type[Oracle], ...] = (KaryResponse, SubsetSelection, UnaryEncoding)
"""Frequency oracles to choose from; the first of equally good ones is taken."""


def best_oracle(epsilon: float, domain: int, share: float | None = None) -> Oracle:
    """The oracle of least predicted variance per report at pure epsilon, by formula.

    Args:
        epsilon: what one report may cost.
        domain: number of cells D.
        share: share of the users in the cell that matters, 1 / D by default: users inside a cell
            and outside it contribute different variance.
    """
    cells = domain_size(domain)
    at = 1.0 / cells if share is None else number(share, "share", low=0.0, high=1.0)
    candidates = [oracle for family in FAMILIES for oracle in family.candidates(epsilon, cells)]
    return min(candidates, key=lambda oracle: oracle.variance(at))
