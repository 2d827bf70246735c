"""Mistakes that published private-learning code has made, in tabular mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import GRID
from tacit.planners.base import Ask, Streams, next_version
from tacit.policies.tabular import TabularPolicy
from tacit.privacy.base import Query, Secret
from tacit.privacy.counters.state import Buffers
from tacit.privacy.counters.tree import Tree
from tacit.privacy.finite.subset import KaryResponse
from tacit.privacy.local.additive import LocalAdditive, least_scales
from tacit.privacy.noise import Noise
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics import Relation
from tacit.statistics.base import Norm
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task
from tacit.trajectory import Trajectory


class SharedDraw(LocalAdditive):
    """One draw for all cells: differences between cells are exact."""

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """Noise of the first cell, everywhere."""
        honest = super().randomize(0 * contribution, publication, noise)
        return contribution * self.factors + honest[0]


class NotAdded(LocalAdditive):
    """Noise is drawn, and forgotten."""

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """The contribution as it is."""
        super().randomize(contribution, publication, noise)
        return contribution * self.factors


class SideField(LocalAdditive):
    """One cell of the report travels without noise."""

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """All noised but the last cell."""
        values = super().randomize(contribution, publication, noise)
        values[-1] = contribution[-1] * self.factors[-1]
        return values


class OnceForEver(LocalAdditive):
    """The first user's noise serves everybody: successive releases differ by exact user data."""

    kept: IntArray | None = None

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """Noise drawn once per learner."""
        if self.kept is None:
            self.kept = super().randomize(0 * contribution, publication, noise)
        return contribution * self.factors + self.kept

    def init(self) -> Secret:
        """A new learner draws anew."""
        self.kept = None
        return super().init()


class ReusedKeys(LocalAdditive):
    """The key of a draw becomes the next key: report k + 1 starts with report k's second cell."""

    tape: IntArray | None = None

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """The old noise moved up by one cell, and a single fresh draw at the end."""
        fresh = super().randomize(0 * contribution, publication, noise)
        if self.tape is None:
            self.tape = fresh
        else:
            self.tape = np.concatenate([self.tape[1:], fresh[:1]])
        return contribution * self.factors + self.tape

    def init(self) -> Secret:
        """A new learner starts a new chain."""
        self.tape = None
        return super().init()


class Seeded(LocalAdditive):
    """Noise from a generator of its own with a fixed seed: anybody can subtract it."""

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """The same noise in every report, whatever source was given."""
        draw = np.random.default_rng(0).laplace(0.0, self.noise_law.scales)
        return contribution * self.factors + np.rint(draw).astype(np.int64)


class Redrawn(LocalAdditive):
    """Fresh noise at every release of the same data: it averages out."""

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """No noise on the device."""
        return contribution * self.factors

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """Exact sums plus a new draw."""
        draw = np.empty_like(secret.sums)
        noise.fill(self.noise_law, draw)
        values = self.layout.views((secret.sums + draw) * GRID)
        return Release(secret.users, values, self.law(secret.users), noise.source)


def _weakened(name: str, factor: Callable[[VisitCounts], float]) -> type[LocalAdditive]:
    """A mechanism that claims its scales and draws with smaller ones."""

    class Weak(LocalAdditive):
        def __init__(self, statistic: VisitCounts, task: Task, *args: Any, **options: Any) -> None:
            super().__init__(statistic, task, *args, **options)
            self.noise_law.scales = self.noise_law.scales * factor(statistic)

    Weak.__name__ = name
    return Weak


HorizonForgotten = _weakened("HorizonForgotten", lambda counts: 1.0 / counts.horizon)
ConstantMiscopied = _weakened("ConstantMiscopied", lambda counts: 0.5**0.5)
TunedForAPlot = _weakened("TunedForAPlot", lambda counts: 0.1)
HalvedNoise = _weakened("HalvedNoise", lambda counts: 0.5)
AddRemoveRelation = _weakened(
    "AddRemoveRelation",
    lambda counts: (
        counts.sensitivity("l1", Relation.ADD_REMOVE_ONE)
        / counts.sensitivity("l1", Relation.REPLACE_ONE)
    ),
)


def overconfident_response(epsilon: float, domain: int) -> KaryResponse:
    """A k-ary response whose truth probability was computed for twice the epsilon it claims."""
    return KaryResponse.calibrate(2.0 * epsilon, domain)


class UnclippedRewards(VisitCounts):
    """Rewards enter as they come, whatever range was declared."""

    def contribute(
        self, trajectory: Trajectory, publication: Publication, coin: int, out: IntArray
    ) -> None:
        """Count, then overwrite the reward sums with unclipped ones."""
        super().contribute(trajectory, publication, coin, out)
        rewards = np.nan_to_num(trajectory.rewards[: self.horizon])
        table = self.layout.views(out)["reward"]
        table[...] = 0
        for s, a, r in zip(trajectory.states, trajectory.actions, rewards, strict=False):
            table[0, s % table.shape[1], a % table.shape[2]] += round(float(r) * 2**24)


class PerCoordinateClip(VisitCounts):
    """Claims an L2 bound for the whole vector, but clips every coordinate on its own."""

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """The bound of a single cell."""
        return 2.0 * self.horizon if norm == "l1" else 2.0**0.5 * self.horizon


class RawWidths:
    """A planner whose bonus reads exact sums behind the wall."""

    def __init__(self, secret: Callable[[], Array]) -> None:
        self.secret = secret

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Prefer the action with fewer exact visits."""
        visits = self.secret()
        table = np.tile(visits.argmin(axis=-1), (task.horizon, 1))
        return Publication(next_version(previous), TabularPolicy(table))


class NaturalLog(Tree):
    """Counts the levels of the tree with the wrong logarithm."""

    def column_norm(self) -> float:
        """Ln n levels where log2 n are needed."""
        return math.sqrt(math.floor(math.log(self.length)) + 1)


class PowerOfTwo(Tree):
    """One level short at powers of two, where the last release opens a new one."""

    def column_norm(self) -> float:
        """ceil(log2 n) levels, although prefix n is released too."""
        return math.sqrt(max(math.ceil(math.log2(self.length)), 1))


class WrongCover(Tree):
    """Adds up the lowest nodes instead of the dyadic cover."""

    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """As many blocks as the cover has, but the wrong ones."""
        super().decode(public, t, published)
        prefix: Array = public["blocks"][: t.bit_count()].sum(axis=0).astype(np.float64)
        return prefix


def absolute_regret(regret: Array) -> Array:
    """Regret made positive by force: hides a learner that is scored wrongly."""
    return np.abs(regret)


def first_action(Q: Array, ties: np.random.Generator, actions: IntArray) -> bool:
    """Argmax that always breaks ties towards action 0."""
    actions[...] = Q.argmax(axis=2)
    return True


def same_claim(broken: type[LocalAdditive], task: Task, epsilon: float) -> LocalAdditive:
    """A mutant with the scales, and so the claim, of the right Laplace mechanism."""
    statistic = VisitCounts(task)
    scales = least_scales(statistic, "laplace", epsilon)
    return broken(statistic, task, "laplace", scales, requested=(epsilon, 0.0))
