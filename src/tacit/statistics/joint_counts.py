"""The V-free statistic of a table: how often (s, a, s') happened, and what was paid."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.features import pairs
from tacit.grid import STEPS
from tacit.kernels.counts import add_joint_counts
from tacit.publication import Publication
from tacit.statistics.base import BatchStatistic, Block, Layout, Norm, Relation, block_weights
from tacit.task import Task
from tacit.trajectory import Trajectory


class JointCounts(BatchStatistic):
    """N(s,a,s') over all H steps, and sums of r - 1/2: V-free sums with one-hot features.

    See docs/papers/mixture_jdp.md#b1. A transition moves two cells by 1, a reward (centred at 1/2,
    which halves it) one cell by at most 1 or two by at most 1/2. Both are scaled so that noise of
    one size in all cells spends the given share of mu^2 on rewards. One table serves all stages
    when the task is homogeneous.

    Args:
        task: the public task; known rewards are not collected.
        reward_share: of mu^2.
    """

    def __init__(self, task: Task, reward_share: float) -> None:
        H, S, A = pairs(task)
        self.task = task
        self.pooled = task.homogeneous
        self.learned = "reward" not in task.known
        share = reward_share if self.learned else 0.0
        self.step = max(1, round(math.sqrt((1.0 - share) / 2.0) * STEPS))
        self.reward_step = math.sqrt(share) * STEPS
        G = 1 if self.pooled else H
        blocks = [Block("transitions", (G, S, A, S), 1.0 / STEPS)]
        if self.learned:
            blocks.append(Block("reward", (G, S, A), 1.0 / STEPS))
        self.layout = Layout(blocks)

    @property
    def scales(self) -> dict[str, float]:
        """What contributions of a block were multiplied by."""
        return {"transitions": self.step / STEPS, "reward": self.reward_step / STEPS}

    def add_many(
        self,
        states: IntArray,
        actions: IntArray,
        rewards: Array,
        publication: Publication,
        coins: IntArray,
        out: IntArray,
    ) -> None:
        """Add the contributions of many users, one trajectory per row."""
        views = self.layout.views(out)
        none = np.zeros((0, 1, 1), dtype=np.int64)
        add_joint_counts(
            states,
            actions,
            rewards,
            self.task.horizon,
            self.pooled,
            self.step,
            self.reward_step,
            views["transitions"],
            views.get("reward", none),
        )

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """Exact, jointly over both blocks: H repetitions of the worst pair of steps.

        Squared L2 of two steps: 2 n^2 + r^2 for another s' at the same (s, a) with rewards 0 and 1,
        which no other pair exceeds. Pooled stages add up, separate ones add squares (a last stage
        moves two cells only if (s, a) differ: bounded alike).
        """
        w = block_weights(self.layout, norm, relation, scale)
        count = w["transitions"] * self.step / STEPS
        paid = w.get("reward", 0.0) * (self.reward_step + 1.0) / STEPS if self.learned else 0.0
        H = self.task.horizon
        replaced = relation is Relation.REPLACE_ONE
        if norm == "l1":
            return H * (2.0 * count + paid if replaced else count + 0.5 * paid)
        step = math.sqrt(2.0 * count**2 + paid**2 if replaced else count**2 + 0.25 * paid**2)
        return step * (H if self.pooled else math.sqrt(H))

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """The same (s, a) all the time, with other rewards; next states differ where they can."""
        H, S, _ = pairs(self.task)
        zero = np.zeros(H, dtype=np.int64)
        one = Trajectory(np.zeros(H + 1, dtype=np.int64), zero, np.ones(H))
        return one, Trajectory(np.full(H + 1, S - 1), zero, np.zeros(H))
