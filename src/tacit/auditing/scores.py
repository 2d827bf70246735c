"""Scores, by which the two worlds are told apart, and the rules of guessing they define.

A target may know its own best score (the log-likelihood ratio of the mechanism as it should be). A
broken mechanism is often given away by another one, so scores are also learned from a sample. Any
score and any rule give a valid audit on fresh trials; good ones give a tight audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.auditing.bounds import Counts, epsilon_from_guesses
from tacit.errors import InvalidInput

RIDGES = (1e-9, 1e-3, 1.0)
"""Shrinkage of the linear scores, in units of the variance of a standardized coordinate.

The smallest finds combinations of outputs whose noise cancels exactly; the largest stays sensible
with more outputs than runs. Which one serves best is decided on other runs.
"""

LINEAR = 1000
"""How many coordinates at most enter the linear scores: those whose means differ most."""

SINGLE = 8
"""How many single coordinates are tried for their mean, and as many for their spread."""

SUMS = (2, 4, 8, 16, 32, 64)
"""How many coordinates are taken together as if each had Laplace noise of its own."""

RANKS = 64
"""How many thresholds are tried from either end of the scores."""


@dataclass(frozen=True)
class AuditScore:
    """A named function from outputs [runs, outputs] to scores [runs]."""

    name: str
    of: Callable[[Array], Array]


@dataclass(frozen=True)
class GuessingRule:
    """How to guess: world 1 from ``high`` on, world 0 up to ``low``, else no guess."""

    score: AuditScore
    low: float
    high: float

    def count(self, outputs: Array, worlds: IntArray) -> tuple[int, int]:
        """How many guesses are right, and how many are made."""
        scores = self.score.of(outputs)
        above, below = scores >= self.high, scores <= self.low
        made = int(np.count_nonzero(above | below))
        return int(np.count_nonzero(np.where(worlds == 1, above, below & ~above))), made

    def __str__(self) -> str:
        sides = [f">= {self.high:.4g}"] * (self.high < math.inf)
        sides += [f"<= {self.low:.4g}"] * (self.low > -math.inf)
        return f"{self.score.name} {' or '.join(sides) or 'never'}"


def learned_scores(world0: Array, world1: Array) -> list[AuditScore]:
    """Scores fitted to samples of both worlds; to be judged on other runs than these.

    The coordinates whose means differ most, the distance from the centre for the coordinates whose
    variances differ most, Fisher's linear discriminant at several ridges, and log-likelihood ratios
    of independent Laplace noise about the medians: in its tails one coordinate says no more than
    so much, whatever its size, and only all of them together are decisive.
    """
    if world0.ndim != 2 or world0.shape[1:] != world1.shape[1:] or not world0.size * world1.size:
        raise InvalidInput(
            f"samples of shapes {world0.shape} and {world1.shape}, but both must be "
            "[runs, outputs] with equally many outputs, and not empty"
        )
    centre = (world0.mean(axis=0) + world1.mean(axis=0)) / 2
    gap = world1.mean(axis=0) - world0.mean(axis=0)
    variances = np.stack([world0.var(axis=0), world1.var(axis=0)])
    spread = np.sqrt(variances.mean(axis=0) + (gap / 2) ** 2)
    unit = np.where(spread > 0.0, spread, 1.0)
    moved = _largest(np.abs(gap) / unit)
    stretched = _largest(np.abs(variances[1] - variances[0]) / unit**2)
    wider = variances[1] >= variances[0]
    scores = [_single(j, bool(gap[j] >= 0.0)) for j in moved[:SINGLE]]
    scores += [_single(j, bool(wider[j]), float(centre[j])) for j in stretched[:SINGLE]]
    varying = moved[spread[moved] > 0.0][:LINEAR]
    if varying.size > 1:
        scores += _linear(world0, world1, varying, spread[varying])
        scores += _laplace(world0, world1, varying)
    return scores


def strongest_rule(
    scores: Sequence[AuditScore], outputs: Array, worlds: IntArray, delta: float, beta: float
) -> GuessingRule:
    """The rule that shows the largest epsilon on this sample.

    Rules are ranked by bounds that hold for all of them at once. Ranked by their shares of right
    guesses, rules that seldom guess and were lucky would win.
    """
    best, record = GuessingRule(scores[0], -math.inf, math.inf), -math.inf
    beta /= len(scores) * (2 * 2 * RANKS + 1)

    def strength(correct: Counts, made: Counts) -> Array:
        return epsilon_from_guesses(correct, made, len(worlds), delta, beta)

    for score in scores:
        values = score.of(outputs)
        order = np.argsort(values, kind="stable")
        ranked, ones = values[order], np.concatenate([[0], np.cumsum(worlds[order])])
        thresholds = _thresholds(ranked)
        from_here = np.searchsorted(ranked, thresholds)
        made = len(worlds) - from_here
        right = ones[-1] - ones[from_here]
        high = int(np.argmax(strength(right, made)))
        up_to = np.searchsorted(ranked, thresholds, side="right")
        spared = up_to - ones[up_to]
        low = int(np.argmax(strength(spared, up_to)))
        least, most = float(thresholds[low]), float(thresholds[high])
        candidates = [
            (-math.inf, most, right[high], made[high]),
            (least, math.inf, spared[low], up_to[low]),
        ]
        if least < most:
            candidates.append((least, most, right[high] + spared[low], made[high] + up_to[low]))
        for *ends, correct, guesses in candidates:
            reached = float(strength(int(correct), int(guesses)))
            if reached > record:
                best, record = GuessingRule(score, *ends), reached
    return best


def likeliest_rule(
    score: AuditScore, outputs: Array, trials: int, delta: float, beta: float
) -> GuessingRule:
    """The threshold on a log-likelihood ratio that promises the largest epsilon in ``trials``.

    If noise is as claimed, a guess at the ratio l is right with probability 1 / (1 + e^-|l|). So
    how often guesses beyond a threshold are right is known from the ratios alone, without the luck
    of a sample; with many trials to come, it pays to guess seldom and well.
    """
    sizes = np.sort(np.abs(score.of(outputs)))[::-1]
    right = np.cumsum(1.0 / (1.0 + np.exp(-np.minimum(sizes, 700.0))))
    last = np.flatnonzero(np.append(sizes[1:] < sizes[:-1], True))  # where a size occurs last
    share = right[last] / (last + 1)
    made = np.maximum(np.floor((last + 1) / len(sizes) * trials), 1.0).astype(np.int64)
    correct = np.floor(share * made).astype(np.int64)
    best = int(np.argmax(epsilon_from_guesses(correct, made, trials, delta, beta)))
    threshold = float(sizes[last[best]])
    return GuessingRule(score, -threshold, threshold)


def _thresholds(ranked: Array) -> Array:
    """Values at ranks that lie denser towards both ends, where the decisive rules are."""
    ranks = np.unique(np.geomspace(1, max(1, len(ranked) // 2), RANKS).astype(np.int64))
    return np.unique(ranked[np.concatenate([ranks - 1, len(ranked) - ranks])])


def _largest(statistic: Array) -> IntArray:
    return np.argsort(-statistic, kind="stable")


def _single(j: int, up: bool, centre: float | None = None) -> AuditScore:
    """A coordinate, or its distance from a centre: turned around where it is less in world 1."""
    name = f"coordinate {j}" if centre is None else f"distance of coordinate {j} from {centre:.4g}"

    def of(outputs: Array) -> Array:
        values = outputs[:, j] if centre is None else np.abs(outputs[:, j] - centre)
        return values if up else -values

    return AuditScore(name if up else f"minus {name}", of)


def _linear(world0: Array, world1: Array, chosen: IntArray, spread: Array) -> list[AuditScore]:
    """Mean difference weighted by the inverse within-world covariance, with a ridge added.

    Coordinates are standardized first, by their spread over both worlds together: so a field that
    varies between the worlds but not within one has a scale.
    """
    within, means = np.zeros((chosen.size, chosen.size)), []
    for world in (world0, world1):
        values = world[:, chosen] / spread
        means.append(values.mean(axis=0))
        values -= means[-1]
        within += values.T @ values / (2 * len(values))
    variances, axes = np.linalg.eigh(within)
    gap = axes.T @ (means[1] - means[0])
    scores = []
    for ridge in RIDGES:
        weights = axes @ (gap / (np.maximum(variances, 0.0) + ridge)) / spread
        scores.append(AuditScore(f"linear, ridge {ridge:g}", _weighted(chosen, weights)))
    return scores


def _laplace(world0: Array, world1: Array, moved: IntArray) -> list[AuditScore]:
    """Of the coordinates whose means differ most, several numbers of them."""
    most = moved[: SUMS[-1]]
    middles = [np.median(world[:, most], axis=0) for world in (world0, world1)]
    scales = [
        np.abs(world[:, most] - middle).mean(axis=0)
        for world, middle in zip((world0, world1), middles, strict=True)
    ]
    noisy = (scales[0] > 0.0) & (scales[1] > 0.0)
    most, scales = most[noisy], [scale[noisy] for scale in scales]
    middles = [middle[noisy] for middle in middles]

    def of(count: int) -> AuditScore:
        def ratio(outputs: Array) -> Array:
            first, second = (
                (np.abs(outputs[:, most[:count]] - middle[:count]) / scale[:count]).sum(axis=1)
                for middle, scale in zip(middles, scales, strict=True)
            )
            difference: Array = first - second
            return difference

        return AuditScore(f"laplace ratio of {count} coordinates", ratio)

    return [of(count) for count in sorted({min(count, len(most)) for count in SUMS}) if count > 1]


def _weighted(chosen: IntArray, weights: Array) -> Callable[[Array], Array]:
    return lambda outputs: outputs[:, chosen] @ weights
