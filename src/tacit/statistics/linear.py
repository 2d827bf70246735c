"""Regression sums that do not depend on any value function (docs/papers/linear_jdp.md#b2)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels.linear_sums import Weights, add_steps
from tacit.policy import uniform_policy
from tacit.publication import Publication
from tacit.statistics.base import (
    BatchStatistic,
    Block,
    Layout,
    Norm,
    Relation,
    Statistic,
    block_weights,
)
from tacit.statistics.pairs import FeaturePairs
from tacit.task import Task, feature_table
from tacit.trajectory import Trajectory

TRIED = 64
"""Users among whom the audit's worst pair is looked for."""


class LinearSums(BatchStatistic):
    """Per stage: sum phi phi^T, sum phi (e_{s'} - 1/S)^T and sum phi (r - 1/2).

    The last two serve any value function V: sum phi (V(s') - mean V) is the second times V. They
    are running sums, so a continual counter can release them, each user counted once. Rewards that
    the task reveals are not collected, and then the last stage has nothing to say. One table serves
    all stages where the task is declared homogeneous.

    Args:
        task: the public task; its features, or one coordinate per pair (s, a).
        weights: public factors of the blocks, which divide the budget between them.
    """

    def __init__(self, task: Task, weights: Weights) -> None:
        phi = clipped_features(task)
        S, _, d = phi.shape
        self.phi = phi
        self.weights = weights
        self.horizon = task.horizon
        self.pooled = task.homogeneous
        self.collects_reward = "reward" not in task.known
        H = 1 if self.pooled else task.horizon
        before = H if self.pooled else H - 1
        p = d if is_one_hot(phi) else d * (d + 1) // 2
        self.layout = Layout(
            [
                Block("gram", (H if self.collects_reward else before, p), 1.0 / STEPS),
                Block("next", (before, d, S), 1.0 / STEPS),
                Block("reward", (H if self.collects_reward else 0, d), 1.0 / STEPS),
            ]
        )
        self._pairs = FeaturePairs(phi)

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
        add_steps(
            states,
            actions,
            rewards,
            self.horizon,
            self.phi,
            self.pooled,
            self.weights,
            views["gram"],
            views["next"],
            views["reward"],
        )

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """L2: exact over all pairs of features, jointly over the blocks, plus rounding.

        Stages with tables of their own add in squares; in a pooled table H steps can all move the
        same way. L1: sqrt(cells) times that, a bound.
        """
        factors = block_weights(self.layout, norm, relation, scale)
        squares = [self._step(h, relation, factors) for h in range(self._stages)]
        if self.pooled:
            moved = self.horizon * math.sqrt(squares[0])
        else:
            moved = math.sqrt(sum(squares))
        cells = self.layout.size
        rounding = (2 if relation is Relation.REPLACE_ONE else 1) * 0.5 / STEPS
        rounding *= max(factors.values()) * (self.horizon if self.pooled else 1)
        l2 = moved + rounding * math.sqrt(cells)
        return l2 if norm == "l2" else math.sqrt(cells) * l2

    @property
    def _stages(self) -> int:
        return max(block.shape[0] for block in self.layout.blocks)

    def _step(self, h: int, relation: Relation, factors: Mapping[str, float]) -> float:
        """Squared distance that one replaced (or removed) step can make at stage h."""
        S, pairs = self.phi.shape[0], self._pairs
        shape = {block.name: block.shape[0] for block in self.layout.blocks}
        gram, follow, reward = (
            (factors[name] * weight) ** 2 if h < shape[name] else 0.0
            for name, weight in zip(("gram", "next", "reward"), self.weights, strict=True)
        )
        length2 = follow * (1 - 1 / S) + reward / 4
        if relation is Relation.ADD_REMOVE_ONE:
            norm2 = float(pairs.one.max())
            return float(gram * norm2**2 + length2 * norm2)
        least = (-follow / S if S > 1 else 0.0) - reward / 4
        return pairs.worst(gram * pairs.gram + pairs.vector(length2, least, length2))

    def largest_cell(self) -> float:
        """What one user can add to a cell at most."""
        steps = self.horizon if self.pooled else 1
        return steps * (max(math.sqrt(2.0) * self.weights.gram, *self.weights) + 1.0 / STEPS)

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """The furthest two of many users.

        Neighbouring steps share a state, so no trajectory can be worst at every stage: the pair
        comes close to the declared sensitivity and need not reach it.
        """
        return furthest_pair(self, self.horizon, *self.phi.shape[:2])


def clipped_features(task: Task) -> Array:
    """Features phi [S, A, d], every vector of norm at most 1."""
    phi = np.asarray(feature_table(task), dtype=np.float64)
    norms = np.linalg.norm(phi, axis=2, keepdims=True)
    return np.ascontiguousarray(phi / np.maximum(norms, 1.0))


def is_one_hot(phi: Array) -> bool:
    """Whether every phi(s, a) is a coordinate vector: then Gram matrices are diagonal."""
    return bool(((phi != 0).sum(axis=2) == 1).all())


def furthest_pair(
    statistic: Statistic, horizon: int, states: int, actions: int
) -> tuple[Trajectory, Trajectory]:
    """The furthest two among users who alternate between two random steps; rewards 0 or 1."""
    H, rng = horizon, np.random.default_rng(0)
    nothing = Publication(0, uniform_policy(H, states, actions))
    users, vectors = [], []
    for trial in range(TRIED):
        user = Trajectory(
            np.resize(rng.integers(0, states, size=2), H + 1),
            np.resize(rng.integers(0, actions, size=2), H),
            np.full(H, float(trial % 2)),
        )
        out = np.zeros(statistic.layout.size, dtype=np.int64)
        statistic.contribute(user, nothing, 0, out)
        users.append(user)
        vectors.append(out * statistic.layout.units)
    points = np.array(vectors)
    squares = (points**2).sum(axis=1)
    apart = squares[:, None] + squares[None] - 2 * points @ points.T
    i, j = np.unravel_index(np.argmax(apart), apart.shape)
    return users[int(i)], users[int(j)]
