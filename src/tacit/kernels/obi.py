"""Optimistic backward induction on noisy counts (LDP-OBI, spec tabular_ldp 3.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel


class Precision(NamedTuple):
    """How far the released tables may be from the truth, and the constants of the bonus.

    ``c1`` to ``c4`` bound the noise of R~, N_r~, sum_s' N_p~ and one cell of N_p~; ``alpha`` > 1
    shifts denominators; ``log`` is ln(4 pi^2 S A H k^3 / (3 beta)).
    """

    c1: float
    c2: float
    c3: float
    c4: float
    alpha: float
    log: float


@kernel
def obi_precision(
    gaussian: bool,
    scale: float,
    n: int,
    sizes: tuple[int, int, int],
    alpha: float,
    beta: float,
    printed: bool,
) -> Precision:
    """Widths before episode k = n + 1, from n reports with noise of that scale (spec 3.4).

    Laplace: c1 = c2 = max(sqrt k, L1) sqrt(8 L1) b, c3 = max(sqrt(kS), L2) sqrt(8 L2) b, c4 =
    c3 / sqrt S. Gaussian: sigma sqrt(2 n L), at least 1; as printed without the 2 and with L1
    throughout (erratum E4).

    Args:
        gaussian: Gaussian noise, else Laplace.
        scale: standard deviation or Laplace scale of one report's cell.
        n: number of reports.
        sizes: S, A, H.
        alpha: shift of the denominators.
        beta: failure probability.
        printed: the paper's widths.
    """
    S, A, H = sizes
    k = n + 1.0
    confidence = 3.0 * beta / (2.0 * np.pi**2 * k**2)
    one = np.log(6.0 * S * A / confidence)
    every = np.log(6.0 * S * S * A / confidence)
    log = np.log(4.0 * np.pi**2 * S * A * H * k**3 / (3.0 * beta))
    if gaussian:
        factor = 1.0 if printed else 2.0
        wide = one if printed else every
        c1 = max(scale * np.sqrt(factor * n * one), 1.0)
        c3 = max(scale * np.sqrt(factor * n * S * wide), 1.0)
        c4 = max(scale * np.sqrt(factor * n * wide), 1.0)
    else:
        c1 = max(np.sqrt(k), one) * np.sqrt(8.0 * one) * scale
        c3 = max(np.sqrt(k * S), every) * np.sqrt(8.0 * every) * scale
        c4 = c3 / np.sqrt(float(S))
    return Precision(c1, c1, c3, c4, alpha, log)


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
    H-h+1; corrected (erratum E8) w_h = H-h, so that the last step pays no transition bonus. Where
    a denominator is not positive Q_h is its largest value H-h+1. Pooled tables only [1, S, A].
    """
    H, S, A = Q.shape
    for s in range(S):
        V[H, s] = 0.0
    shift = precision.alpha + 1.0
    for h in range(H - 1, -1, -1):
        most = float(H - h)
        weight = most if printed else most - 1.0
        for s in range(S):
            best = -np.inf
            for a in range(A):
                total = 0.0
                for n in range(S):
                    total += transitions[0, s, a, n]
                dr = visits[0, s, a] + precision.alpha * precision.c2
                dp = total + precision.alpha * precision.c3
                value = most
                if dr > 0.0 and (dp > 0.0 or weight == 0.0):
                    value = (reward[0, s, a] + shift * precision.c2 + precision.c1) / dr
                    value += np.sqrt(2.0 * precision.log / dr)
                    if weight > 0.0:
                        bonus = np.sqrt(14.0 * S * precision.log / dp)
                        bonus += (S * precision.c4 + shift * precision.c3) / dp
                        value += weight * bonus
                    if h < H - 1:
                        for n in range(S):
                            value += transitions[0, s, a, n] / dp * V[h + 1, n]
                Q[h, s, a] = value
                if value > best:
                    best = value
            V[h, s] = min(best, most)
