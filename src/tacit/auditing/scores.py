"""Scores, by which a test tells the two worlds apart, and the events they define.

A target may know its own best score (the log-likelihood ratio of the mechanism as it should be). A
broken mechanism is often given away by another one, so scores are also learned from a sample. Any
score and any event give a valid audit on fresh runs; good ones give a tight audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.auditing.bounds import error_rates_upper, per_look
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

RANKS = 64
"""How many thresholds are tried from either end of the scores."""


@dataclass(frozen=True)
class Score:
    """A named function from outputs [runs, outputs] to scores [runs]."""

    name: str
    of: Callable[[Array], Array]


@dataclass(frozen=True)
class Event:
    """Outputs on which a test says "world 1": those with sign * score >= threshold."""

    score: Score
    sign: int
    threshold: float

    def count(self, outputs: Array) -> int:
        """How many of the outputs are in the event."""
        return int(np.count_nonzero(self.sign * self.score.of(outputs) >= self.threshold))

    def __str__(self) -> str:
        relation = ">=" if self.sign > 0 else "<="
        return f"{self.score.name} {relation} {self.sign * self.threshold:.6g}"


def learned_scores(world0: Array, world1: Array) -> list[Score]:
    """Scores fitted to samples of both worlds; to be judged on other runs than these.

    The coordinates whose means differ most, the distance from the centre for the coordinates whose
    variances differ most, and Fisher's linear discriminant at several ridges.
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
    scores = [_coordinate(int(j)) for j in moved[:SINGLE]]
    scores += [_distance(int(j), float(centre[j])) for j in stretched[:SINGLE]]
    varying = moved[spread[moved] > 0.0][:LINEAR]
    if varying.size > 1:
        scores += _linear(world0, world1, varying, spread[varying])
    return scores


def strongest_events(
    scores: Sequence[Score],
    world0: Array,
    world1: Array,
    strengths: Sequence[Callable[[Array, Array], Array]],
    beta: float,
) -> list[Event]:
    """For each measure of strength, a function of (FPR, FNR), the best event on this sample.

    Events are ranked by the strength they reach at upper bounds on their error rates that hold for
    all of them at once. Ranked by the rates themselves, rare events that were lucky would win.
    """
    best: list[Event] = [Event(scores[0], 1, math.inf)] * len(strengths)
    record = [-math.inf] * len(strengths)
    beta = per_look(beta, len(scores) * 2 * 2 * RANKS)
    for score in scores:
        for sign in (1, -1):
            low, high = np.sort(sign * score.of(world0)), np.sort(sign * score.of(world1))
            thresholds = _thresholds(np.concatenate([low, high]))
            false_positives = len(low) - np.searchsorted(low, thresholds)
            false_negatives = np.searchsorted(high, thresholds)
            fpr, fnr = error_rates_upper(false_positives, false_negatives, len(low), beta)
            for i, strength in enumerate(strengths):
                reached = strength(fpr, fnr)
                j = int(np.argmax(reached))
                if reached[j] > record[i]:
                    record[i] = float(reached[j])
                    best[i] = Event(score, sign, float(thresholds[j]))
    return best


def _thresholds(values: Array) -> Array:
    """Values at ranks that lie denser towards both ends, where the decisive events are."""
    ranks = np.unique(np.geomspace(1, max(1, len(values) // 2), RANKS).astype(np.int64))
    return np.unique(np.sort(values)[np.concatenate([ranks - 1, len(values) - ranks])])


def _largest(statistic: Array) -> IntArray:
    return np.argsort(-statistic, kind="stable")


def _coordinate(j: int) -> Score:
    return Score(f"coordinate {j}", lambda outputs: outputs[:, j])


def _distance(j: int, centre: float) -> Score:
    name = f"distance of coordinate {j} from {centre:.4g}"
    return Score(name, lambda outputs: np.abs(outputs[:, j] - centre))


def _linear(world0: Array, world1: Array, chosen: IntArray, spread: Array) -> list[Score]:
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
        scores.append(Score(f"linear, ridge {ridge:g}", _weighted(chosen, weights)))
    return scores


def _weighted(chosen: IntArray, weights: Array) -> Callable[[Array], Array]:
    return lambda outputs: outputs[:, chosen] @ weights
