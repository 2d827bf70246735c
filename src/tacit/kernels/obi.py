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
