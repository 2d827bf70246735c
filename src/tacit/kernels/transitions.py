"""Optimistic planning on noisy transition counts with known rewards.

See docs/papers/mixture_ldp.md#b1.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.noisy_posterior import project


@kernel
def pool_stages(counts: Array, variances: Array, pooled: Array, pooled_variances: Array) -> None:
    """Sums over the stages, into tables [1, S, A, S]."""
    pooled[:] = 0.0
    pooled_variances[:] = 0.0
    for h in range(counts.shape[0]):
        pooled[0] += counts[h]
        pooled_variances[0] += variances[h]


@kernel
def transition_induction(
    counts: Array,
    variances: Array,
    known_reward: Array,
    caps: Array,
    scale: float,
    row: Array,
    Q: Array,
    V: Array,
) -> None:
    """Q_h = min(cap, r + (1 - q) P^ V + q max V), q = min(1, c (sqrt n + sd) / n).

    n is the noisy number of visits, raised to its own noise ``sd`` and to 1; P^ is the noisy row
    over n, filled up evenly where n was raised, projected onto the simplex. ``counts`` has one
    table per stage before the last, or one for all.
    """
    H, S, A = Q.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        g = h if counts.shape[0] > 1 else 0
        top = 0.0
        if h < H - 1:
            for s in range(S):
                top = max(top, V[h + 1, s])
        for s in range(S):
            best = -np.inf
            for a in range(A):
                value = known_reward[h, s, a]
                if h < H - 1:
                    seen = 0.0
                    noise = 0.0
                    for n in range(S):
                        seen += counts[g, s, a, n]
                        noise += variances[g, s, a, n]
                    deviation = np.sqrt(noise)
                    visits = max(max(seen, deviation), 1.0)
                    for n in range(S):
                        row[n] = counts[g, s, a, n] / visits + (1.0 - seen / visits) / S
                    project(row, 1.0)
                    mean = 0.0
                    for n in range(S):
                        mean += row[n] * V[h + 1, n]
                    q = min(1.0, scale * (np.sqrt(visits) + deviation) / visits)
                    value += (1.0 - q) * mean + q * top
                value = min(value, caps[h])
                Q[h, s, a] = value
                best = max(best, value)
            V[h, s] = best
