"""Posterior sampling for PSRL."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array
from tacit.kernels.planning import backward_induction
from tacit.kernels.posterior import Prior, sample_model
from tacit.planners.base import Context, Streams, ValuePlanner, rewards_or_nan
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task, table_sizes


class PosteriorPlanner(ValuePlanner):
    """Draw one model from the posterior of the released counts, play its optimal policy.

    Dirichlet transitions, normal-gamma rewards (docs/papers/tabular_ldp.md#ldp-psrl).
    """

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Sample, then plan exactly in the sample."""
        H, S, A = table_sizes(task)
        P = np.empty_like(release.blocks["transitions"])
        R = np.empty_like(release.blocks["visits"])
        sample_model(
            release.blocks["reward"],
            release.blocks["reward_squares"],
            release.blocks["visits"],
            release.blocks["transitions"],
            rewards_or_nan(task),
            self.prior,
            streams.posterior,
            P,
            R,
        )
        Q = np.full((H, S, A), np.inf)
        backward_induction(P, R, Q, np.empty((H + 1, S)))
        return Q, {}
