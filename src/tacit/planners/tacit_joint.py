"""Planning on jointly private sums: posterior sampling on counts, optimism on regressions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels.public.mixture import (
    FamilyRegression,
    StageRegressions,
    Widths,
    vfree_induction,
    work_space,
)
from tacit.kernels.public.planning import backward_induction
from tacit.kernels.public.posterior import sample_joint_model
from tacit.planners.base import Context, Streams, ValuePlanner, averaged, pair_rewards
from tacit.policies.tabular import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.features import Geometry, known_rewards
from tacit.task.pairs import full_rows
from tacit.task.task import Task, table_sizes


@dataclass(frozen=True, kw_only=True)
class JointCountsPlanner(ValuePlanner):
    """Draws a model that the released counts and their noise allow, plays its best policy.

    The publication remembers which actions were ever prescribed: others have no data, whatever the
    noise says.

    Attributes:
        transition_scale: what counts were multiplied by before noise was added.
        reward_scale: the same for reward sums.
        width: how much of the released noise is drawn again; 1 is the posterior under a flat prior.
    """

    transition_scale: float
    reward_scale: float
    width: float

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Sample, then plan exactly in the sample."""
        (H, S, _), pairs = table_sizes(task), task.pairs
        X = len(pairs.action)
        counts = release.blocks["transitions"].reshape(-1, X, S) / self.transition_scale
        G = len(counts)
        tried = np.zeros((G, *pairs.shape()), dtype=np.int64)
        if previous is not None:
            assert isinstance(previous.policy, TabularPolicy)
            tried = previous.context["tried"].copy()
            played = pairs.number[np.arange(S), previous.policy.actions]
            stage, state = np.nonzero(played >= 0)
            np.add.at(tried.reshape(G, X), (stage % G, played[stage, state]), 1)
        known, paid, paid_std = np.zeros((0, X)), np.zeros((G, X)), 0.0
        if "reward" in release.blocks:
            paid = release.blocks["reward"].reshape(G, X) / self.reward_scale
            paid_std = _std(release, "reward") / self.reward_scale
        else:
            known = np.ascontiguousarray(np.broadcast_to(pair_rewards(task), (G, X)))
        P, R = np.empty((G, X, S)), np.empty((G, X))
        counts_std, marks = (
            _std(release, "transitions") / self.transition_scale,
            tried.reshape(G, X),
        )
        stds = self.width * counts_std, self.width * paid_std

        def draw() -> None:
            sample_joint_model(counts, paid, known, marks, *stds, streams.posterior, P, R)

        averaged(draw, (P, R), streams.draws)
        Q, V, none = np.full((H, X), np.inf), np.empty((H + 1, S)), np.zeros((0, 0))
        rows = full_rows(G, X, S)
        backward_induction(pairs.first, rows, P.ravel(), none, R, task.end_reward, Q, V)
        return Q, {"tried": tried}


def _std(release: Release, block: str) -> float:
    return math.sqrt(float(release.law.variance(block).max()))


@dataclass(frozen=True, kw_only=True, eq=False)
class VFreePlanner(ValuePlanner):
    """Optimistic planning on the multi-target regression.

    The regression is that of docs/papers/mixture_jdp.md#b1, its widths are those of
    docs/papers/mixture_jdp.md#tight-widths.

    Attributes:
        geometry: the public geometry.
        scales: what contributions of a family were multiplied by.
        columns: which packed cells of a family were sent.
        bonus_scale: c; 1 is the theorem.
        beta: failure probability.
        ridge: lambda.
        releases: number of releases.
    """

    geometry: Geometry
    scales: Mapping[str, float]
    columns: Mapping[str, IntArray]
    bonus_scale: float
    beta: float
    ridge: float
    releases: int

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Greedy in the optimistic values."""
        (H, S, A), g = table_sizes(task), self.geometry
        trace = float(np.trace(g.moments, axis1=1, axis2=2).max())
        lengths = (g.varphi**2).sum(axis=1).max()
        names, bounds = ("gram", "target"), (g.theta_norm, trace, 2**-0.5)
        moves = self._family(task, release, names, g.phi, *bounds)
        names, bounds = ("reward_gram", "reward_target"), (g.reward_norm, lengths, 0.5)
        paid = self._family(task, release, names, g.varphi, *bounds)
        facts = g.full, g.origin, g.offset, known_rewards(task), g.simplex, task.homogeneous
        Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))
        vfree_induction(moves, paid, *facts, np.zeros(len(g.origin)), Q, V)
        return Q, {}

    def _family(
        self,
        task: Task,
        release: Release,
        names: tuple[str, str],
        phi: Array,
        theta: float,
        trace: float,
        spread: float,
    ) -> FamilyRegression:
        """Released cells back in their places; cells that were never sent are exact zeros.

        ``theta`` bounds |theta|, ``trace`` the trace of a step's Gram matrix, ``spread`` a target.
        """
        d, blocks, stds = phi.shape[-1], release.blocks, []
        ones = np.ones(len(blocks.get(names[0], ())))
        gram, target = (np.zeros((len(ones), 1, size)) for size in (d * (d + 1) // 2, d))
        for name, cells in zip(names, (gram, target), strict=True):
            if name in blocks:
                cells[:, 0, self.columns[name]] = blocks[name]
            stds.append(_std(release, name) / self.scales[name] if name in blocks else 0.0)
        first, second = (ones / self.scales.get(name, 1.0) for name in names)
        steps = task.users * (task.horizon if task.homogeneous else 1)
        union = self.releases * task.horizon / self.beta
        rows, columns = np.tril_indices(d)
        sent = self.columns.get(names[0], np.zeros(0, dtype=np.int64))
        diagonal = bool((rows[sent] == columns[sent]).all())
        root = math.sqrt(2 * math.log(8 * union * (d if diagonal else 1)))
        largest = stds[0] * (root if diagonal else math.sqrt(2 * d) + root)
        reach = math.sqrt(d) + math.sqrt(2 * math.log(4 * union))
        shift = largest + self.ridge
        fixed = math.sqrt(shift + largest) * theta + stds[1] * reach / math.sqrt(self.ridge)
        widths = Widths(
            scale=self.bonus_scale,
            ridge=self.ridge,
            shift=shift * ones,
            spread=spread * ones,
            log=2 * math.log(task.horizon / self.beta),
            most=d * math.log1p(steps * trace / (d * self.ridge)) * ones,
            fixed=fixed * ones,
            direct=(shift * theta + math.hypot(stds[1], stds[0] * theta) * reach) * ones,
        )
        one_block = np.zeros(len(phi), dtype=np.int64)
        regressions = StageRegressions(gram, target, first, second, math.sqrt(2))
        return FamilyRegression(regressions, widths, phi, one_block, work_space(1, d))
