"""Models of a table from noisy counts N(s, a, s') and reward sums centred at 1/2."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.noisy_posterior import LEAST, project, sample_dirichlet


@kernel
def sample_joint_model(
    counts: Array,
    paid: Array,
    known_reward: Array,
    tried: IntArray,
    count_std: float,
    paid_std: float,
    width: float,
    rng: np.random.Generator,
    y: Array,
    P: Array,
    R: Array,
) -> None:
    """Draw next-state laws into P [G, S, A, S] and mean rewards into R [G, S, A].

    As docs/papers/tabular_ldp.md#b3 does it. First what the exact counts may have been: counts plus
    noise of ``width`` times their own, with the same total, projected to be non-negative. Then the
    model given them: Dirichlet(counts + 1 / S) and Beta(m + 1/2, N - m + 1/2), m = N / 2 + paid.
    Pairs that no published policy has tried have no data: they are drawn from the prior.
    """
    G, S, A, _ = counts.shape
    for g in range(G):
        for s in range(S):
            for a in range(A):
                total = 0.0
                for n in range(S):
                    y[n] = counts[g, s, a, n] + width * count_std * rng.standard_normal()
                    total += y[n]
                seen = total if tried[g, s, a] > 0 else 0.0
                if seen > LEAST:
                    project(y, seen)
                    y += 1.0 / S
                else:
                    y[:] = 1.0
                sample_dirichlet(y, rng, P[g, s, a])
                noise = width * paid_std * rng.standard_normal()
                if known_reward.shape[0] > 0:
                    R[g, s, a] = known_reward[g, s, a]
                elif seen > LEAST:
                    good = min(max(0.5 * seen + paid[g, s, a] + noise, 0.0), seen)
                    up = rng.standard_gamma(good + 0.5)
                    R[g, s, a] = up / (up + rng.standard_gamma(seen - good + 0.5))
                else:
                    R[g, s, a] = rng.random()


@kernel
def mark_tried(policy: IntArray, pooled: bool, tried: IntArray) -> None:
    """Count, per (s, a), the stages at which a published policy prescribes a in s."""
    H, S = policy.shape
    for h in range(H):
        for s in range(S):
            tried[0 if pooled else h, s, policy[h, s]] += 1
