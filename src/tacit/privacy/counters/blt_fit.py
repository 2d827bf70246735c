"""Coefficients of buffered linear Toeplitz counters: how the shipped table was made.

A counter with d buffers is C(x) = prod_j (1 - a_j x) / (1 - t_j x). At equal privacy the worst
error of a prefix is |c| |b|, the norms of the first n coefficients of C(x) and of
B(x) = 1 / ((1 - x) C(x)) (docs/papers/mixture_jdp.md#counter-recipes). Both are sums of d or d + 1
geometric series, so the product has a closed form whose cost does not grow with n.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array
from tacit.privacy.counters.blt import residues
from tacit.validate import integer

_SPANS = ((0.2, 2.0), (1.0, 1.0), (1.0, 6.0), (3.0, 2.0))
"""Where searches start: least gap times n, largest odds of a gap."""


def fit(length: int, buffers: int) -> Array:
    """Gaps (1 - t_1, 1 - a_1, 1 - t_2, ...), increasing, of the least worst error found.

    A local search from a few fixed starts, hence deterministic; seconds for four buffers.
    """
    from scipy.optimize import minimize

    length = integer(length, "length", low=2)
    buffers = integer(buffers, "buffers", low=1, high=8)

    def objective(steps: Array) -> float:
        return float(np.log(worst_error(_gaps(steps), length)))

    results = []
    for least, largest in _SPANS:
        odds = np.geomspace(least / length, largest, 2 * buffers)
        results.append(
            minimize(
                objective,
                np.log(np.diff(odds, prepend=0.0)),
                method="L-BFGS-B",
                bounds=[(-25.0, 6.0)] * (2 * buffers),
                options={"maxiter": 3000, "maxfun": 10**6, "ftol": 1e-14, "gtol": 1e-9},
            )
        )
    return _gaps(min(results, key=lambda result: float(result.fun)).x)


def worst_error(gaps: Array, length: int) -> float:
    """Sensitivity times worst error std at unit noise and unit change: |c| |b|, in closed form."""
    decays, zeros = gaps[0::2], gaps[1::2]
    poles = np.concatenate([[0.0], zeros])
    # Differences of numbers near 1 are taken between their gaps, where they are exact.
    scales, weights = residues(-decays, -zeros), residues(-poles, -decays)
    c_squared = 1.0 + scales @ _geometric(decays, length - 1) @ scales
    b_squared = weights @ _geometric(poles, length) @ weights
    return float(np.sqrt(c_squared * b_squared))


def _gaps(steps: Array) -> Array:
    """Increasing numbers in (0, 1) from unconstrained ones: odds are cumulative sums."""
    odds = np.cumsum(np.exp(steps))
    return odds / (1.0 + odds)


def _geometric(gaps: Array, count: int) -> Array:
    """Matrix of sum_{k < count} (p_i p_j)^k."""
    logs = np.log1p(-gaps)
    together = logs[:, None] + logs[None, :]
    endless = together == 0.0
    safe = np.where(endless, -1.0, together)
    sums: Array = np.where(endless, float(count), np.expm1(count * safe) / np.expm1(safe))
    return sums
