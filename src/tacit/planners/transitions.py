"""Optimistic planning on noisy transition counts."""

from __future__ import annotations

import numpy as np

from tacit.features import known_rewards, pairs, value_caps
from tacit.kernels.planning import greedy
from tacit.kernels.transitions import pool_stages, transition_induction
from tacit.planners.base import Ask, Streams, next_version
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task


class TransitionPlanner:
    """Backward induction with an optimism that knows the noise of every count.

    See docs/papers/mixture_ldp.md#b1 and docs/papers/mixture_ldp.md#b4. Stages are added up where
    the task is declared homogeneous.

    Args:
        bonus_scale: c of docs/papers/mixture_ldp.md#b1.
    """

    def __init__(self, *, bonus_scale: float) -> None:
        self.bonus_scale = bonus_scale

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Greedy in the optimistic values."""
        H, S, A = pairs(task)
        counts = release.blocks["transitions"]
        variances = np.broadcast_to(release.law.variance("transitions"), counts.shape)
        if task.homogeneous:
            pooled, pooled_variances = np.zeros((1, S, A, S)), np.zeros((1, S, A, S))
            pool_stages(counts, np.ascontiguousarray(variances), pooled, pooled_variances)
            counts, variances = pooled, pooled_variances
        Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))
        transition_induction(
            counts,
            np.ascontiguousarray(variances),
            known_rewards(task),
            value_caps(task),
            self.bonus_scale,
            np.zeros(S),
            Q,
            V,
        )
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        return Publication(next_version(previous), TabularPolicy(actions))
