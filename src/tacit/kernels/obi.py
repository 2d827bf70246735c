"""Optimistic backward induction on noisy counts (docs/papers/tabular_ldp.md#ldp-obi)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel

LAPLACE, GAUSSIAN, BOUNDED, RESPONSE, EXACT = range(5)

KINDS = {
    "laplace": LAPLACE,
    "gaussian": GAUSSIAN,
    "bounded": BOUNDED,
    "randomized-response": RESPONSE,
    "none": EXACT,
}
"""Noise laws by name, as kernels know them."""


class CellNoise(NamedTuple):
    """The law of one report's noise, as much as widths need of it.

    ``scale`` is that of a cell of R~ and N_r~, ``next_scale`` that of a cell of N_p~: the b of
    Laplace noise, a standard deviation, a radius, or the range 1 / (p - q) of a debiased bit.
    """

    kind: int
    scale: float
    next_scale: float


class Precision(NamedTuple):
    """How far the released tables may be from the truth, and the constants of the bonus.

    ``c1`` to ``c4`` bound the noise of R~, N_r~, sum_s' N_p~ and one cell of N_p~; ``alpha`` > 1
    shifts denominators, which are then raised to ``least``; ``log`` is
    ln(4 pi^2 S A H k^3 / (3 beta)).
    """

    c1: float
    c2: float
    c3: float
    c4: float
    alpha: float
    log: float
    least: float


@kernel
def obi_precision(
    noise: CellNoise,
    n: int,
    sizes: tuple[int, int, int],
    alpha: float,
    beta: float,
    printed: bool,
) -> Precision:
    """Widths before episode k = n + 1, from n reports with noise of that law.

    See docs/papers/tabular_ldp.md#precisions. Laplace: c1 = c2 = max(sqrt k, L1) sqrt(8 L1) b, c3 =
    max(sqrt(kS), L2) sqrt(8 L2) b, c4 = c3 / sqrt S. Gaussian: sigma sqrt(2 n L), at least 1; as
    printed without the 2 and with L1 throughout (docs/papers/tabular_ldp.md#e4). Randomized
    response: w sqrt(n H / 2 ln(8SA / d)), at least 1, with the range w = (e+1) / (e-1) of a
    debiased bit; as printed (2e-1) / (e-1) = (w+3) / 2 and 4SA (docs/papers/tabular_ldp.md#e5).
    Bounded: R sqrt(2 n L), which is 0 before the first report. Without noise all are 0, and the
    least denominator is 1.

    Args:
        noise: of one report.
        n: number of reports.
        sizes: S, A, H.
        alpha: shift of the denominators.
        beta: failure probability.
        printed: the paper's widths.
    """
    S, A, H = sizes
    k = n + 1.0
    confidence = 3.0 * beta / (2.0 * np.pi**2 * k**2)
    log = np.log(4.0 * np.pi**2 * S * A * H * k**3 / (3.0 * beta))
    c1 = c3 = c4 = 0.0
    least = -np.inf
    if noise.kind == RESPONSE:
        family = (4.0 if printed else 8.0) * S * A / confidence
        width = 0.5 * (noise.scale + 3.0) if printed else noise.scale
        sums = width * np.sqrt(0.5 * n * H * np.log(family))
        c1 = max(1.0, sums)
        c3 = max(1.0, S * sums)
        c4 = max(1.0, width * np.sqrt(0.5 * n * H * np.log(S * family)))
    elif noise.kind == EXACT:
        least = 1.0
    else:
        one = np.log(6.0 * S * A / confidence)
        every = np.log(6.0 * S * S * A / confidence)
        if noise.kind == GAUSSIAN:
            factor = 1.0 if printed else 2.0
            wide = one if printed else every
            c1 = max(noise.scale * np.sqrt(factor * n * one), 1.0)
            c3 = max(noise.scale * np.sqrt(factor * n * S * wide), 1.0)
            c4 = max(noise.scale * np.sqrt(factor * n * wide), 1.0)
        elif noise.kind == BOUNDED:
            c1 = noise.scale * np.sqrt(2.0 * n * one)
            c4 = noise.next_scale * np.sqrt(2.0 * n * every)
            c3 = c4 * np.sqrt(float(S))
        else:
            c1 = max(np.sqrt(k), one) * np.sqrt(8.0 * one) * noise.scale
            c3 = max(np.sqrt(k * S), every) * np.sqrt(8.0 * every) * noise.scale
            c4 = c3 / np.sqrt(float(S))
    return Precision(c1, c1, c3, c4, alpha, log, least)


@kernel
def denominators(
    visits: Array, transitions: Array, s: int, a: int, precision: Precision
) -> tuple[float, float]:
    """N_r~ and the sum of N_p~ of a pair, shifted and raised to the least denominator."""
    total = 0.0
    for n in range(transitions.shape[3]):
        total += transitions[0, s, a, n]
    dr = max(visits[0, s, a] + precision.alpha * precision.c2, precision.least)
    dp = max(total + precision.alpha * precision.c3, precision.least)
    return dr, dp


@kernel
def optimistic_reward(reward: float, dr: float, precision: Precision) -> float:
    """r~ + beta_r of a pair with shifted denominator dr > 0."""
    noise = (precision.alpha + 1.0) * precision.c2
    return float((reward + noise + precision.c1) / dr + np.sqrt(2.0 * precision.log / dr))


@kernel
def transition_bonus(dp: float, S: int, precision: Precision) -> float:
    """beta_p of a pair with shifted denominator dp > 0."""
    noise = S * precision.c4 + (precision.alpha + 1.0) * precision.c3
    return float(np.sqrt(14.0 * S * precision.log / dp) + noise / dp)


@kernel
def obi_induction(
    reward: Array,
    visits: Array,
    transitions: Array,
    precision: Precision,
    printed: bool,
    Q: Array,
    V: Array,
) -> None:
    """Fill Q [H, S, A] (not clipped: the policy is its argmax) and V = min(H-h+1, max_a Q).

    Q_h = r~ + beta_r + w_h beta_p + p~ V_{h+1} with signed, sub-normalised p~. As printed w_h =
    H-h+1; corrected (docs/papers/tabular_ldp.md#e8) w_h = H-h, so that the last step pays no
    transition bonus. Where a denominator is not positive Q_h is its largest value H-h+1. Pooled
    tables only [1, S, A].
    """
    H, S, A = Q.shape
    for s in range(S):
        V[H, s] = 0.0
        for a in range(A):  # what does not depend on V, once for all steps
            dr, dp = denominators(visits, transitions, s, a, precision)
            gain = optimistic_reward(reward[0, s, a], dr, precision) if dr > 0.0 else 0.0
            bonus = transition_bonus(dp, S, precision) if dp > 0.0 else 0.0
            for h in range(H):
                most = float(H - h)
                weight = most if printed else most - 1.0
                known = dr > 0.0 and (dp > 0.0 or weight == 0.0)
                Q[h, s, a] = gain + weight * bonus if known else most
    for h in range(H - 1, -1, -1):
        for s in range(S):
            best = -np.inf
            for a in range(A):
                value = Q[h, s, a]
                dr, dp = denominators(visits, transitions, s, a, precision)
                if h < H - 1 and dr > 0.0 and dp > 0.0:
                    for n in range(S):
                        value += transitions[0, s, a, n] / dp * V[h + 1, n]
                    Q[h, s, a] = value
                if value > best:
                    best = value
            V[h, s] = min(best, float(H - h))
