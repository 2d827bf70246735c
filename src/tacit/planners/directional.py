"""Optimistic planning on noisy counts, with the width of the one number that is used."""

from __future__ import annotations

import numpy as np

from tacit.kernels.directional import directional_induction, directional_z, mean_model
from tacit.kernels.planning import greedy
from tacit.kernels.questions import Weighing
from tacit.planners.base import Ask, Streams, next_version
from tacit.planners.noisy_posterior import (
    ask_next,
    first_publication,
    model_space,
    predicted,
    released_counts,
)
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task


class DirectionalPlanner:
    """Plays the policy that looks best if every estimate errs in its favour.

    The optimistic form of docs/papers/tabular_ldp.md#b3: widths z sd with z = c sqrt(2 L),
    L = ln(4 S A H e (e + 1) / beta) before the e-th batch.

    Args:
        bonus_scale: c; 1 is the width at which all confidence statements hold together.
        beta: failure probability.
        weighing: how reports weigh: then users are asked what is predicted to teach most. Without
            it they are asked about all steps in turn.
    """

    def __init__(
        self, *, bonus_scale: float, beta: float, weighing: Weighing | None = None
    ) -> None:
        self.bonus_scale = bonus_scale
        self.beta = beta
        self.weighing = weighing

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Optimistic backward induction, and a prediction of who will be where."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        version = next_version(previous)
        if release.users == 0:
            return first_publication(version, (H, S, A), streams)
        counts = released_counts(release)
        P, R = model_space(release)
        mean_model(counts, P, R)
        z = directional_z(self.bonus_scale, self.beta, (H, S, A), max(version, 1))
        Q, V = np.empty((H, S, A)), np.empty((H + 1, S))
        directional_induction(counts, z, P, R, Q, V)
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        if self.weighing is not None:
            return ask_next(version, release, self.weighing, P, V, actions)
        _, occupancy = predicted(release, P, actions)
        return Publication(version, TabularPolicy(actions), {"occupancy": occupancy})
