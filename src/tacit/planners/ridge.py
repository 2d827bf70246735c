"""Ridge regression for linear MDPs from noisy sums: an optimistic prior instead of a bonus."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.kernels.planning import greedy
from tacit.planners.base import Ask, Streams, next_version
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task, feature_table


def unpacked(packed: Array, dimension: int) -> Array:
    """Symmetric matrices [G, d, d] from packed ones [G, p]; p = d holds diagonals alone."""
    groups, size = packed.shape
    matrices = np.zeros((groups, dimension, dimension))
    if size == dimension:
        matrices[:, range(dimension), range(dimension)] = packed
        return matrices
    rows, columns = np.triu_indices(dimension)
    entries = packed / np.where(rows == columns, 1.0, math.sqrt(2.0))
    matrices[:, rows, columns] = matrices[:, columns, rows] = entries
    return matrices


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
    """Clip eigenvalues of the released Gram matrices at ``floor``, add ``prior`` (spec B4)."""
    values, axes = np.linalg.eigh(gram)
    kept = np.maximum(values, floor) + prior
    rotated = phi @ axes
    scaled = rotated / kept[:, None, :]
    inverse = np.swapaxes(axes, 1, 2)
    weights = scaled @ inverse
    excess = (kept - values) * (inverse @ ones)
    return Ridge(weights, (scaled @ excess[:, :, None])[:, :, 0])


@dataclass(frozen=True)
class RidgePlanner:
    """Value iteration by ridge regression that shrinks towards the top of the range.

    Spec linear_jdp, B1, B2 and B4. At stage h (rewards to come at most t) the prediction of r + V
    is m + phi^T Lam^-1 y + (t - m) phi^T Lam^-1 (Lam - G~) v, with <v, phi> = 1: where there are no
    data it is t, so nothing else has to drive exploration.

    Attributes:
        gram_weight: factor of the block "gram" in the release.
        next_weight: factor of the block "next".
        reward_weight: factor of the block "reward".
        prior: ridge lambda.
        floor: where eigenvalues are clipped, in units of the edge of the noise.
        width: bonus in units of the noise's exact standard deviation in a prediction.
        sampling: the same, drawn instead of added.
    """

    gram_weight: float
    next_weight: float
    reward_weight: float
    prior: float
    floor: float
    width: float
    sampling: float = 0.0

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Backward induction on the released sums."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        phi = feature_table(task).reshape(S * A, -1)
        d = phi.shape[1]
        packed = release.blocks["gram"] / self.gram_weight
        follow = release.blocks["next"] / self.next_weight
        reward = release.blocks["reward"] / self.reward_weight
        known = task.known.get("reward")
        std = release.law.scale("gram")
        edge = noise_edge(std / self.gram_weight, d, packed.shape[1] == d)
        ones = np.linalg.lstsq(phi, np.ones(S * A), rcond=None)[0]
        fit = ridge(unpacked(packed, d), phi, ones, self.prior, self.floor * edge)
        spread = np.sqrt((fit.weights**2).sum(axis=2))
        Q = np.empty((H, S, A))
        V = np.zeros(S)
        for h in reversed(range(H)):
            top = float(H - h) if known is None else float(H - h - 1)
            g = 0 if len(packed) == 1 else h
            middle, y, variance = 0.0, np.zeros(d), 0.0
            if h < H - 1:
                centred = V - V.mean()
                middle += float(V.mean())
                y += follow[g] @ centred
                variance += (std / self.next_weight) ** 2 * float(centred @ centred)
            if known is None:
                middle += 0.5
                y += reward[g]
                variance += (std / self.reward_weight) ** 2
            if g < len(packed):
                noise = math.sqrt(variance)
                y += self.sampling * noise * streams.posterior.standard_normal(d)
                q = middle + fit.weights[g] @ y + (top - middle) * fit.residual[g]
                q = np.clip(q + self.width * noise * spread[g], 0.0, top)
            else:
                q = np.zeros(S * A)
            Q[h] = q.reshape(S, A)
            if known is not None:
                Q[h] += known[h if len(known) > 1 else 0]
            V = Q[h].max(axis=1)
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        return Publication(next_version(previous), TabularPolicy(actions))
