"""Planners of linear mixtures: value-targeted regression, policy optimisation, and counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public.mixture import (
    FamilyRegression,
    StageRegressions,
    mirror_step,
    transition_induction,
    value_targeted_induction,
    work_space,
)
from tacit.planners.base import Context, ReleasePlanner, Streams, ValuePlanner
from tacit.planners.widths import Sums, WidthRule
from tacit.policies.base import Policy
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
        self, task: Task, release: Release, blocks: Mapping[str, Array]
    ) -> tuple[FamilyRegression, FamilyRegression]:
        """On the sums of transitions and of rewards (empty where rewards are known) in blocks.

        Widths are those of the release, which need not hold these blocks.
        """
        p, r, u = self.sums
        p_widths, r_widths = self.rule.widths(task, release, self.sums)
        none = np.zeros((0, r.blocks, 1))
        paid = blocks.get("reward_gram", none), blocks.get("reward_target", none)
        transitions = StageRegressions(blocks["gram"], blocks["target"], u.gram, u.target, u.off)
        rewards = StageRegressions(*paid, u.reward_gram, u.reward_target, u.off)
        p_work, r_work = (work_space(family.blocks, family.width) for family in (p, r))
        return (
            FamilyRegression(transitions, p_widths, p.phi, p.block, p_work),
            FamilyRegression(rewards, r_widths, r.varphi, r.block, r_work),
        )

    def _evaluate(self, task: Task, release: Release, weights: Array) -> dict[str, Array]:
        """Q, V and the reach of V; ``weights`` without rows means the greedy value."""
        H, S, A = table_sizes(task)
        Q, V, reach = np.zeros((H, S, A)), np.zeros((H + 1, S)), np.zeros((2, H - 1))
        # Copies can be written to, as in loops: kernels are compiled for one kind of array only.
        blocks = {name: block.copy() for name, block in release.blocks.items()}
        moves, paid = self.regressions(task, release, blocks)
        facts = float(self.sums.rewards.offset), known_rewards(task), value_caps(task)
        value_targeted_induction(moves, paid, *facts, self.centre, weights, Q, V, reach)
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
        values = self._evaluate(task, release, np.zeros((0, S, A)))
        return values.pop("Q"), values


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


def mirror_descent(
    task: Task, release: Release, previous: Publication | None, rate: Rate, allowed: Array
) -> tuple[Array, Array]:
    """Weights of actions and their logits [H, S, A]: one exponential step per user with the last Q.

    At first all actions that are ``allowed`` (1, else 0) weigh the same.
    """
    if previous is None:
        equal: Array = allowed / allowed.sum(axis=2, keepdims=True)
        return equal, np.where(allowed > 0.0, 0.0, -np.inf)
    served = release.users - int(previous.context["users"])
    logits = np.array(previous.context["logits"])
    weights = np.empty_like(logits)
    mirror_step(logits, previous.context["Q"], served * step_sizes(task, rate), weights)
    return weights, logits


@dataclass(frozen=True, kw_only=True, eq=False)
class MirrorPlanner(_Targeted, ReleasePlanner):
    """Mirror-descent policy optimisation: LinOpt-PO (docs/papers/mixture_jdp.md#linopt-po).

    Attributes:
        rate: "paper" or "tight" step sizes.
    """

    rate: Rate

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """One exponential step per user served with the last Q, then evaluate the new policy."""
        allowed = np.ones(table_sizes(task))
        weights, logits = mirror_descent(task, release, previous, self.rate, allowed)
        values = self._evaluate(task, release, weights)
        context = {**values, "logits": logits, "users": np.asarray(release.users)}
        return StochasticPolicy(weights), context


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
        variances = release.law.variance("transitions") + np.zeros(counts.shape)
        if task.homogeneous:
            counts, variances = (x.sum(axis=0, keepdims=True) for x in (counts, variances))
        Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))
        facts = known_rewards(task), value_caps(task)
        transition_induction(counts, variances, *facts, self.bonus_scale, Q, V)
        return Q, {}
