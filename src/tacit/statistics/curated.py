"""What a curator keeps to answer regression queries: a weighted table of transitions per stage."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.grid import STEPS
from tacit.kernels.linear_sums import add_weighted_steps
from tacit.publication import Publication
from tacit.statistics.base import BatchStatistic, Block, Layout, Norm, Relation, block_weights
from tacit.statistics.linear import clipped_features, furthest_pair, is_one_hot
from tacit.statistics.pairs import FeaturePairs
from tacit.task import Task
from tacit.trajectory import Trajectory
from tacit.validate import number


class CuratedTransitions(BatchStatistic):
    """Per stage: w phi phi^T, the weight w at its (s, a, s'), and w r at its (s, a).

    For finite S every regression sum w phi (r + V(s')) is a linear function of the last two. The
    weight of a step is read from the table "weights" [H, S, A] of the publication the user acted
    on, at her own state and action, clipped to ``largest_weight``, and never recomputed: so it is a
    function of public numbers and her own data (docs/papers/linear_jdp.md#setting).

    Args:
        task: the public task.
        largest_weight: bound on w, and the weight of every step where nothing is published.
        diagonal: keep the diagonals of Gram matrices alone where features are one-hot.
    """

    def __init__(self, task: Task, largest_weight: float = 1.0, *, diagonal: bool = False) -> None:
        self.phi = clipped_features(task)
        S, A, d = self.phi.shape
        H = task.horizon
        packed = d if diagonal and is_one_hot(self.phi) else d * (d + 1) // 2
        self.horizon = H
        self.largest_weight = number(
            largest_weight, "largest_weight", low=0.0, high=1.0, low_open=True
        )
        self.layout = Layout(
            [
                Block("gram", (H, packed), 1.0 / STEPS),
                Block("table", (H, S, A, S), 1.0 / STEPS),
                Block("reward", (H, S, A), 1.0 / STEPS),
            ]
        )
        self.pairs = FeaturePairs(self.phi)
        self.equal_weights: Array = frozen(np.full((H, S, A), self.largest_weight))

    def add_many(
        self,
        states: IntArray,
        actions: IntArray,
        rewards: Array,
        publication: Publication,
        coins: IntArray,
        out: IntArray,
    ) -> None:
        """Add the sums of many users, one trajectory per row."""
        views = self.layout.views(out)
        add_weighted_steps(
            states,
            actions,
            rewards,
            self.phi,
            self.weights(publication),
            self.largest_weight,
            views["gram"],
            views["table"],
            views["reward"],
        )

    def weights(self, publication: Publication) -> Array:
        """The table of weights that goes with a publication."""
        table = publication.context.get("weights") if publication is not None else None
        if table is None or table.shape != self.equal_weights.shape:
            return self.equal_weights
        return table

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """A bound for the whole vector: Gram matrices by pairs, two cells per stage for the rest.

        Mechanisms ask for the block they release (the others scaled to 0).
        """
        factors = block_weights(self.layout, norm, relation, scale)
        H, w, d = self.horizon, self.largest_weight, self.phi.shape[2]
        twice = 2 if relation is Relation.REPLACE_ONE else 1
        worst = self.pairs.gram if relation is Relation.REPLACE_ONE else self.pairs.one**2
        gram = w * math.sqrt(self.pairs.worst(worst)) + twice * 0.5 / STEPS * d
        moved = {"gram": gram, "table": math.sqrt(twice) * w, "reward": math.sqrt(twice) * w}
        l2 = math.sqrt(H * sum((factors[name] * moved[name]) ** 2 for name in moved))
        if norm == "l2":
            return l2
        cells = {"gram": d * (d + 1) // 2, "table": twice, "reward": twice}
        return float(H * sum(factors[n] * moved[n] * math.sqrt(cells[n]) for n in moved))

    def largest_cell(self) -> float:
        """What one user can add to a cell at most."""
        return math.sqrt(2.0) * self.largest_weight + 1.0 / STEPS

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """The furthest two of many users."""
        return furthest_pair(self, self.horizon, *self.phi.shape[:2])
