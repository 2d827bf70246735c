"""The privacy errors of the published DP-LSVI-UCB++ (docs/papers/linear_jdp.md#e1 to #e4).

Each claims what the shipped curator, or the shipped statistic, claims.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array, frozen
from tacit.privacy.base import Query, Secret
from tacit.privacy.curator.curator import Curator, CuratorSecret
from tacit.privacy.curator.paper import ReusedNoise
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise
from tacit.release import Release, ValueQuery
from tacit.statistics.linear import CuratedTransitions, FeaturePairs
from tacit.task.task import Task


class DrawnOnce(ReusedNoise):
    """E1: one draw serves all releases, and the guarantee of fresh noise is claimed."""

    def _account(self, task: Task, requested: tuple[float, float]) -> Guarantee:
        return Curator._account(self, task, requested)


class AddedAgain(Curator):
    """E2: the first draw on the Gram matrices is added once more at every release."""

    def release(self, secret: Secret, query: Query | ValueQuery, noise: Noise) -> Release:
        """The exact prefix plus n times the first draw."""
        assert isinstance(secret, CuratorSecret)
        fresh = super().release(secret, query, noise)
        if isinstance(query, ValueQuery) or query.id == 0:
            return fresh
        exact = secret.sums[: self.layout.size] * self.layout.units
        if secret.once is None:
            flat = np.concatenate([block.ravel() for block in fresh.blocks.values()])
            secret.once = flat - exact
        values = self.layout.views(exact + query.id * secret.once)
        return Release(fresh.users, values, fresh.law, fresh.source)


class _AddRemovePairs(FeaturePairs):
    """Distances from nobody, where two users trade places."""

    @property
    def gram(self) -> Array:
        """|phi phi^T|^2 alone."""
        return frozen(np.maximum(self.one, self.two) ** 2)


class AddRemoveGram(CuratedTransitions):
    """E3: the Gram matrix is priced for a user who comes or goes, answers for one replaced."""

    def __init__(self, task: Task, largest_weight: float = 1.0) -> None:
        super().__init__(task, largest_weight)
        self.pairs = _AddRemovePairs(self.phi)


class LongFeatures(CuratedTransitions):
    """E4: features of norm 3 go into sums whose sensitivity assumes norm 1."""

    def __init__(self, task: Task, largest_weight: float = 1.0) -> None:
        super().__init__(task, largest_weight)
        self.phi = 3.0 * self.phi / math.sqrt(max(float(self.pairs.one.max()), 1e-9))
