"""Constants as the papers have them: what ``calibration="paper"`` uses.

Nothing here is a recommendation. The noise need not give what a paper claims for it: privatizers
work the true guarantee out and say it. The constants of private LSVI are in
``lsvi_calibration.py``.
"""

from __future__ import annotations

import math
from typing import Literal

# Tables under local privacy (docs/papers/tabular_ldp.md#randomizers).


def tabular_laplace(horizon: int, epsilon: float, tables: int = 3) -> float:
    """The scale 2 m H / eps on m tables: 6H / eps of LDP-OBI, 8H / eps of LDP-PSRL.

    Their L1 sensitivities are 6H - 2 and 8H - 2 (docs/papers/tabular_ldp.md#sensitivity).
    """
    return 2 * tables * horizon / epsilon


def tabular_gaussian(delta: float, constant: Literal["proof", "proposition"]) -> float:
    """LDP-OBI: c of sigma = c H / eps, c^2 = 4 ln(24 / delta) in the proof and Proposition 11.

    Proposition 10 has c = 4 ln(24 / delta). The proof's constant does not give its claim
    (docs/papers/tabular_ldp.md#e1 to E3).
    """
    square = 4 * math.log(24 / delta)
    return math.sqrt(square) if constant == "proof" else square


def tabular_bit(horizon: int, epsilon: float, tables: int = 3) -> float:
    """What one randomized bit costs, eps / (6H) with three tables; a user moves 6H - 2 bits."""
    return epsilon / (2 * tables * horizon)


def shuffle_claim(horizon: int, users: int, epsilon: float, delta: float) -> float:
    """The central epsilon that equation (113) states for M_sh after that many users, if any.

    Every bit passes with p = 2 / (e^eps + 1). The claim has no ground
    (docs/papers/tabular_ldp.md#e12, docs/papers/tabular_ldp.md#e13); infinite where even its own
    condition on p does not hold.
    """
    p, n = 2.0 / (math.exp(epsilon) + 1.0), users * horizon
    rest = p - math.sqrt(2 * p * math.log(2 / delta) / n)
    if p < 14 / n * math.log(4 / delta) or rest <= 0:
        return math.inf
    return 32 * math.log(4 / delta) / math.sqrt(n) / math.sqrt(rest) * (1 - rest)


# Tables under joint privacy.


def tabular_joint(horizon: int, epsilon: float, levels: int) -> float:
    """PUCB and what came after it: the scale 3 H m / eps on the nodes of a tree of m levels.

    A user is in 3H counters, each of which gets eps / (3H); a user who is replaced by another moves
    6H - 2 of them (docs/papers/pucb.md#e1).
    """
    return 3 * horizon * levels / epsilon


# Linear mixtures and linear control.


def mixture_local(horizon: int, epsilon: float, delta: float, *, small_values: bool) -> float:
    """LDP-UCRL-VTR: sigma = 4 H^3 sqrt(2 ln(2.5 H / delta)) / eps; H for H^3 if values are up to 1.

    See docs/papers/mixture_ldp.md#published-noise.
    """
    root = math.sqrt(2 * math.log(2.5 * horizon / delta))
    return 4 * horizon ** (1 if small_values else 3) * root / epsilon


def mixture_joint(horizon: int, epsilon: float, delta: float, levels: int) -> float:
    """Private-LinOpt: sigma_x = (H Delta_x / eps) sqrt(32 m ln(4H / delta)) per node, Delta_x = 1.

    See docs/papers/mixture_jdp.md#noise-scales.
    """
    return horizon / epsilon * math.sqrt(32 * levels * math.log(4 * horizon / delta))


def control_joint(
    horizon: int, gain: float, epsilon: float, delta: float, levels: int
) -> tuple[float, float]:
    """Private-OFU-RL: sigma_i = Delta_i sqrt(8 m ln(2/delta)) / eps per node of two trees.

    Delta_1 = H (1+gamma)^2 and Delta_2 = H (1+gamma) are norms, not differences
    (docs/papers/lq_jdp.md#e2 and #e3).
    """
    root = math.sqrt(8 * math.log(2 / delta)) / epsilon
    first, second = horizon * (1 + gain) ** 2, horizon * (1 + gain)
    return first * math.sqrt(levels) * root, second * math.sqrt(levels) * root
