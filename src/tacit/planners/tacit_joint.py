"""Planning on jointly private sums: posterior sampling on counts, optimism on regressions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels.public.mixture import StageRegressions, Widths, vfree_induction, work_space
from tacit.kernels.public.planning import backward_induction
from tacit.kernels.public.posterior import mark_tried, sample_joint_model
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
            marks = tried.reshape(G, X)
            mark_tried(previous.policy.actions, task.homogeneous, pairs.number, marks)
        known, paid, paid_std = np.zeros((0, X)), np.zeros((G, X)), 0.0
        if "reward" in release.blocks:
            paid = release.blocks["reward"].reshape(G, X) / self.reward_scale
            paid_std = _std(release, "reward") / self.reward_scale
        else:
            known = np.ascontiguousarray(np.broadcast_to(pair_rewards(task), (G, X)))
        P, R = np.empty((G, X, S)), np.empty((G, X))
        counts_std = _std(release, "transitions") / self.transition_scale

        def draw() -> None:
            sample_joint_model(
                counts,
                paid,
                known,
                tried.reshape(G, X),
                counts_std,
                paid_std,
                self.width,
                streams.posterior,
                np.empty(S),
                P,
                R,
            )

        averaged(draw, (P, R), streams.draws)
        Q, V, none = np.full((H, X), np.inf), np.empty((H + 1, S)), np.zeros((0, 0))
        rows = full_rows(G, X, S)
        backward_induction(pairs.first, *rows, P.ravel(), none, R, task.end_reward, Q, V)
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
        H, S, A = table_sizes(task)
        g = self.geometry
        d, d2 = g.phi.shape[2], g.varphi.shape[1]
        transitions = self._regression(release, "gram", "target", d)
        rewards = self._regression(release, "reward_gram", "reward_target", d2)
        trace = float(np.trace(g.moments, axis1=1, axis2=2).max())
        lengths = (g.varphi**2).sum(axis=1).max()
        p_widths = self._widths(task, release, ("gram", "target"), d, g.theta_norm, trace, 2**-0.5)
        r_widths = self._widths(
            task, release, ("reward_gram", "reward_target"), d2, g.reward_norm, lengths, 0.5
        )
        Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))
        vfree_induction(
            transitions,
            p_widths,
            g.phi,
            g.full,
            g.origin,
            rewards,
            r_widths,
            g.varphi,
            g.offset,
            known_rewards(task),
            g.simplex,
            task.homogeneous,
            work_space(S * A, 1, d),
            work_space(1, 1, d2),
            np.zeros(len(g.origin)),
            Q,
            V,
        )
        return Q, {}

    def _regression(self, release: Release, gram: str, target: str, d: int) -> StageRegressions:
        """Released cells back in their places; cells that were never sent are exact zeros."""
        if gram not in release.blocks:
            empty = np.ones(0)
            return StageRegressions(
                np.zeros((0, 1, 1)), np.zeros((0, 1, d)), empty, empty, math.sqrt(2)
            )
        stages = len(release.blocks[gram])
        cells = np.zeros((stages, 1, d * (d + 1) // 2))
        cells[:, 0, self.columns[gram]] = release.blocks[gram]
        sums = np.zeros((stages, 1, d))
        sums[:, 0, self.columns[target]] = release.blocks[target]
        first, second = (np.full(stages, 1.0 / self.scales[name]) for name in (gram, target))
        return StageRegressions(cells, sums, first, second, math.sqrt(2))

    def _widths(
        self,
        task: Task,
        release: Release,
        families: tuple[str, str],
        d: int,
        theta: float,
        trace: float,
        spread: float,
    ) -> Widths:
        stages = len(release.blocks[families[0]]) if families[0] in release.blocks else 0
        s1, s2 = (self._std(release, name) for name in families)
        steps = task.users * (task.horizon if task.homogeneous else 1)
        union = self.releases * task.horizon / self.beta
        rows, columns = np.tril_indices(d)
        sent = self.columns.get(families[0], np.zeros(0, dtype=np.int64))
        diagonal = bool((rows[sent] == columns[sent]).all())
        root = math.sqrt(2 * math.log(8 * union * (d if diagonal else 1)))
        largest = s1 * (root if diagonal else math.sqrt(2 * d) + root)
        reach = math.sqrt(d) + math.sqrt(2 * math.log(4 * union))
        shift = largest + self.ridge
        ones = np.ones(stages)
        return Widths(
            scale=self.bonus_scale,
            ridge=self.ridge,
            shift=shift * ones,
            spread=spread * ones,
            log=2 * math.log(task.horizon / self.beta),
            most=d * math.log1p(steps * trace / (d * self.ridge)) * ones,
            fixed=(math.sqrt(shift + largest) * theta + s2 * reach / math.sqrt(self.ridge)) * ones,
            direct=(shift * theta + math.hypot(s2, s1 * theta) * reach) * ones,
        )

    def _std(self, release: Release, name: str) -> float:
        return _std(release, name) / self.scales[name] if name in release.blocks else 0.0
