"""Planners of linear mixtures: value-targeted regression, policy optimisation, and counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public import mixture
from tacit.planners.base import Ask, Context, Streams, ValuePlanner, next_version
from tacit.planners.widths import Sums, WidthRule
from tacit.policies.tabular import StochasticPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.features import known_rewards, value_caps
from tacit.task.task import Task, table_sizes

Rate = Literal["paper", "tight"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Targeted:
    """What both planners share: estimates from a release, and the induction on them."""

    sums: Sums
    rule: WidthRule
    centre: bool

    def regressions(
        self, task: Task, release: Release
    ) -> tuple[mixture.StageRegressions, mixture.StageRegressions]:
        """The released sums of transitions and of rewards (empty where rewards are known)."""
        _, r, u = self.sums
        rewards = np.zeros((0, r.blocks, 1)), np.zeros((0, r.blocks, r.width))
        if "reward_gram" in release.blocks:
            rewards = release.blocks["reward_gram"], release.blocks["reward_target"]
        transitions = release.blocks["gram"], release.blocks["target"]
        return (
            mixture.StageRegressions(*transitions, u.gram, u.target, u.off),
            mixture.StageRegressions(*rewards, u.reward_gram, u.reward_target, u.off),
        )

    def _evaluate(self, task: Task, release: Release, weights: Array) -> dict[str, Array]:
        """Q, V and the reach of V; ``weights`` without rows means the greedy value."""
        H, S, A = table_sizes(task)
        p, r, _ = self.sums
        transitions, rewards = self.regressions(task, release)
        p_widths, r_widths = self.rule.widths(task, release, self.sums)
        Q, V, reach = np.zeros((H, S, A)), np.zeros((H + 1, S)), np.zeros((2, H - 1))
        mixture.value_targeted_induction(
            transitions,
            p_widths,
            p.phi,
            p.block,
            rewards,
            r_widths,
            r.varphi,
            r.block,
            float(r.offset),
            known_rewards(task),
            value_caps(task),
            self.centre,
            len(weights) > 0,
            weights,
            mixture.work_space(S * A, p.blocks, p.width),
            mixture.work_space(S * A, r.blocks, r.width),
            Q,
            V,
            reach,
        )
        return {"Q": Q, "V": V, "reach": reach}


class ValueTargetedPlanner(_Targeted, ValuePlanner):
    """Optimistic value iteration: UCRL-VTR and LinOpt-VI.

    See docs/papers/mixture_ldp.md#ucrl-vtr and docs/papers/mixture_jdp.md#linopt-vi.
    """

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Greedy in the optimistic values; they are published, since users regress on them."""
        _, S, A = table_sizes(task)
        found = self._evaluate(task, release, np.zeros((0, S, A)))
        return found["Q"], {"V": found["V"], "reach": found["reach"]}


def step_sizes(task: Task, rate: Rate) -> Array:
    """eta of every stage of mirror descent.

    "paper": sqrt(2 ln A / (K H^2)); "tight": sqrt(8 ln A / (K cap_h^2)).
    """
    H, A = task.horizon, task.sizes["actions"]
    if rate == "paper":
        return np.full(H, math.sqrt(2 * math.log(A) / (task.users * H**2)))
    caps = np.maximum(value_caps(task)[:H], 1e-9)
    sizes: Array = np.sqrt(8 * math.log(A) / task.users) / caps
    return sizes


@dataclass(frozen=True, kw_only=True, eq=False)
class MirrorPlanner(_Targeted):
    """Mirror-descent policy optimisation: LinOpt-PO (docs/papers/mixture_jdp.md#linopt-po).

    Attributes:
        rate: "paper" or "tight" step sizes.
    """

    rate: Rate

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """One exponential step per user served with the last Q, then evaluate the new policy."""
        H, S, A = table_sizes(task)
        logits, weights = np.zeros((H, S, A)), np.full((H, S, A), 1.0 / A)
        if previous is not None:
            served = release.users - int(previous.context["users"])
            logits = previous.context["logits"].copy()
            rate = served * step_sizes(task, self.rate)
            mixture.mirror_step(logits, previous.context["Q"], rate, weights)
        found = self._evaluate(task, release, weights)
        context = {**found, "logits": logits, "users": np.asarray(release.users)}
        return Publication(next_version(previous), StochasticPolicy(weights), context)


@dataclass(frozen=True, kw_only=True)
class TransitionPlanner(ValuePlanner):
    """Backward induction with an optimism that knows the noise of every count.

    See docs/papers/mixture_ldp.md#b1 and docs/papers/mixture_ldp.md#b4. Stages are added up where
    the task is declared homogeneous.

    Attributes:
        bonus_scale: c of docs/papers/mixture_ldp.md#b1.
    """

    bonus_scale: float

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Greedy in the optimistic values."""
        H, S, A = table_sizes(task)
        counts = release.blocks["transitions"]
        variances = np.broadcast_to(release.law.variance("transitions"), counts.shape)
        if task.homogeneous:
            pooled, pooled_variances = np.zeros((1, S, A, S)), np.zeros((1, S, A, S))
            mixture.pool_stages(counts, np.ascontiguousarray(variances), pooled, pooled_variances)
            counts, variances = pooled, pooled_variances
        Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))
        mixture.transition_induction(
            counts,
            np.ascontiguousarray(variances),
            known_rewards(task),
            value_caps(task),
            self.bonus_scale,
            np.zeros(S),
            Q,
            V,
        )
        return Q, {}
