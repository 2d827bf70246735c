"""What the pairs of a table pay, told by all of them together.

The rewards of a table usually take few values (nothing, the cost of a step, the goal). A pair seen
a hundred times without a reward may still pay a hundredth; over a long horizon that is a fortune,
and a learner that takes every pair for itself runs after it. So a few values and how often they
occur are fitted to all pairs, and every pair then has its chances of them. Nothing here may import
rollout, counts or sums: a planner uses it.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel


@kernel
def fit_rewards(
    good: Array,
    n: Array,
    gain_variance: Array,
    count_variance: Array,
    known: IntArray,
    group: IntArray,
    steps: int,
    atoms: Array,
    posterior: Array,
) -> None:
    """Fit the values [J] that rewards take, and every known pair's chances of them [X, J].

    Pair x shows good = r n + noise of variance gain + (r - 1/2)^2 count + r (1 - r) n. Fitted by EM
    from an even grid, with one pair's worth of weight spread over all atoms so that none is
    excluded; atoms move in the last third of the steps only. Pairs of one ``group`` [X] have
    chances of their own, to which all pairs together add three pairs' worth.
    """
    X, J = posterior.shape
    weights = np.full((group.max() + 1, J), 1.0 / J)
    for j in range(J):
        atoms[j] = j / (J - 1)
    for step in range(steps + 1):
        total, own = np.full(J, 1.0 / J), np.zeros_like(weights)
        logs = np.log(weights)
        up, down = np.zeros(J), np.zeros(J)
        for x in range(X):
            if known[x] == 0:
                continue
            top = -np.inf
            for j in range(J):
                a = atoms[j]
                var = gain_variance[x] + (a - 0.5) ** 2 * count_variance[x] + a * (1.0 - a) * n[x]
                d = good[x] - a * n[x]
                posterior[x, j] = logs[group[x], j] - 0.5 * d * d / var - 0.5 * np.log(var)
                top = max(top, posterior[x, j])
            mass = 0.0
            for j in range(J):
                posterior[x, j] = np.exp(posterior[x, j] - top)
                mass += posterior[x, j]
            for j in range(J):
                posterior[x, j] /= mass
                total[j] += posterior[x, j]
                own[group[x], j] += posterior[x, j]
                if posterior[x, j] > 1e-6:
                    a = atoms[j]
                    var = gain_variance[x] + (a - 0.5) ** 2 * count_variance[x]
                    var += a * (1.0 - a) * n[x]
                    up[j] += posterior[x, j] * good[x] * n[x] / var
                    down[j] += posterior[x, j] * n[x] * n[x] / var
        if step == steps:
            break
        pull = 1e-3 * (down.max() + 1e-300)  # keeps an empty atom where it is
        for j in range(J):
            for g in range(weights.shape[0]):
                share = 3.0 * total[j] / total.sum()
                weights[g, j] = (own[g, j] + share) / (own[g].sum() + 3.0)
            if weights.shape[0] == 1:
                weights[0, j] = total[j] / total.sum()
            if 3 * step >= 2 * steps:
                atoms[j] = min(max((up[j] + pull * atoms[j]) / (down[j] + pull), 0.0), 1.0)


@kernel
def draw_rewards(
    atoms: Array, posterior: Array, known: IntArray, rng: np.random.Generator, reward: Array
) -> None:
    """A draw of every known pair's reward."""
    X, J = posterior.shape
    for x in range(X):
        if known[x] == 0:
            continue
        u = rng.random()
        j = 0
        while j < J - 1 and u >= posterior[x, j]:
            u -= posterior[x, j]
            j += 1
        reward[x] = atoms[j]
