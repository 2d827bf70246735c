"""Optimistic planning for UCB-VI."""

from __future__ import annotations

import math

import numpy as np

from tacit.kernels.optimism import optimistic_model
from tacit.kernels.planning import backward_induction, greedy
from tacit.planners.base import Ask, Streams, known_rewards, next_version
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task


class UcbViPlanner:
    """Q_h = min(Q_h of the last plan, H, r^ + p^ V_{h+1} + c 7 H L / sqrt(N)).

    UCB-VI with Hoeffding bonus (docs/papers/tabular_ldp.md#baselines, after Azar et al. 2017),
    L = ln(5 S A T / beta), T = K H. The bonus scale c is 1 in the theorem. N counts transitions
    before the last stage and visits at it (see ``kernels.optimism``).
    """

    def __init__(self, *, bonus_scale: float, beta: float) -> None:
        self.bonus_scale = bonus_scale
        self.beta = beta

    def width(self, task: Task) -> float:
        """The bonus at N = 1: c 7 H L."""
        pairs = task.sizes["states"] * task.sizes["actions"]
        steps = task.users * task.horizon
        return self.bonus_scale * 7.0 * task.horizon * math.log(5.0 * pairs * steps / self.beta)

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Optimistic backward induction on the released counts."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        Q = np.full((H, S, A), float(H)) if previous is None else previous.context["Q"].copy()
        P = np.empty_like(release.blocks["transitions"])
        R = np.empty((H, S, A))
        optimistic_model(
            release.blocks["reward"],
            release.blocks["visits"],
            release.blocks["transitions"],
            known_rewards(task),
            self.width(task),
            P,
            R,
        )
        backward_induction(P, R, Q, np.empty((H + 1, S)))
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        return Publication(next_version(previous), TabularPolicy(actions), {"Q": Q})
