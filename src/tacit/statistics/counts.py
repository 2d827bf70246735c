"""Visit counts and reward sums of a tabular trajectory."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels.counts import add_visits
from tacit.publication import Publication
from tacit.statistics.base import BatchStatistic, Block, Layout, Norm, Relation, block_weights
from tacit.task import Task
from tacit.trajectory import Trajectory


class VisitCounts(BatchStatistic):
    """R(s,a), N_r(s,a), N_p(s,a,s') and, where asked for, R2(s,a).

    See docs/papers/tabular_ldp.md#setting. One table serves all stages when the task is declared
    homogeneous, else every stage has its own. Rewards are clipped into [0, 1] and counted in steps
    of 2^-24; states and actions are clipped into range; at most H steps are read.

    Attributes:
        horizon: H.
        stages: number of tables, 1 or H.
        masses: by block, the most that one trajectory adds to all cells together. Replacing it
            takes at most that much out of some cells and puts at most that much into others.
        layout: blocks of the contribution.
    """

    def __init__(self, task: Task, *, squares: bool = False) -> None:
        S, A, H = task.sizes["states"], task.sizes["actions"], task.horizon
        G = 1 if task.homogeneous else H
        self.horizon = H
        self.stages = G
        self.masses = {"reward": H, "visits": H, "transitions": H - 1}
        blocks = [
            Block("reward", (G, S, A), 1.0 / STEPS),
            Block("visits", (G, S, A)),
            Block("transitions", (G, S, A, S)),
        ]
        if squares:
            self.masses["reward_squares"] = H
            blocks.append(Block("reward_squares", (G, S, A), 1.0 / STEPS))
        self.layout = Layout(blocks)
        self._sizes = (S, A)
        self._no_squares = np.zeros((0, S, A), dtype=np.int64)

    def add_many(
        self,
        states: IntArray,
        actions: IntArray,
        rewards: Array,
        publication: Publication,
        coins: IntArray,
        out: IntArray,
    ) -> None:
        """Add the counts of many users, one trajectory per row."""
        views = self.layout.views(out)
        add_visits(
            states,
            actions,
            rewards,
            self.horizon,
            views["reward"],
            views.get("reward_squares", self._no_squares),
            views["visits"],
            views["transitions"],
        )

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """Exact, jointly over all blocks (docs/papers/tabular_ldp.md#sensitivity).

        Each block carries a total mass m of at most H (transitions: H - 1), one unit per step.
        Adding a user moves it by that mass; replacing one moves two disjoint sets of cells. In L2
        the worst user puts all steps of a pooled table into one cell, (sum m^2)^(1/2); with one
        table per stage every step has a cell of its own, (sum m)^(1/2). Replace-one, pooled:
        L1 = 6H - 2 and L2 = sqrt(4H^2 + 2(H-1)^2) without squares.
        """
        weights = block_weights(self.layout, norm, relation, scale)
        moved = 2 if relation is Relation.REPLACE_ONE else 1
        if norm == "l1":
            return moved * sum(weights[name] * mass for name, mass in self.masses.items())
        power = 2 if self.stages == 1 else 1
        return math.sqrt(
            moved * sum(weights[name] ** 2 * mass**power for name, mass in self.masses.items())
        )

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Always in one pair (s, a) with reward 1, against always in another one.

        With a single state and action there is no other pair, and only the reward can differ.
        """
        S, A = self._sizes

        def stay(s: int, a: int, reward: float) -> Trajectory:
            steps = np.ones(self.horizon, dtype=np.int64)
            return Trajectory(
                np.full(self.horizon + 1, s), a * steps, reward * steps.astype(np.float64)
            )

        if S * A == 1:
            return stay(0, 0, 1.0), stay(0, 0, 0.0)
        return stay(0, 0, 1.0), stay(S - 1, A - 1, 1.0)
