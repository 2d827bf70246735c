"""Planning on noisy counts of steps: posterior sampling or optimism, and what to ask next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels.planning import backward_induction
from tacit.kernels.posterior import NoisyCounts, predict_occupancy, sample_noisy_model
from tacit.kernels.questions import KINDS, WEIGHT_STEPS, Weighing
from tacit.kernels.tacit_local import (
    directional_induction,
    directional_z,
    mean_model,
    share_questions,
    stakes,
)
from tacit.planners.base import Ask, Streams, greedy_actions, next_version
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task, table_sizes

FLOOR = 0.02
"""Least predicted chance of a state that a report's weight is worked out from
(docs/papers/tabular_ldp.md#b4)."""


class NoisyPosteriorPlanner:
    """Draws a model that the released counts and their noise allow, and plays its best policy.

    See docs/papers/tabular_ldp.md#b3 and B4 there. The publication carries the predicted chances of
    being in each state, from the model that was drawn: reports are weighted by them. It also
    carries which questions the next users are asked, in which shares.

    Args:
        weighing: how reports weigh, a public fact of the mechanism.
    """

    def __init__(self, weighing: Weighing) -> None:
        self.weighing = weighing

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Sample, plan exactly in the sample, predict who will be where, and choose questions."""
        H, S, A = table_sizes(task)
        version = next_version(previous)
        if release.users == 0:
            return first_publication(version, task, streams)
        counts = released_counts(release)
        P, R = model_space(release)
        sample_noisy_model(counts, streams.posterior, np.empty(S), P, R)
        Q, V = np.full((H, S, A), np.inf), np.empty((H + 1, S))
        backward_induction(P, R, Q, V)
        actions = greedy_actions(Q, streams)
        return ask_next(version, release, self.weighing, P, V, actions)


@dataclass(frozen=True, kw_only=True)
class DirectionalPlanner:
    """Plays the policy that looks best if every estimate errs in its favour.

    The optimistic form of docs/papers/tabular_ldp.md#b3: widths z sd with z = c sqrt(2 L),
    L = ln(4 S A H e (e + 1) / beta) before the e-th batch.

    Attributes:
        bonus_scale: c; 1 is the width at which all confidence statements hold together.
        beta: failure probability.
        weighing: how reports weigh: then users are asked what is predicted to teach most. Without
            it they are asked about all steps in turn.
    """

    bonus_scale: float
    beta: float
    weighing: Weighing | None = None

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Optimistic backward induction, and a prediction of who will be where."""
        H, S, A = table_sizes(task)
        version = next_version(previous)
        if release.users == 0:
            return first_publication(version, task, streams)
        counts = released_counts(release)
        P, R = model_space(release)
        mean_model(counts, P, R)
        z = directional_z(self.bonus_scale, self.beta, (H, S, A), max(version, 1))
        Q, V = np.empty((H, S, A)), np.empty((H + 1, S))
        directional_induction(counts, z, P, R, Q, V)
        actions = greedy_actions(Q, streams)
        if self.weighing is not None:
            return ask_next(version, release, self.weighing, P, V, actions)
        _, occupancy = predicted(release, P, actions)
        return Publication(version, TabularPolicy(actions), {"occupancy": occupancy})


def ask_next(
    version: int, release: Release, weighing: Weighing, P: Array, V: Array, actions: IntArray
) -> Publication:
    """The policy, who is predicted to be where, and what its users are asked in which shares."""
    f, occupancy = predicted(release, P, actions)
    at_moves = np.empty(release.blocks["moves_unit"].shape)
    at_rewards = np.empty(release.blocks["rewards_unit"].shape)
    stakes(released_counts(release), f, P, V, actions, at_moves, at_rewards)
    asked = np.empty(KINDS * len(actions))
    share_questions(at_moves, at_rewards, f, actions, weighing, asked)
    context = {"occupancy": occupancy, "questions": asked}
    return Publication(version, TabularPolicy(actions), context)


def released_counts(release: Release) -> NoisyCounts:
    """What kernels read of a release."""
    blocks, law = release.blocks, release.law
    return NoisyCounts(
        blocks["moves"],
        blocks["rewards"],
        law.variance("moves"),
        law.variance("rewards"),
        blocks["moves_unit"],
        blocks["rewards_unit"],
    )


def model_space(release: Release) -> tuple[Array, Array]:
    """Room for next-state laws and mean rewards."""
    return np.empty_like(release.blocks["moves"]), np.empty_like(release.blocks["rewards_unit"])


def first_publication(version: int, task: Task, streams: Streams) -> Publication:
    """A random table, every state as likely as the others, all steps in turn."""
    actions = greedy_actions(np.zeros(table_sizes(task)), streams)
    occupancy = np.full(actions.shape, WEIGHT_STEPS, dtype=np.int64)
    return Publication(version, TabularPolicy(actions), {"occupancy": occupancy})


def predicted(release: Release, P: Array, actions: IntArray) -> tuple[Array, IntArray]:
    """Chances of being in each state at each step under the model P: real, and as published."""
    H, S = actions.shape
    f, occupancy = np.empty((H, S)), np.empty((H, S), dtype=np.int64)
    users = release.blocks["first_users"][0]
    predict_occupancy(release.blocks["first"], users, P, actions, FLOOR, f, occupancy)
    return f, occupancy
