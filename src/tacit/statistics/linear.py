"""Regression sums of linear MDPs.

``LinearSums`` do not depend on any value function (docs/papers/linear_jdp.md#b2);
``CuratedTransitions`` are what a curator keeps to answer regression queries, a weighted table per
stage. How far apart two steps of either can be is found by trying every pair of known features:
replacing one user replaces, at every stage, one feature vector phi (with weight w <= 1) by another
one. What that costs is a maximum over pairs of features and the corners of everything else, since
squared distances are convex in weights, rewards and values (docs/papers/linear_jdp.md#joint-price);
too many pairs are replaced by the bound that holds for every phi of norm at most 1.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.grid import STEPS
from tacit.kernels.raw.linear_sums import CuratedSums, Weights, add_steps, add_weighted_steps
from tacit.policies.tabular import uniform_policy
from tacit.publication import Publication
from tacit.statistics import base
from tacit.task.task import Task, feature_table
from tacit.trajectory import Lives, Trajectory
from tacit.validate import number

AUDIT_USERS = 64
"""Users among whom the audit's worst pair is looked for."""

MOST_PAIRS = 4_000_000
"""Pairs of features looked at one by one."""


class FeaturePairs:
    """Inner products (|phi|^2, |phi'|^2, phi.phi') of all pairs, "nobody" (zero) included.

    Args:
        phi: features [S, A, d], clipped here to norm at most 1.
    """

    def __init__(self, phi: Array) -> None:
        flat = np.unique(phi.reshape(-1, phi.shape[-1]), axis=0)
        flat = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1.0)
        self.bounded_only = len(flat) ** 2 > MOST_PAIRS
        if self.bounded_only:
            self.inner: Array = np.linspace(-1.0, 1.0, 2001)
            self.one: Array = np.ones_like(self.inner)
            self.two: Array = self.one
            return
        with_nobody = np.vstack([flat, np.zeros(flat.shape[1])])
        inner = np.clip(with_nobody @ with_nobody.T, -1.0, 1.0)
        rows, columns = np.triu_indices(len(with_nobody))
        self.inner = inner[rows, columns]
        self.one = np.diag(inner)[rows]
        self.two = np.diag(inner)[columns]

    @cached_property
    def gram(self) -> Array:
        """|phi phi^T - phi' phi'^T|_F^2 of every pair."""
        return frozen(self.one**2 + self.two**2 - 2 * self.inner**2)

    @cached_property
    def target(self) -> Array:
        """Largest |phi u - phi' u'|^2 over |u|, |u'| <= 1/2: an answer of centred range 1."""
        return frozen((self.one + self.two + 2 * np.abs(self.inner)) / 4)

    def vector(self, length2: float, least: float, largest: float) -> Array:
        """Largest |phi u^T - phi' u'^T|_F^2 for vectors u of squared length ``length2``.

        Args:
            length2: |u|^2 and |u'|^2.
            least: smallest inner product u.u'.
            largest: largest inner product u.u'.
        """
        across = np.where(self.inner >= 0.0, least, largest) * self.inner
        distance: Array = length2 * (self.one + self.two) - 2 * across
        return distance

    def worst(self, squares: Array) -> float:
        """The largest of these, with room for the angles between those looked at."""
        return float(squares.max()) * (1 + 1e-5 if self.bounded_only else 1 + 1e-12)


class LinearSums(base.BoundedSum, base.BatchStatistic):
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
        self.layout = base.Layout(
            [
                base.counted("gram", H if self.collects_reward else before, p),
                base.counted("next", before, d, S),
                base.counted("reward", H if self.collects_reward else 0, d),
            ]
        )
        self._pairs = FeaturePairs(phi)

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the sums of many users, one trajectory per row."""
        views = self.layout.views(out)
        sums = (views[name] for name in ("gram", "next", "reward"))
        add_steps(lives, self.horizon, self.phi, self.pooled, self.weights, *sums)

    def _sensitivity(self, w: dict[str, float], norm: base.Norm, replaced: bool) -> float:
        """L2: exact over all pairs of features, jointly over the blocks, plus rounding.

        Stages with tables of their own add in squares; in a pooled table H steps can all move the
        same way. L1: sqrt(cells) times that, a bound.
        """
        squares = [self._step(h, replaced, w) for h in range(self._stages)]
        if self.pooled:
            moved = self.horizon * math.sqrt(squares[0])
        else:
            moved = math.sqrt(sum(squares))
        cells = self.layout.size
        rounding = (1 + replaced) * 0.5 / STEPS
        rounding *= max(w.values()) * (self.horizon if self.pooled else 1)
        l2 = moved + rounding * math.sqrt(cells)
        return l2 if norm == "l2" else math.sqrt(cells) * l2

    @property
    def _stages(self) -> int:
        return max(block.shape[0] for block in self.layout.blocks)

    def _squares(self, h: int, factors: dict[str, float]) -> tuple[float, ...]:
        """Squared weights of Gram matrices, next states and rewards at stage h."""
        shape = {block.name: block.shape[0] for block in self.layout.blocks}
        return tuple(
            (factors[name] * weight) ** 2 if h < shape[name] else 0.0
            for name, weight in zip(("gram", "next", "reward"), self.weights, strict=True)
        )

    def _step(self, h: int, replaced: bool, factors: dict[str, float]) -> float:
        """Squared distance that one replaced (or removed) step can make at stage h."""
        S, pairs = self.phi.shape[0], self._pairs
        gram, follow, reward = self._squares(h, factors)
        length2 = follow * (1 - 1 / S) + reward / 4
        if not replaced:
            norm2 = float(pairs.one.max())
            return float(gram * norm2**2 + length2 * norm2)
        least = (-follow / S if S > 1 else 0.0) - reward / 4
        return pairs.worst(gram * pairs.gram + pairs.vector(length2, least, length2))

    def opposed(self) -> float:
        """k: no two contributions x, x' have an inner product below -k |x| |x'|; at most 1.

        Of two steps, (phi . phi')^2 of the Gram matrices speaks against what next states and
        rewards can oppose, and one-hot features give 0. Exact over pairs of features, plus
        rounding; in a pooled table steps may cancel, so that x is shorter than they are together
        (proofs/lifetimes.md).
        """
        if self._pairs.bounded_only:
            return 1.0
        k = max((self._opposed_steps(h) for h in range(self._stages)), default=0.0)
        if self.pooled:
            left = 1.0 + k - k * self.horizon
            k = k * self.horizon / left if left > 0.0 else 1.0
        return min(k, 1.0)

    def _opposed_steps(self, h: int) -> float:
        """The same of two steps at stage h, a step without a next state among them."""
        S, pairs = self.phi.shape[0], self._pairs
        gram, follow, reward = self._squares(h, {"gram": 1.0, "next": 1.0, "reward": 1.0})
        some = pairs.one * pairs.two > 0.0
        one, two, inner = pairs.one[some], pairs.two[some], np.abs(pairs.inner[some])
        if gram == 0.0 or not some.any():
            return 1.0 if some.any() else 0.0
        away = np.where(pairs.inner[some] > 0.0, follow / S if S > 1 else 0.0, follow * (1 - 1 / S))
        worst = 0.0
        for length2, against in ((0.0, 0.0), (follow * (1 - 1 / S), away)):
            rest = gram * inner**2 - inner * against  # falls with rewards; lengths may not
            known = length2 + np.where(rest >= 0.0, reward / 4, 0.0)
            lengths2 = (gram * one**2 + known * one) * (gram * two**2 + known * two)
            worst = max(worst, float(((inner * reward / 4 - rest) / np.sqrt(lengths2)).max()))
        cells = sum(math.prod(block.shape[1:]) for block in self.layout.blocks)
        least = math.sqrt(gram) * float(min(one.min(), two.min()))
        off = 0.5 / STEPS * math.sqrt(cells) / least
        return (worst + 2 * off + off**2) / (1 - off) ** 2 if off < 1.0 else 1.0

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


class CuratedTransitions(base.BoundedSum, base.BatchStatistic):
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
        self.layout = base.Layout(
            [
                base.counted("gram", H, packed),
                base.counted("table", H, S, A, S),
                base.counted("reward", H, S, A),
            ]
        )
        self.pairs = FeaturePairs(self.phi)
        self.equal_weights: Array = frozen(np.full((H, S, A), self.largest_weight))

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the sums of many users, one trajectory per row."""
        views, weights = self.layout.views(out), self.weights(publication)
        add_weighted_steps(lives, self.phi, weights, self.largest_weight, CuratedSums(**views))

    def weights(self, publication: Publication) -> Array:
        """The table of weights that goes with a publication."""
        table = publication.context.get("weights") if publication is not None else None
        if table is None or table.shape != self.equal_weights.shape:
            return self.equal_weights
        return table

    def _sensitivity(self, w: dict[str, float], norm: base.Norm, replaced: bool) -> float:
        """A bound for the whole vector: Gram matrices by pairs, two cells per stage for the rest.

        Mechanisms ask for the block they release (the others scaled to 0).
        """
        H, most, d = self.horizon, self.largest_weight, self.phi.shape[2]
        twice = 1 + replaced
        worst = self.pairs.gram if replaced else self.pairs.one**2
        gram = most * math.sqrt(self.pairs.worst(worst)) + twice * 0.5 / STEPS * d
        cell = math.sqrt(twice) * most
        moved = {"gram": gram, "table": cell, "reward": cell}
        l2 = math.sqrt(H * sum((w[name] * moved[name]) ** 2 for name in moved))
        if norm == "l2":
            return l2
        cells = {"gram": d * (d + 1) // 2, "table": twice, "reward": twice}
        return float(H * sum(w[n] * moved[n] * math.sqrt(cells[n]) for n in moved))

    def largest_cell(self) -> float:
        """What one user can add to a cell at most."""
        return math.sqrt(2.0) * self.largest_weight + 1.0 / STEPS

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """The furthest two of many users."""
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
    statistic: base.Statistic, horizon: int, states: int, actions: int
) -> tuple[Trajectory, Trajectory]:
    """The furthest two among users who alternate between two random steps; rewards 0 or 1."""
    H, rng = horizon, np.random.default_rng(0)
    nothing = Publication(0, uniform_policy(H, states, actions))
    users, vectors = [], []
    for trial in range(AUDIT_USERS):
        user = Trajectory(
            np.resize(rng.integers(0, states, size=2), H + 1),
            np.resize(rng.integers(0, actions, size=2), H),
            np.full(H, float(trial % 2)),
        )
        users.append(user)
        vectors.append(base.contribution_of(statistic, user, nothing, 0) * statistic.layout.units)
    points = np.array(vectors)
    squares = (points**2).sum(axis=1)
    apart = squares[:, None] + squares[None] - 2 * points @ points.T
    i, j = np.unravel_index(np.argmax(apart), apart.shape)
    return users[int(i)], users[int(j)]
