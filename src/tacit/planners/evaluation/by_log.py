"""What a policy is worth by a release: intervals over the models that release and noise allow.

The centre is unbiased to first order: noisy counts are used as they are, negative ones too, because
cutting them would move values (``kernels.public.pessimism.signed_values``). Models are drawn around
it with the noise of the release and the luck of the people in it, and the interval is read off the
spread of their values. No release says whether rewards were paid where steps led somewhere good,
which makes luck in both the same luck: the most that this can add is added (:class:`Together`).
Pairs that are not known are at their worst for one end and at their best for the other. What was
done before is a policy too, read off the choices at first visits, so that both are judged by the
same models. Nothing here is charged: it is post-processing.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public.pessimism import signed_values, slopes
from tacit.planners.evaluation.draws import two_sided
from tacit.planners.offline import complete, completed, people_of, pessimistic_policy
from tacit.release import Release
from tacit.task.task import Task, table_sizes
from tacit.util.intervals import Interval

DRAWS = 200
"""Models that are drawn for an interval.

Not measured, like the other numbers of this file: none of them stood beside others in a record that
is kept. How often the intervals hold the truth with them is measured by ``benchmarks/logs.py`` on
sparse tables that none was chosen on (docs/results/logs.md).
"""

KNOWN_DEVIATIONS = 5.0
"""Standard deviations of its number of visits above which a pair is known."""

POSSIBLE_DEVIATIONS = 2.0
"""Standard deviations above which a next state is taken to be possible, for the spread of luck."""

RELEARNED_MODELS = 20
"""Models in which a policy is learned again, to see how much it owes to the luck of its release."""

WIDENING = 1.05
"""Intervals by models are made wider by this: the spread that they follow is estimated too."""

CUT_SHARE = 0.02
"""Share of first episodes that may be cut where their returns are read as what people earned: the
interval counts them as worth nothing and as worth the most, so it is wider by as much."""


class _Counts(NamedTuple):
    """Noisy counts as values are made of them."""

    cells: Array  # [X, S + 1], in the last column where the next state was not recorded
    visits: Array  # [X]
    reward: Array  # [X]
    choices: Array  # [X]
    start: Array  # [S]
    people: float


class Together(NamedTuple):
    """What luck in rewards and luck in next states of the same visits may add to a variance.

    A pair with reward slope d, slopes w(s') and n visits has luck in d r + w(s'), of variance
    (d^2 var r + var w + 2 d cov(r, w)) / n. Rewards and next states are counted apart, so models
    are drawn as if the covariance were 0. It is largest where the next states that are worth most
    are those that paid: E[r w] is at most the most of sum p(s') rho(s') w(s') over rho in [0, 1]
    with sum p rho = r, whatever the law of the reward.

    Attributes:
        paid: [2, X] slopes d, with pairs that are not known at their worst and at their best.
        led: [2, X, S] slopes w.
        chances: [X, S] p, not negative.
        reward: [X] r in [0, 1].
        visits: [X] n.
    """

    paid: Array
    led: Array
    chances: Array
    reward: Array
    visits: Array

    def less(self, other: Together) -> Together:
        """Of a difference, whose worst is at the other's best."""
        return self._replace(paid=self.paid - other.paid[::-1], led=self.led - other.led[::-1])

    def variances(self) -> Array:
        """The most that may be added, at both ends [2]."""
        extra = []
        for d, w in zip(self.paid, self.led, strict=True):
            w = np.where(d[:, np.newaxis] < 0.0, -w, w)
            best = np.argsort(-w, axis=1)
            p, w = (np.take_along_axis(x, best, axis=1) for x in (self.chances, w))
            left = self.reward[:, np.newaxis] - (np.cumsum(p, axis=1) - p)
            covariance = ((np.clip(left, 0.0, p) - self.reward[:, np.newaxis] * p) * w).sum(axis=1)
            extra.append(2.0 * float((np.abs(d) * covariance / self.visits).sum()))
        return np.array(extra)


@dataclass(frozen=True)
class ValueEstimate:
    """Values of one policy in the model of the release, and in those drawn around it.

    Attributes:
        low: [1 + DRAWS] with pairs that are not known at their worst.
        high: with these at their best.
        together: what their spread leaves out.
        luck: how much the first value is too high in the mean, because the policy was learned from
            the same release.
    """

    low: Array
    high: Array
    together: Together
    luck: float = 0.0

    def __sub__(self, other: ValueEstimate) -> ValueEstimate:
        """What one policy is worth above another, in the same models."""
        together = self.together.less(other.together)
        return ValueEstimate(self.low - other.high, self.high - other.low, together, self.luck)

    def interval(self, least: float, most: float, beta: float = 0.05) -> Interval:
        """Wrong with probability beta; values lie between ``least`` and ``most``."""
        z = WIDENING * two_sided(beta)
        low, high = self.low, self.high
        bias = low[1:].mean() - low[0], high[1:].mean() - high[0]
        more = self.together.variances()
        spread = [(x[1:].var() + y) ** 0.5 for x, y in zip((low, high), more, strict=True)]
        below = low[0] - max(bias[0], self.luck) - z * spread[0]
        above = high[0] - min(bias[1], 0.0) + z * spread[1]
        below, above = (float(np.clip(x, least, most)) for x in (below, above))
        middle = (low[0] + high[0]) / 2 - self.luck
        return Interval(float(np.clip(middle, below, above)), below, above)


class Models:
    """Models that a release of first visits over a log allows.

    Args:
        task: the public task.
        release: about the log.
        ended: the state after a row that ends, -1 if no column says that.
        rng: what models are drawn from.
    """

    def __init__(self, task: Task, release: Release, ended: int, rng: np.random.Generator) -> None:
        self.task, self.release, self.ended = task, release, ended
        self.std = std = release.law.scale("transitions")
        counts = _read(release, std)
        recorded = counts.visits - counts.cells[:, -1]
        self.known = (recorded > KNOWN_DEVIATIONS * std).astype(np.int64)
        likely = np.where(counts.cells > POSSIBLE_DEVIATIONS * std, counts.cells, 0.0)
        likely[self.known == 0] = 0.0
        likely[likely[:, :-1].sum(axis=1) <= 0.0] = 1.0
        self.likely = likely / likely.sum(axis=1, keepdims=True)
        self.centre = self._completed(likely, likely.sum(axis=1))
        self.centre /= self.centre.sum(axis=1, keepdims=True)
        drawn = (_redrawn(counts, self.likely, std, rng) for _ in range(DRAWS))
        self.counts = [counts, *drawn]
        pairs, A = task.pairs, task.sizes["actions"]
        made = np.bincount(pairs.state, counts.choices, len(pairs.number))
        self.floor = 2.0 * std * np.sqrt(np.maximum(np.diff(pairs.first), 1))
        self.met = made > KNOWN_DEVIATIONS * self.floor
        uniform = (pairs.number >= 0) / np.maximum(np.diff(pairs.first), 1)[:, np.newaxis]
        self.uniform: Array = np.asarray(uniform, dtype=np.float64).reshape(-1, A)

    def values(self, policy: Array | None) -> ValueEstimate:
        """Of a policy [H, S, A]; of what was done before if there is none.

        The policy that was learned from this release looks better than it is. Learned again from
        releases that might have come out as well, policies look better there than they are in the
        model that these were drawn from: by so much this one is taken to look too good as well.
        """
        ends = np.array([self._ends(counts, policy) for counts in self.counts])
        estimate = ValueEstimate(ends.min(axis=1), ends.max(axis=1), self._together(policy))
        if policy is None or not np.array_equal(policy, self._learned(self.release)):
            return estimate
        gains = []
        for counts in self.counts[1 : RELEARNED_MODELS + 1]:
            other = self._learned(self._released(counts))
            gains.append(sum(self._ends(counts, other)) - sum(self._ends(self.counts[0], other)))
        return dataclasses.replace(estimate, luck=max(float(np.mean(gains)) / 2, 0.0))

    def _learned(self, release: Release) -> Array:
        """The policy [H, S, A] that ``tacit-offline`` learns from a release."""
        policy = pessimistic_policy(self.task, completed(release, self.ended))
        return np.eye(self.task.sizes["actions"])[policy.actions]

    def _released(self, counts: _Counts) -> Release:
        """The release that would have had these counts."""
        blocks = {
            "transitions": counts.cells[:, :-1],
            "censored": counts.cells[:, -1],
            "totals": counts.visits / 2,
            "gains": counts.visits * (counts.reward - 0.5),
            "choices": counts.choices / 2,
            "starts": counts.start,
        }
        return dataclasses.replace(self.release, blocks={**self.release.blocks, **blocks})

    def _ends(self, counts: _Counts, policy: Array | None) -> tuple[float, float]:
        """The value in one model, with pairs that are not known at their worst and best."""
        table = self._behaviour(counts) if policy is None else policy
        likely, ends = _shares(counts.start), []
        for V in self._tables(counts, table):
            middle = float(likely @ V[0])
            ends.append(middle + float(counts.start @ (V[0] - middle)) / counts.people)
        return ends[0], ends[1]

    def _tables(self, counts: _Counts, table: Array) -> list[Array]:
        """Values [H + 1, S] in one model, with pairs that are not known at worst and at best."""
        H, S, _ = table_sizes(self.task)
        cells, pairs = self._completed(counts.cells, counts.visits), self.task.pairs
        rows = cells, counts.visits, counts.reward, self.centre, self.known
        tables = [np.empty((H + 1, S)) for _ in range(2)]
        for unknown, V in enumerate(tables):
            about = pairs.first, pairs.action, *rows, float(unknown), self.task.end_reward
            signed_values(*about, table, V)
        return tables

    def _together(self, policy: Array | None) -> Together:
        """What the spread of values in the drawn models leaves out, for a policy."""
        counts, pairs, (X, S) = self.counts[0], self.task.pairs, self.centre.shape
        table = self._behaviour(counts) if policy is None else policy
        paid, led = np.empty((2, X)), np.empty((2, X, S))
        about = pairs.first, pairs.action, self.centre, self.known, table
        for end, V in enumerate(self._tables(counts, table)):
            slopes(*about, V, _shares(counts.start), paid[end], led[end])
        reward = np.clip(counts.reward, 0.0, 1.0)
        return Together(paid, led, self.centre, reward, counts.visits)

    def _completed(self, cells: Array, visits: Array) -> Array:
        """Counts [X, S] in which visits without a next state are spread over those with one."""
        return complete(cells[:, :-1], cells[:, -1], visits, self.ended, self.std)

    def _behaviour(self, counts: _Counts) -> Array:
        """Shares of the actions at first visits of states, which may be negative; [H, S, A].

        In a state that was hardly met all allowed actions are taken alike.
        """
        pairs, table = self.task.pairs, self.uniform.copy()
        made = np.bincount(pairs.state, counts.choices, len(table))
        share = counts.choices / np.maximum(made, self.floor)[pairs.state]
        met = self.met[pairs.state]
        table[pairs.state[met], pairs.action[met]] = share[met]
        return np.broadcast_to(table, (self.task.horizon, *table.shape))


def begun(release: Release) -> bool:
    """Whether first states were recorded, above the noise: without them nothing has a value."""
    starts = release.blocks["starts"]
    noise = KNOWN_DEVIATIONS * release.law.scale("starts") * np.sqrt(len(starts))
    return bool(starts.sum() > noise)


def _shares(start: Array) -> Array:
    """First states as shares, none of them negative."""
    likely = np.maximum(start, 0.0)
    return np.asarray(likely / max(float(likely.sum()), 1e-9))


def _read(release: Release, std: float) -> _Counts:
    """Visits by both ways in which they were counted, and rewards per visit."""
    blocks = release.blocks
    cells = np.column_stack([blocks["transitions"], blocks["censored"]])
    by_total, by_cells = 1 / (2 * std) ** 2, 1 / (cells.shape[1] * std**2)
    visits = (by_total * 2 * blocks["totals"] + by_cells * cells.sum(axis=1)) / (
        by_total + by_cells
    )
    return _Counts(
        cells,
        np.maximum(visits, std),
        0.5 + blocks["gains"] / np.maximum(visits, std),
        2.0 * blocks["choices"],
        np.array(blocks["starts"]),
        people_of(release),
    )


def _redrawn(counts: _Counts, likely: Array, std: float, rng: np.random.Generator) -> _Counts:
    """Counts that might have come out as well: other people, other noise."""
    n = counts.visits
    luck = np.sqrt(likely * n[:, np.newaxis]) * rng.standard_normal(likely.shape)
    luck -= likely * luck.sum(axis=1, keepdims=True)
    cells = counts.cells + luck + std * rng.standard_normal(likely.shape)
    spread = std * (1 / (1 / 4 + 1 / likely.shape[1])) ** 0.5
    visits = np.maximum(n + spread * rng.standard_normal(n.shape), std)
    r = np.clip(counts.reward, 0.0, 1.0)
    gains = n * (counts.reward - 0.5) + rng.standard_normal(n.shape) * np.sqrt(
        r * (1 - r) * n + std**2
    )
    made = np.maximum(counts.choices, 0.0)
    chosen = np.sqrt(made) * rng.standard_normal(made.shape)
    choices = counts.choices + chosen + 2.0 * std * rng.standard_normal(made.shape)
    start = np.maximum(counts.start, 0.0)
    begun = np.sqrt(start) * rng.standard_normal(start.shape)
    begun -= start / max(start.sum(), 1e-9) * begun.sum()
    starts = counts.start + begun + std * rng.standard_normal(start.shape)
    return _Counts(cells, visits, 0.5 + gains / visits, choices, starts, counts.people)


def whole_share(release: Release, beta: float = 0.05) -> Interval:
    """Share of the people whose first episode was recorded from its first step to its end."""
    people = people_of(release)
    share = float(release.blocks["whole"][0]) / people
    half = two_sided(beta) * release.law.scale("whole") / people
    return Interval(*(float(np.clip(x, 0.0, 1.0)) for x in (share, share - half, share + half)))


def recorded_value(release: Release, top: float, beta: float = 0.05) -> Interval | None:
    """What people earned in their first episodes, as recorded; None where too many were cut.

    An episode that was cut may have been worth anything, so one end of the interval counts it as
    worth nothing and the other as worth the most.
    """
    people, std = people_of(release), release.law.scale("returns")
    cut = 1.0 - whole_share(release).value
    if cut > CUT_SHARE:
        return None
    whole = float(release.blocks["whole"][0]) / people
    first, second = (float(x) / people for x in release.blocks["returns"])
    mean, square = first + whole / 2, second + whole / 2
    var = float(np.clip(square - mean**2 + 2 * std / people, 0.0, 0.25))
    var = var / people + (std / people) ** 2 * (1.25 + mean**2)
    half = two_sided(beta) * float(np.sqrt(var))
    ends = mean + cut / 2, mean - half, mean + cut + half
    return Interval(*(float(np.clip(x, 0.0, 1.0)) * top for x in ends))


def weighted_value(release: Release, most: float, top: float, beta: float = 0.05) -> Interval:
    """The value of a policy by clipped importance weights w <= ``most``.

    What is won with weight w is never above the value, and 1 minus what is lost never below it:
    cutting weights only moves the two apart. Each end has its own spread.
    """
    people = people_of(release)
    sums = [float(x) / people for x in release.blocks["weighted"]]
    std = release.law.scale("weighted") / people
    z = two_sided(beta)
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
