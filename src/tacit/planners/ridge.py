"""Ridge regression for linear MDPs from noisy sums: an optimistic prior instead of a bonus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.planners.base import Ask, Context, QueryPlanner, Streams, greedy_actions, next_version
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release, ValueQuery
from tacit.task.task import Task, feature_table, table_sizes


@lru_cache(maxsize=64)
def _upper(dimension: int) -> tuple[IntArray, IntArray, Array]:
    """Rows, columns and weights of the packed entries."""
    rows, columns = np.triu_indices(dimension)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2.0))


def unpacked(packed: Array, dimension: int) -> Array:
    """Symmetric matrices [G, d, d] from packed ones [G, p]; p = d holds diagonals alone."""
    groups, size = packed.shape
    matrices = np.zeros((groups, dimension, dimension))
    if size == dimension:
        matrices[:, range(dimension), range(dimension)] = packed
        return matrices
    rows, columns, weights = _upper(dimension)
    entries = packed / weights
    matrices[:, rows, columns] = matrices[:, columns, rows] = entries
    return matrices


@lru_cache(maxsize=8)
def _direction(flat: bytes, shape: tuple[int, ...]) -> Array:
    phi = np.frombuffer(flat).reshape(shape)
    return frozen(np.linalg.lstsq(phi, np.ones(shape[0]), rcond=None)[0])


def unit_direction(phi: Array) -> Array:
    """The v of least norm with <v, phi> = 1 for all features [S A, d]; kept, as plans repeat it."""
    return _direction(phi.tobytes(), phi.shape)


def noise_edge(std: float, dimension: int, diagonal: bool) -> float:
    """About the largest eigenvalue of the noise in a Gram matrix.

    Packed entries have this standard deviation, so off-diagonal ones have std / sqrt 2 and the
    spectrum ends near 2 sqrt(d) std / sqrt 2; the largest of d diagonal entries is near sqrt(2 ln
    d) of them.
    """
    if diagonal:
        return std * math.sqrt(2 * math.log(max(dimension, 2)))
    return std * math.sqrt(2 * dimension)


@dataclass(frozen=True)
class Ridge:
    """Regularised Gram matrices of all stages and what prediction needs of them.

    Attributes:
        weights: Phi Lam^-1 [G, S A, d].
        residual: phi^T Lam^-1 (Lam - G~) v [G, S A]: the share of the prior in each prediction.
    """

    weights: Array
    residual: Array


def ridge(gram: Array, phi: Array, ones: Array, prior: float, floor: float) -> Ridge:
    """Clip eigenvalues of the released Gram matrices at ``floor``, add ``prior``.

    Why a floor: docs/papers/linear_jdp.md#b4.
    """
    values, axes = np.linalg.eigh(gram)
    kept = np.maximum(values, floor) + prior
    rotated = phi @ axes
    scaled = rotated / kept[:, None, :]
    inverse = np.swapaxes(axes, 1, 2)
    weights = scaled @ inverse
    excess = (kept - values) * (inverse @ ones)
    return Ridge(weights, (scaled @ excess[:, :, None])[:, :, 0])


@dataclass(frozen=True)
class RidgeBlocks:
    """What the release holds, in natural units, and how to ask for what it does not hold.

    Attributes:
        gram: factor of the block "gram" in the release.
        next: factor of the block "next".
        reward: factor of the block "reward".
        answered: sums are asked for (one range R_h [H] per stage, centred) and not in the release.
    """

    gram: float
    next: float
    reward: float
    answered: tuple[float, ...] = ()


@dataclass(frozen=True)
class RidgePlanner(QueryPlanner):
    """Value iteration by ridge regression that shrinks towards the top of the range.

    The prior of docs/papers/linear_jdp.md#b1. At stage h, where what is predicted is at most t, it
    is m + phi^T Lam^-1 y + (t - m) phi^T Lam^-1 (Lam - G~) v, with <v, phi> = 1 and y the noisy sum
    of phi (r + V(s') - m): without data it is t, so nothing else has to drive exploration. Known
    rewards are added to the prediction of V instead.

    Attributes:
        blocks: factors of the released blocks.
        prior: ridge lambda.
        floor: where eigenvalues are clipped, in units of the edge of the noise.
    """

    blocks: RidgeBlocks
    prior: float
    floor: float

    def choose(
        self, task: Task, release: Release, ask: Ask, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """Backward induction on the released sums."""
        H, S, A = table_sizes(task)
        known, version = task.known.get("reward"), next_version(previous)
        fit = self._fit(task, release)
        Q, V = np.empty((H, S, A)), np.zeros(S)
        for h in reversed(range(H)):
            top = float(H - h) if known is None else float(H - h - 1)
            g = 0 if task.homogeneous and not self.blocks.answered else h
            q = np.full(S * A, top)
            if top > 0 and release.users:
                middle, y = self._sum(release, ask, version, h, g, V)
                q = middle + fit.weights[g] @ y + (top - middle) * fit.residual[g]
            Q[h] = np.clip(q, 0.0, top).reshape(S, A)
            if known is not None:
                Q[h] += known[h if len(known) > 1 else 0]
            V = Q[h].max(axis=1)
        return TabularPolicy(greedy_actions(Q, task, streams)), {}

    def _fit(self, task: Task, release: Release) -> Ridge:
        _, S, A = table_sizes(task)
        phi = feature_table(task).reshape(S * A, -1)
        d = phi.shape[1]
        packed = release.blocks["gram"] / self.blocks.gram
        std = release.law.scale("gram") / self.blocks.gram
        floor = self.floor * noise_edge(std, d, packed.shape[1] == d)
        return ridge(unpacked(packed, d), phi, unit_direction(phi), self.prior, floor)

    def _sum(
        self, release: Release, ask: Ask, version: int, h: int, g: int, V: Array
    ) -> tuple[float, Array]:
        """The centre m and the noisy sum of phi (r + V(s') - m); g is the table of stage h."""
        if self.blocks.answered:
            query = ValueQuery((version, "value", h), "value", h, V)
            answer: Array = ask(query).blocks["answer"]
            return self.blocks.answered[h] / 2, answer
        follow, reward = release.blocks["next"], release.blocks["reward"]
        middle, y = 0.0, np.zeros(follow.shape[1])
        if g < len(follow):
            middle = float(V.mean())
            y += follow[g] @ (V - middle) / self.blocks.next
        if g < len(reward):
            middle += 0.5
            y += reward[g] / self.blocks.reward
        return middle, y
