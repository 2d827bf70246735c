"""Optimistic backward induction on counts: UCB-VI on exact ones, LDP-OBI on noisy ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.kernels.public.obi import KINDS, WIDTHS, BonusRule, CellNoise, first_bonus, obi_values
from tacit.kernels.public.planning import backward_induction, optimistic_model
from tacit.planners.base import (
    Context,
    Streams,
    ValuePlanner,
    least_count,
    lists_seen,
    pair_rewards,
    released_pairs,
)
from tacit.publication import Publication
from tacit.release import NoiseLaw, Release
from tacit.task.task import Task, table_sizes

Width = Literal["paper", "corrected", "tight", "bernstein"]


@dataclass(frozen=True, kw_only=True)
class UcbViPlanner(ValuePlanner):
    """Q_h = min(Q_h of the last plan, H, r^ + p^ V_{h+1} + c 7 H L / sqrt(N)).

    UCB-VI with Hoeffding bonus (docs/papers/tabular_ldp.md#baselines, after Azar et al. 2017),
    L = ln(5 S A T / beta), T = K H. The bonus scale c is 1 in the theorem. N counts transitions
    before the last stage and visits at it (see ``kernels.public.planning``).
    """

    bonus_scale: float
    beta: float

    def width(self, task: Task) -> float:
        """The bonus at N = 1: c 7 H L."""
        pairs = task.sizes["states"] * task.sizes["actions"]
        steps = task.users * task.horizon
        return self.bonus_scale * 7.0 * task.horizon * math.log(5.0 * pairs * steps / self.beta)

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Optimistic backward induction on the released counts."""
        H, pairs = task.horizon, task.pairs
        counts, rows = released_pairs(task, release, listed=lists_seen(task, release.law))
        Q = np.full((H, len(pairs.action)), float(H))
        if previous is not None:
            Q = previous.context["Q"].reshape(Q.shape).copy()
        P, R = np.empty(len(rows.succ)), np.empty(Q.shape)
        optimistic_model(counts, rows, pair_rewards(task), self.width(task), P, R)
        V, none = np.empty((H + 1, task.sizes["states"])), np.zeros((0, 0))
        backward_induction(pairs.first, rows, P, none, R, task.end_reward, Q, V)
        return Q, {"Q": Q.reshape(H, *pairs.shape())}


def cell_noise(law: NoiseLaw) -> CellNoise:
    """What widths need of a law."""
    if law.name not in KINDS:
        raise InvalidInput(f"ldp-obi has no widths for {law.name!r} noise")
    return CellNoise(KINDS[law.name], law.scale("visits"), law.scale("transitions"))


LATEST = 10**16
"""Episodes beyond which a bonus counts as never small enough."""


class ObiPlanner(ValuePlanner):
    """LDP-OBI's planner: widths from the declared law of the noise.

    See docs/papers/tabular_ldp.md#ldp-obi and docs/papers/tabular_ldp.md#precisions.

    Args:
        alpha: shift of the denominators, > 1; "tight" widths have none.
        beta: failure probability.
        width: the "paper" widths and last-step bonus, the "corrected" ones
            (docs/papers/tabular_ldp.md#e4, and E5, E8 there), the "tight" ones
            (docs/papers/tabular_ldp.md#b7), or for bits the "bernstein" ones of the shuffle
            appendix, last step corrected.
    """

    def __init__(self, *, alpha: float, beta: float, width: Width) -> None:
        self.rule = BonusRule(WIDTHS[width], float(alpha), float(beta))

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Optimistic backward induction on the released tables."""
        (H, S, A), pairs = table_sizes(task), task.pairs
        counts, rows = released_pairs(task, release, listed=lists_seen(task, release.law))
        Q, V = np.empty((H, len(pairs.action))), np.empty((H + 1, S))
        law = cell_noise(release.law), release.users, A, self.rule
        obi_values(pairs.first, rows, counts, task.end_reward, *law, Q, V)
        return Q, {}

    def break_even(self, task: Task, law: NoiseLaw, target: float) -> float:
        """The episode from which on the bonus of step 1 is at most ``target``, infinite if never.

        For a pair (s, a) that every user visits at every step
        (docs/papers/tabular_ldp.md#break-even): all others come later.
        """
        noise = cell_noise(law)
        shape = (task.sizes["states"], task.sizes["actions"], task.horizon)

        def small(users: int) -> bool:
            return first_bonus(noise, users, shape, self.rule) <= target

        first = least_count(small, LATEST)
        return math.inf if first is None else first + 1.0
