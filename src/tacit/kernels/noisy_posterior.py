"""Posterior sampling that knows the noise in its counts (spec tabular_ldp B3, B4).

The released counts carry noise of known variance. A draw of the model first draws what the exact
counts may have been (counts plus noise of that variance, projected to what counts can be), then the
model given those counts; as the noise vanishes this becomes PSRL.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel

LEAST = 1e-9
"""A total below this says nothing."""

WEIGHT_STEPS = 2**10
"""Weights of reports are whole steps of 2^-10, so that weighted sums are exact in any order."""


@kernel
def project(y: Array, total: float) -> None:
    """Overwrite y by the nearest point (Euclidean) with entries >= 0 that add up to total > 0.

    The point is max(y - t, 0); the shift t is found by dropping entries that fall below zero. The
    largest entry is moved to 0 first: then t < 0 whatever is rounded, and it is never dropped.
    """
    top = np.max(y)
    for i in range(y.shape[0]):
        y[i] -= top
    low = -np.inf
    while True:
        count = 0
        mass = 0.0
        for i in range(y.shape[0]):
            if y[i] > low:
                count += 1
                mass += y[i]
        shift = (mass - total) / count
        dropped = False
        for i in range(y.shape[0]):
            if low < y[i] <= shift:
                dropped = True
        if not dropped:
            break
        low = shift
    for i in range(y.shape[0]):
        y[i] = max(y[i] - shift, 0.0)


@kernel
def sample_dirichlet(alpha: Array, rng: np.random.Generator, out: Array) -> None:
    """A draw of Dirichlet(alpha) into ``out``; entries of alpha may be very small, not all 0."""
    total = 0.0
    weight = 0.0
    for i in range(alpha.shape[0]):
        out[i] = rng.standard_gamma(alpha[i])
        total += out[i]
        weight += alpha[i]
    if total > 0.0:
        for i in range(alpha.shape[0]):
            out[i] /= total
        return
    mark = rng.random() * weight  # every gamma underflowed: the limit law is all mass on one entry
    chosen = 0
    while chosen < alpha.shape[0] - 1 and mark >= alpha[chosen]:
        mark -= alpha[chosen]
        chosen += 1
    out[chosen] = 1.0


@kernel
def sample_noisy_model(
    transitions: Array,
    last: Array,
    variance: Array,
    last_variance: Array,
    pooled: bool,
    rng: np.random.Generator,
    y: Array,
    P: Array,
    R: Array,
) -> None:
    """Draw next-state laws into P [G, S, A, S] and mean rewards into R [G', S, A].

    With c = counts plus noise: p ~ Dirichlet(projection of sum_rho c onto counts of the same total,
    plus 1 / S), r ~ Beta(m + 1/2, N - m + 1/2) with m the part of rho = 1, clipped into [0, N].

    Args:
        transitions: weighted counts [G, S, A, 2, S] of steps before the last.
        last: the same at the last step [S, A, 2].
        variance: of one cell of ``transitions`` [G, S, A].
        last_variance: of one cell of ``last`` [S, A].
        pooled: stages share one model (G = G' = 1); else G' = H, and the last stage is ``last``.
        rng: the posterior stream.
        y: work space [S].
        P: overwritten.
        R: overwritten.
    """
    S, A = last.shape[0], last.shape[1]
    for g in range(R.shape[0]):
        final = pooled or g == R.shape[0] - 1
        moves = pooled or g < R.shape[0] - 1
        for s in range(S):
            for a in range(A):
                none = 0.0
                one = 0.0
                if moves and g < P.shape[0]:
                    std = np.sqrt(variance[g, s, a])
                    total = 0.0
                    for n in range(S):
                        zero = transitions[g, s, a, 0, n] + std * rng.standard_normal()
                        full = transitions[g, s, a, 1, n] + std * rng.standard_normal()
                        y[n] = zero + full
                        none += zero
                        one += full
                        total += y[n]
                    if total > LEAST:
                        project(y, total)
                        y += 1.0 / S
                    else:
                        y[:] = 1.0
                    sample_dirichlet(y, rng, P[g, s, a])
                if final:
                    std = np.sqrt(last_variance[s, a])
                    none += last[s, a, 0] + std * rng.standard_normal()
                    one += last[s, a, 1] + std * rng.standard_normal()
                total = none + one
                if total > LEAST:
                    mean = min(max(one, 0.0), total)
                    up = rng.standard_gamma(mean + 0.5)
                    R[g, s, a] = up / (up + rng.standard_gamma(total - mean + 0.5))
                else:
                    R[g, s, a] = rng.random()


@kernel
def matched_weights(
    first: Array,
    users: float,
    P: Array,
    actions: IntArray,
    floor: float,
    f: Array,
    weights: IntArray,
) -> None:
    """Predicted chance of being in s at step h, at least ``floor``, into ``weights`` [H, S].

    Reports of step h about state s carry signal in that proportion and constant noise, so this is
    their matched filter (spec tabular_ldp B4). Start law: projection of ``first`` / ``users``.
    In whole steps of 1 / WEIGHT_STEPS; ``f`` [2, S] is work space.
    """
    H, S = actions.shape
    for s in range(S):
        f[0, s] = first[s] / max(users, 1.0)
    project(f[0], 1.0)
    for h in range(H):
        for s in range(S):
            weights[h, s] = np.int64(np.rint(max(f[0, s], floor) * WEIGHT_STEPS))
        if h == H - 1:
            break
        g = h if P.shape[0] > 1 else 0
        f[1] = 0.0
        for s in range(S):
            for n in range(S):
                f[1, n] += f[0, s] * P[g, s, actions[h, s], n]
        f[0] = f[1]
