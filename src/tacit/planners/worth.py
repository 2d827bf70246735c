"""What a policy is worth by a release: intervals over the models that release and noise allow.

The centre is unbiased to first order: noisy counts are used as they are, negative ones too, because
cutting them would move values (``kernels.pessimism.signed_values``). Models are drawn around it
with the noise of the release and the luck of the people in it, and the interval is read off the
spread of their values. Pairs that are not known are at their worst for one end and at their best
for the other. Nothing here is charged: it is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from tacit.arrays import Array, IntArray
from tacit.intervals import Interval
from tacit.kernels.pessimism import signed_values
from tacit.release import Release
from tacit.task import Task, table_sizes

DRAWS = 200
"""Models that are drawn for an interval."""

KNOWN = 5.0
"""Standard deviations of its number of visits above which a pair is known."""

SEEN = 2.0
"""Standard deviations above which a next state is taken to be possible, for the spread of luck."""


WIDER = 1.05
"""Intervals by models are made wider by this: the spread that they follow is estimated too."""


class _Counts(NamedTuple):
    """Noisy counts as values are made of them."""

    cells: Array  # [X, S]
    visits: Array  # [X]
    reward: Array  # [X]
    start: Array  # [S]
    people: float


@dataclass(frozen=True)
class Worth:
    """What is known about the value of a policy, in rewards of [0, 1] per step.

    Attributes:
        interval: value and ends at the confidence that was asked for.
        unknown: how much of the value rests on pairs about which nothing is known: the distance
            between their worst and best cases.
    """

    interval: Interval
    unknown: float


def model_worth(
    task: Task, release: Release, policy: Array, rng: np.random.Generator, beta: float = 0.05
) -> Worth:
    """The value of a policy [H, S, A] by released transitions; wrong with probability beta.

    Args:
        task: the public task.
        release: of first visits over a log.
        policy: action probabilities.
        rng: what models are drawn from.
        beta: share of logs for which the interval may miss.
    """
    H, S, _ = table_sizes(task)
    std = release.law.scale("transitions")
    counts = _read(release, std)
    known = (counts.visits > KNOWN * std).astype(np.int64)
    chances = np.where(counts.cells > SEEN * std, counts.cells, 0.0)
    chances[known == 0] = 0.0
    empty = chances.sum(axis=1) <= 0.0
    chances[empty] = 1.0
    chances /= chances.sum(axis=1, keepdims=True)
    models = [counts, *(_redrawn(counts, chances, std, rng) for _ in range(DRAWS))]
    low, high = (
        np.array([_value(task, model, chances, known, unknown, policy) for model in models])
        for unknown in (0.0, 1.0)
    )
    z = -WIDER * float(ndtri(beta / 2))
    bias = low[1:].mean() - low[0], high[1:].mean() - high[0]
    below = low[0] - max(bias[0], 0.0) - z * low[1:].std()
    above = high[0] - min(bias[1], 0.0) + z * high[1:].std()
    below, above = (float(np.clip(x, 0.0, H)) for x in (below, above))
    middle = float(np.clip((low[0] + high[0]) / 2, below, above))
    return Worth(Interval(middle, below, above), float(high[0] - low[0]))


def _read(release: Release, std: float) -> _Counts:
    """Visits by both ways in which they were counted, and rewards per visit."""
    blocks = release.blocks
    cells = np.array(blocks["transitions"])
    S = cells.shape[1]
    by_total, by_cells = 1 / (2 * std) ** 2, 1 / (S * std**2)
    visits = (by_total * 2 * blocks["totals"] + by_cells * cells.sum(axis=1)) / (
        by_total + by_cells
    )
    return _Counts(
        cells,
        np.maximum(visits, std),
        0.5 + blocks["gains"] / np.maximum(visits, std),
        np.array(blocks["starts"]),
        max(1.0, float(blocks["people"][0])),
    )


def _value(
    task: Task, counts: _Counts, chances: Array, known: IntArray, unknown: float, policy: Array
) -> float:
    """The value of a policy by counts, over the start law."""
    H, S, _ = table_sizes(task)
    V = np.empty((H + 1, S))
    pairs = task.pairs
    rows = counts.cells, counts.visits, counts.reward, chances, known
    signed_values(pairs.first, pairs.action, *rows, unknown, task.end_reward, policy, V)
    likely = np.maximum(counts.start, 0.0)
    middle = float(likely @ V[0] / max(likely.sum(), 1e-9))
    return middle + float(counts.start @ (V[0] - middle)) / counts.people


def _redrawn(counts: _Counts, chances: Array, std: float, rng: np.random.Generator) -> _Counts:
    """Counts that might have come out as well: other people, other noise."""
    n = counts.visits
    luck = np.sqrt(chances * n[:, np.newaxis]) * rng.standard_normal(chances.shape)
    luck -= chances * luck.sum(axis=1, keepdims=True)
    cells = counts.cells + luck + std * rng.standard_normal(chances.shape)
    S = chances.shape[1]
    spread = std * (1 / (1 / 4 + 1 / S)) ** 0.5
    visits = np.maximum(n + spread * rng.standard_normal(n.shape), std)
    r = np.clip(counts.reward, 0.0, 1.0)
    gains = n * (counts.reward - 0.5) + rng.standard_normal(n.shape) * np.sqrt(
        r * (1 - r) * n + std**2
    )
    start = np.maximum(counts.start, 0.0)
    begun = np.sqrt(start) * rng.standard_normal(start.shape)
    begun -= start / max(start.sum(), 1e-9) * begun.sum()
    again = counts.start + begun + std * rng.standard_normal(start.shape)
    return _Counts(cells, visits, 0.5 + gains / visits, again, counts.people)


def behaviour_worth(release: Release, top: float, beta: float = 0.05) -> Interval:
    """What the people of the log earned themselves, in their first episodes."""
    people = max(1.0, float(release.blocks["people"][0]))
    first, second = (float(x) / people for x in release.blocks["returns"])
    mean, square = 0.5 + first, 0.5 + second
    std = release.law.scale("returns")
    var = float(np.clip(square - mean**2 + 2 * std / people, 0.0, 0.25))
    return _around(mean, var / people + (std / people) ** 2 * (1 + first**2), top, beta)


def weighted_worth(release: Release, most: float, top: float, beta: float = 0.05) -> Interval:
    """The value of a policy by clipped importance weights w <= ``most``.

    What is won with weight w is never above the value, and 1 minus what is lost never below it:
    cutting weights only moves the two apart. Each end has its own spread.
    """
    people = max(1.0, float(release.blocks["people"][0]))
    sums = [float(x) / people for x in release.blocks["weighted"]]
    std = release.law.scale("weighted") / people
    z = -float(ndtri(beta / 2))
    half = []
    for mean, square in zip(sums[:2], sums[2:], strict=True):
        near = max(mean + 2 * std, 0.0)
        second = min(near, max(square + 2 * std, mean**2))  # the square of a share is below it
        var = max(second - mean**2, 0.0) / people + std**2
        half.append(most * z * float(np.sqrt(var)))
    won, lost = most * sums[0], 1.0 - most * sums[1]
    ends = [min(won, lost) - half[0], max(won, lost) + half[1]]
    low, high = (float(np.clip(x, 0.0, 1.0)) * top for x in ends)
    return Interval(float(np.clip((won + lost) / 2 * top, low, high)), low, high)


def _around(mean: float, var: float, top: float, beta: float) -> Interval:
    half = -float(ndtri(beta / 2)) * np.sqrt(var)
    ends = (float(np.clip(x, 0.0, 1.0)) * top for x in (mean, mean - half, mean + half))
    return Interval(*ends)
