"""Posterior sampling for PSRL."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public.planning import backward_induction
from tacit.kernels.public.posterior import DirichletPrior, sample_model
from tacit.planners.base import (
    Context,
    Streams,
    ValuePlanner,
    averaged,
    lists_seen,
    pair_rewards,
    released_pairs,
)
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task, table_sizes


class PosteriorPlanner(ValuePlanner):
    """Draw one model from the posterior of the released counts, play its optimal policy.

    Dirichlet transitions, normal-gamma rewards (docs/papers/tabular_ldp.md#ldp-psrl). On large
    tables the chance of all next states that were never seen is drawn as one, and split evenly.
    """

    def __init__(self, prior: DirichletPrior) -> None:
        self.prior = prior

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Sample, then plan exactly in the sample."""
        (H, S, _), pairs = table_sizes(task), task.pairs
        listed = lists_seen(task, release.law)
        counts, rows = released_pairs(task, release, listed=listed)
        P, R = np.empty(len(rows.succ)), np.empty_like(counts.visits)
        rest = np.empty_like(R) if listed else np.zeros((0, 0))
        known = pair_rewards(task)

        def draw() -> None:
            sample_model(counts, rows, known, self.prior, streams.posterior, P, rest, R)

        averaged(draw, (P, rest, R), streams.draws)
        Q, V = np.full((H, len(pairs.action)), np.inf), np.empty((H + 1, S))
        backward_induction(pairs.first, rows, P, rest, R, task.end_reward, Q, V)
        return Q, {}
