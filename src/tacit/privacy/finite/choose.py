"""Which frequency oracle to use, decided by formula and not by trial."""

from __future__ import annotations

from tacit.privacy.finite.oracle import Oracle, domain_size
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection
from tacit.privacy.finite.unary import UnaryEncoding
from tacit.validate import number


def best_oracle(epsilon: float, domain: int, share: float | None = None) -> Oracle:
    """The oracle of least predicted variance per report at pure epsilon.

    Args:
        epsilon: what one report may cost.
        domain: number of cells D.
        share: share of the users in the cell that matters, 1 / D by default: users inside a cell
            and outside it contribute different variance.
    """
    cells = domain_size(domain)
    at = 1.0 / cells if share is None else number(share, "share", low=0.0, high=1.0)
    candidates: tuple[Oracle, ...] = (
        KaryResponse.calibrate(epsilon, cells),
        SubsetSelection.calibrate(epsilon, cells),
        UnaryEncoding.calibrate(epsilon, cells),
        UnaryEncoding.calibrate(epsilon, cells, symmetric=True),
    )
    return min(candidates, key=lambda oracle: oracle.variance(at))
