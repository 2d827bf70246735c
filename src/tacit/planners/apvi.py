"""DP-APVI and DP-VAPVI (Qiao and Wang 2023): published pessimism on private counts of every stage.

Constants as we understand them, not checked against the text; a scale on the penalty carries the
comparison. Noise and guarantee are ours and exact.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy
from tacit.release import Release
from tacit.task.task import Task, table_sizes


def apvi_policy(
    task: Task, release: Release, scale: float, *, regression: bool, beta: float = 0.05
) -> Policy:
    """Backward induction on consistent counts, minus a penalty for what is not known.

    Args:
        task: the public task.
        release: counts of every stage.
        scale: multiplies the penalty; 1 is the theorem.
        regression: VAPVI, variance-weighted regression with one feature per pair; else APVI.
        beta: failure probability of the penalty.
    """
    (H, S, _), pairs = table_sizes(task), task.pairs
    X = len(pairs.action)
    std = release.law.scale("transitions")
    off = std * math.sqrt(2 * math.log(4 * H * X * S / beta))
    iota = math.log(4 * H * X * S / beta)
    V = np.zeros(S)
    actions = np.zeros((H, S), dtype=np.int64)
    for h in range(H - 1, -1, -1):
        n = np.maximum(2 * release.blocks["totals"][h] + off / 2, 1e-9)
        chances = on_simplex(np.asarray(release.blocks["transitions"][h]) / n[:, np.newaxis])
        reward = np.clip(0.5 + release.blocks["gains"][h] / n, 0.0, 1.0)
        mean, square = chances @ V, chances @ V**2
        var = np.maximum(square - mean**2, 0.0)
        sure = np.maximum(n - off, 1e-9)
        if regression:
            penalty = np.sqrt(X * np.maximum(var, 1.0) * iota / sure) + H * off * iota / n
        else:
            penalty = np.sqrt(2 * var * iota / sure) + 16 * S * H * off * iota / n
        left = float(H - h)
        q = np.where(n > 2 * off, reward + mean - scale * penalty, 0.0)
        table = pairs.spread(np.clip(q, 0.0, left), -np.inf)
        over = np.diff(pairs.first) == 0
        table[over] = left * task.end_reward
        actions[h] = table.argmax(axis=1)
        V = table.max(axis=1)
    return TabularPolicy(actions)


def on_simplex(rows: Array) -> Array:
    """The nearest distributions to rows [X, S], which may be negative and need not sum to 1."""
    S = rows.shape[1]
    down = -np.sort(-rows, axis=1)
    excess = (np.cumsum(down, axis=1) - 1.0) / np.arange(1, S + 1)
    last = (down > excess).sum(axis=1) - 1
    cut = excess[np.arange(len(rows)), last]
    nearest: Array = np.maximum(rows - cut[:, np.newaxis], 0.0)
    return nearest
