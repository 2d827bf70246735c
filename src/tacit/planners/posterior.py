"""Posterior sampling for PSRL."""

from __future__ import annotations

import numpy as np

from tacit.kernels.planning import backward_induction, greedy
from tacit.kernels.posterior import Prior, sample_model
from tacit.planners.base import Ask, Streams, known_rewards, next_version
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task


class PosteriorPlanner:
    """Draw one model from the posterior of the released counts, play its optimal policy.

    Dirichlet transitions, normal-gamma rewards (docs/papers/tabular_ldp.md#ldp-psrl).
    """

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Sample, then plan exactly in the sample."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        P = np.empty_like(release.blocks["transitions"])
        R = np.empty_like(release.blocks["visits"])
        sample_model(
            release.blocks["reward"],
            release.blocks["reward_squares"],
            release.blocks["visits"],
            release.blocks["transitions"],
            known_rewards(task),
            self.prior,
            streams.posterior,
            P,
            R,
        )
        Q = np.full((H, S, A), np.inf)
        backward_induction(P, R, Q, np.empty((H + 1, S)))
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        return Publication(next_version(previous), TabularPolicy(actions))
