"""What one person contributes to a policy search: a return seen through a public window.

Proofs: proofs/search.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.public.scores import search_coins
from tacit.kernels.raw.returns import add_windowed, shifts_of, through_window
from tacit.policies.parametric import ParametricPolicy, parameters, scoring
from tacit.publication import Publication
from tacit.statistics import base
from tacit.task.task import Task
from tacit.trajectory import Lives, Trajectory, VectorTrajectory

FAR = 1e30
"""A return beyond every window that makes sense."""


def _windowed(lives: Lives, publication: Publication) -> IntArray:
    """x of many users, in steps of the grid: whatever was lived and published, within [-1, 1]."""
    centre, half = base.context_array(publication, "window", (2,))
    x = np.empty(len(lives.rewards), dtype=np.int64)
    through_window(lives.rewards, float(centre), float(half), x)
    return x


def _scored(publication: Publication, dimension: int) -> ParametricPolicy:
    policy = publication.policy
    if not isinstance(policy, ParametricPolicy):
        raise InvalidInput(f"a search publishes a ParametricPolicy, got {type(policy).__name__}")
    if len(policy.theta) != dimension:
        raise InvalidInput(
            f"this search has {dimension} parameters, but the published policy {len(policy.theta)}"
        )
    return policy


class _Returns:
    """What both statistics share: only the sum of a person's rewards is read."""

    def __init__(self, task: Task) -> None:
        self.dimension = parameters(scoring(task.sizes, task.known))
        self.weight = math.sqrt(2.0 * (self.dimension + 1))
        self.low, self.high = (float(end) for end in task.known["returns"])

    def worst_contexts(self) -> dict[str, dict[str, Array]]:
        """A wide and a narrow window."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return {
            "the declared range": {"window": np.array([middle, half])},
            "a narrow window": {"window": np.array([middle, half / 1000])},
        }

    def worst_pair(self) -> tuple[VectorTrajectory, VectorTrajectory]:
        """A return below every window, and one above it."""
        nothing = np.zeros((0, 1))
        return (
            VectorTrajectory(nothing, nothing, np.array([-FAR])),
            VectorTrajectory(nothing, nothing, np.array([FAR])),
        )


class WindowedReturn(_Returns, base.BatchStatistic):
    """(x z, x, b (x^2 - 1/2)) with x = clip((R - c) / h, -1, 1), b^2 = 2 (d + 1).

    The window (c, h) is published, the direction z, |z|^2 <= d, follows from the published key and
    the report's public id. The second moment comes for free: see ``sensitivity``.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        scalars = base.counted("mean"), base.counted("square")
        self.layout = base.Layout([base.counted("gradient", self.dimension), *scalars])

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add what many users contribute."""
        z = _scored(publication, self.dimension).directions(coins)
        add_windowed(_windowed(lives, publication), z, self.weight, out)

    def sensitivity(
        self, norm: base.Norm, relation: base.Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """L2, replace-one: 2 sqrt(d + 1), attained by x = -1 and 1, the third entry at no cost.

        With t = |x - x'| the squared distance is at most t^2 (c + e (2 - t)^2), where c and e are
        the weights of the first two blocks and of the third; for e <= 2 c it is largest at t = 2.
        Rounding adds nothing there (proofs/search.md); other weights are charged a step per cell.
        """
        weights = base.block_weights(self.layout, norm, relation, scale)
        d, g, m = self.dimension, weights["gradient"], weights["mean"]
        s = weights["square"] * self.weight
        replaced = relation is base.Relation.REPLACE_ONE
        rounding = self.layout.size * max(weights.values()) / STEPS
        if norm == "l1":  # |z|_1 <= d; largest of a t + s t (2 - t), or of a |x| + s |x^2 - 1/2|
            a = g * d + m
            bent = replaced and a < 2.0 * s
            largest = (a + 2.0 * s) ** 2 / (4.0 * s) if bent else 2.0 * a if replaced else a + s / 2
            return largest + rounding
        c, e = g * g * d + m * m, s * s
        largest = 4.0 * c if replaced else c + e / 4.0
        if replaced and e > 2.0 * c:
            t = (3.0 - math.sqrt(1.0 - 2.0 * c / e)) / 2.0
            largest = max(largest, t * t * (c + e * (2.0 - t) ** 2))
        return math.sqrt(largest) + (0.0 if scale is None else rounding)


class RoundedReturn(_Returns, base.BoundedSum):
    """x = clip((R - c) / h, -1, 1) as one of ``largest`` + 1 whole numbers, for local reports.

    (x + 1)/2 times ``largest`` is rounded by a public coin. Both coin and direction follow from the
    published key and the report's public id, which is ``person``: whoever collects knows it too.
    """

    def __init__(self, task: Task, largest: int) -> None:
        super().__init__(task)
        self.largest = largest
        self.layout = base.Layout([base.Block("person", ()), base.Block("shift", ())])

    def contribute(
        self, trajectory: Trajectory, publication: Publication, coin: int, out: IntArray
    ) -> None:
        """Overwrite ``out`` with the report's id and the rounded return."""
        alone = Lives(trajectory.states, trajectory.actions, trajectory.rewards[None])
        people = np.array([coin], dtype=np.int64)
        out[0], out[1] = coin, self.shifts(alone, publication, people)[0]

    def shifts(self, lives: Lives, publication: Publication, people: IntArray) -> IntArray:
        """The rounded returns of many users."""
        coins, returns = np.empty(len(people)), np.empty(len(people), dtype=np.int64)
        search_coins(_scored(publication, self.dimension).key, people, coins)
        shifts_of(_windowed(lives, publication), coins, self.largest, returns)
        return returns

    def _sensitivity(self, w: dict[str, float], norm: base.Norm, replaced: bool) -> float:
        """From one end to the other; the id does not move, but is there or not."""
        shift = w["shift"] * self.largest
        if replaced:
            return shift
        person = w["person"] * 2.0**63
        return person + shift if norm == "l1" else math.hypot(person, shift)


class SharedReturn(_Returns, base.BoundedSum):
    """x = clip((R - c) / h, -1, 1) on the grid, and which of the shared directions was played.

    For reports that hide in a crowd: nothing in them may be a person's own, so x is rounded by a
    coin that nobody else knows, when the report is made.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.directions = 2 * self.dimension
        self.layout = base.Layout([base.Block("direction", ()), base.counted("x")])

    def contribute(
        self, trajectory: Trajectory, publication: Publication, coin: int, out: IntArray
    ) -> None:
        """Overwrite ``out`` with the direction's number and x."""
        alone = Lives(trajectory.states, trajectory.actions, trajectory.rewards[None])
        out[0], out[1] = coin % self.directions, _windowed(alone, publication)[0]

    def _sensitivity(self, w: dict[str, float], norm: base.Norm, replaced: bool) -> float:
        """From one end to the other; the direction does not move, but is there or not."""
        if replaced:
            return 2.0 * w["x"]
        direction = w["direction"] * (self.directions - 1)
        return direction + w["x"] if norm == "l1" else math.hypot(direction, w["x"])
