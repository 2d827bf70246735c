"""The published constants of private LSVI, as printed or coded.

They are used by ``calibration="paper"`` and are no recommendation: at any size that can be run the
bonus exceeds the largest possible value by orders of magnitude (docs/papers/linear_jdp.md#e17).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.planners.lsvi_plus import PlusBonus


@dataclass(frozen=True)
class Sizes:
    """d, H, K and the failure probability."""

    d: int
    H: int
    K: int
    beta: float


def zcdp(epsilon: float, delta: float) -> float:
    """Rho = (sqrt(L + eps) - sqrt L)^2, L = log(1 / delta): the papers' conversion."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


@dataclass(frozen=True)
class PlusConstants:
    """DP-LSVI-UCB++: ridge lam~, noise bound L and the bonuses, O(.) constants 1."""

    ridge: float
    noise_bound: float
    bonus: PlusBonus


def plus_constants(sizes: Sizes, rho: float) -> PlusConstants:
    """lam~, L, beta^, beta-bar and beta of docs/papers/linear_jdp.md#published-constants."""
    d, H, K, p = sizes.d, sizes.H, sizes.K, sizes.beta
    ridge = math.sqrt(8 * d * H * K / rho) * (2 + (math.log(5 * H / p) / d) ** (2 / 3))
    bound = 4 * H * math.sqrt(d * H * K / rho * math.log(10 * d * K * H / p))
    inside = H * K**4 * bound**2 * d / (p * ridge)
    log = math.log(inside)
    return PlusConstants(
        ridge,
        bound,
        PlusBonus(
            hat=H * bound * math.sqrt(d * ridge) + math.sqrt(d) * math.log1p(inside),
            check=H * bound * math.sqrt(d * ridge) + math.sqrt(d**3) * H * log,
            square=H**2 * bound**2 * math.sqrt(d * ridge) + math.sqrt(d**3) * H**2 * log,
            theory=True,
        ),
    )


@dataclass(frozen=True)
class BatchConstants:
    """Luyo, constants of the public code (docs/papers/linear_jdp.md#luyo)."""

    batches: int
    gram_std: float
    target_std: float
    ridge: float
    bonus: float


def batch_count(sizes: Sizes, epsilon: float) -> int:
    """B = ceil((K eps)^(2/5) d^(3/5) H^(1/5)), at most one batch per user."""
    wanted = (sizes.K * epsilon) ** 0.4 * sizes.d**0.6 * sizes.H**0.2
    return int(min(math.ceil(wanted), sizes.K))


def batch_constants(sizes: Sizes, epsilon: float, delta: float) -> BatchConstants:
    """B, sigma_Lam, sigma_u, the shift lambda + c_K + Y and the bonus factor."""
    d, H, K, p = sizes.d, sizes.H, sizes.K, sizes.beta
    B = batch_count(sizes, epsilon)
    B0 = math.ceil(math.log2(B) + 1)
    log = math.log2(32 * H * B0 * B / delta)
    gram = 128 / epsilon * math.sqrt(B * H * B0) * log
    target = 128 / (epsilon * H) * math.sqrt(H * B) * log
    Y = gram * B0 * (4 * math.sqrt(d) + 2 * math.log(6 * K * H / p))
    ridge = d + d * Y
    C = target * (math.sqrt(d) + 2 * math.sqrt(math.log(6 * K * H * d / p)))
    U = max(1.0, (2 * H * math.sqrt(d * K) + C) / ridge)
    chi = 242 * 18 * K**2 * d * U * H / p
    return BatchConstants(B, gram, target, ridge + Y, 24 * H * math.sqrt(d * ridge) * math.log(chi))


@dataclass(frozen=True)
class AdaptiveConstants:
    """Ngo, constants of the public code; N_max as in the paper (docs/papers/linear_jdp.md#ngo)."""

    switches: int
    gram_std: float
    target_std: float
    ridge: float
    bonus: float


def adaptive_constants(sizes: Sizes, rho: float, levels: int) -> AdaptiveConstants:
    """lam~, N_max, node noise at rho / 2, target variance 6 H^2 N_max / rho, bonus factor."""
    d, H, K, p = sizes.d, sizes.H, sizes.K, sizes.beta
    lam = math.log(K) if K > 1 else 1.0
    lam *= ((6 * math.sqrt(d) + 1) + 2 * math.log(3 * K * H / p)) / math.sqrt(2 * rho)
    growth = math.log1p(K / (lam * d))
    switches = max(1, math.ceil(d * H / math.log(2) * growth))
    lam_y = math.sqrt(d * H**2 * growth**2 * math.log(3 * K * H / p) / rho)
    U = max(1.0, (2 * H * math.sqrt(d * K) + lam_y) / lam)
    chi = 254 * 162 * K**4 * d * U * H / p
    bonus = 5 * H**2 * math.sqrt(d * lam) * math.log(chi) + 6 * d * H * math.sqrt(math.log(chi))
    return AdaptiveConstants(
        switches,
        math.sqrt(2 * H * levels / rho),
        H * math.sqrt(6 * switches / rho),
        2 * lam,
        bonus,
    )
