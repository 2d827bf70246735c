"""Posterior sampling on noisy counts."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels.noisy_posterior import WEIGHT_STEPS, matched_weights, sample_noisy_model
from tacit.kernels.planning import backward_induction, greedy
from tacit.planners.base import Ask, Streams, next_version
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task

FLOOR = 0.02
"""Least weight of a report (spec tabular_ldp B4)."""


class NoisyPosteriorPlanner:
    """Draws a model that the released counts and their noise allow, and plays its best policy.

    Spec tabular_ldp B3 and B4. The publication carries the weights of the reports made under it,
    the predicted chances of being in each state, from the model that was drawn.
    """

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Sample, plan exactly in the sample, and predict who will be where."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        version = next_version(previous)
        if release.users == 0:
            return first_publication(version, (H, S, A), streams)
        P = np.empty((release.blocks["transitions"].shape[0], S, A, S))
        R = np.empty((1 if task.homogeneous else H, S, A))
        sample_noisy_model(
            release.blocks["transitions"],
            release.blocks["last"],
            release.law.variance("transitions"),
            release.law.variance("last"),
            task.homogeneous,
            streams.posterior,
            np.empty(S),
            P,
            R,
        )
        Q = np.full((H, S, A), np.inf)
        backward_induction(P, R, Q, np.empty((H + 1, S)))
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        return with_weights(version, actions, P, release)


def first_publication(version: int, sizes: tuple[int, int, int], streams: Streams) -> Publication:
    """A random table, every report with weight 1: nothing is known yet."""
    H, S, A = sizes
    actions = np.zeros((H, S), dtype=np.int64)
    greedy(np.zeros((H, S, A)), streams.ties, actions)
    weights = np.full((H, S), WEIGHT_STEPS, dtype=np.int64)
    return Publication(version, TabularPolicy(actions), {"weights": weights})


def with_weights(version: int, actions: IntArray, P: Array, release: Release) -> Publication:
    """The policy and the matched weights of its reports under the model P."""
    H, S = actions.shape
    weights = np.empty((H, S), dtype=np.int64)
    matched_weights(
        release.blocks["first"],
        release.blocks["first_users"][0],
        P,
        actions,
        FLOOR,
        np.empty((2, S)),
        weights,
    )
    return Publication(version, TabularPolicy(actions), {"weights": weights})
