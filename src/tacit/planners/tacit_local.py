"""Planning on noisy counts of steps: posterior sampling or optimism, and what to ask next."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, Rows
from tacit.kernels.public import tacit_local
from tacit.kernels.public.planning import backward_induction, greedy
from tacit.kernels.public.posterior import (
    NoisyCounts,
    noisy_counts,
    predict_occupancy,
    sample_noisy_model,
)
from tacit.kernels.public.questions import KINDS, WEIGHT_STEPS, Weighing
from tacit.kernels.public.sparse_model import listed_model, settled
from tacit.planners.base import (
    MANY_STATES,
    Context,
    ReleasePlanner,
    Streams,
    averaged,
    greedy_actions,
    next_version,
)
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.pairs import Places, full_rows, met_places
from tacit.task.task import Task, table_sizes

LEAST_CHANCE = 0.02
"""Least predicted chance of a state that a report's weight is worked out from
(docs/papers/tabular_ldp.md#b4). Not measured: other floors."""


class StepModel(NamedTuple):
    """Released counts, and a model to be filled in: next-state laws and mean rewards of pairs."""

    counts: NoisyCounts
    places: Places
    rows: Rows
    P: Array  # [G, X, N]
    R: Array  # [G', X]


def lists_next(task: Task) -> bool:
    """Whether the next states of a pair are listed: where something is declared, or S is large."""
    return not task.pairs.every or task.sizes["states"] > MANY_STATES


class _StepPlanner(ReleasePlanner):
    """Planning on noisy counts of steps; a subclass works out how good actions look.

    The publication carries the predicted chances of being in each state, from the model that was
    planned with: reports are weighted by them. Where it is known how reports weigh, a public fact
    of the mechanism, users are asked what is predicted to teach most, and the publication carries
    the shares of the questions. Else they are asked about all steps in turn.
    """

    weighing: Weighing | None

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """Plan, predict who will be where, and choose questions."""
        if release.users == 0:  # a random table, every state as likely as the others
            actions = greedy_actions(np.zeros(table_sizes(task)), task, streams)
            equal = np.full(actions.shape, WEIGHT_STEPS, dtype=np.int64)
            return TabularPolicy(actions), {"occupancy": equal}
        counts, places = released_counts(release), met_places(task.pairs)
        P, R = np.empty_like(counts.moves), np.empty_like(counts.rewards_unit)
        rows, number = full_rows(*P.shape), places.number
        model = StepModel(counts, places, rows, P, R)
        Q, V = self._values(task, release, next_version(previous), streams, model)
        actions = np.zeros((task.horizon, len(number)), dtype=np.int64)
        greedy(places.first, task.pairs.action, Q, streams.ties, actions)
        f, occupancy = np.empty(actions.shape), np.empty(actions.shape, dtype=np.int64)
        first, users, flat = release.blocks["first"], release.blocks["first_users"][0], P.ravel()
        predict_occupancy(first, users, number, rows, flat, actions, LEAST_CHANCE, f, occupancy)
        context: dict[str, npt.NDArray[Any]] = {"occupancy": places.spread(occupancy)}
        if self.weighing is not None:
            at_moves = np.empty(counts.moves_unit.shape)
            at_rewards = np.empty(counts.rewards_unit.shape)
            tacit_local.stakes(counts, f, number, rows, flat, V, actions, at_moves, at_rewards)
            context["questions"] = np.empty(KINDS * len(actions))
            tacit_local.share_questions(
                at_moves, at_rewards, f, number, actions, self.weighing, context["questions"]
            )
        return TabularPolicy(places.spread(actions)), context

    @abstractmethod
    def _values(
        self, task: Task, release: Release, version: int, streams: Streams, model: StepModel
    ) -> tuple[Array, Array]:
        """Q [H, X] and V [H + 1, N]; fills the model that occupancies are predicted with."""


@dataclass(frozen=True)
class NoisyPosteriorPlanner(_StepPlanner):
    """Draws a model that the released counts and their noise allow, and plays its best policy.

    See docs/papers/tabular_ldp.md#b3 and B4 there, and #b9 for tables whose next states are listed.

    Attributes:
        weighing: how reports weigh.
    """

    weighing: Weighing

    def _values(
        self, task: Task, release: Release, version: int, streams: Streams, model: StepModel
    ) -> tuple[Array, Array]:
        counts, places, rows, P, R = model
        H, N = task.horizon, P.shape[2]
        if lists_next(task):
            progress = release.users / task.users
            mean = settled(progress, streams.posterior) or streams.draws > 1
            listed_model(counts, places.first, mean, streams.posterior, rows, P.ravel(), R)
        else:

            def draw() -> None:
                sample_noisy_model(counts, streams.posterior, np.empty(N), P, R)

            averaged(draw, (P, R), streams.draws)
        Q, V = np.full((H, P.shape[1]), np.inf), np.empty((H + 1, N))
        none = np.zeros((0, 0))
        backward_induction(places.first, rows, P.ravel(), none, R, task.end_reward, Q, V)
        return Q, V


@dataclass(frozen=True, kw_only=True)
class DirectionalPlanner(_StepPlanner):
    """Plays the policy that looks best if every estimate errs in its favour.

    The optimistic form of docs/papers/tabular_ldp.md#b3: widths z sd with z = c sqrt(2 L),
    L = ln(4 S A H e (e + 1) / beta) before the e-th batch.

    Attributes:
        bonus_scale: c; 1 is the width at which all confidence statements hold together.
        beta: failure probability.
        weighing: how reports weigh, if they do.
    """

    bonus_scale: float
    beta: float
    weighing: Weighing | None = None

    def _values(
        self, task: Task, release: Release, version: int, streams: Streams, model: StepModel
    ) -> tuple[Array, Array]:
        (H, S, A), (counts, places, _, P, R) = table_sizes(task), model
        tacit_local.mean_model(counts, P, R)
        z = tacit_local.directional_z(self.bonus_scale, self.beta, (H, S, A), max(version, 1))
        Q, V = np.empty((H, P.shape[1])), np.empty((H + 1, P.shape[2]))
        tacit_local.directional_induction(counts, z, places.first, P, R, task.end_reward, Q, V)
        return Q, V


def released_counts(release: Release) -> NoisyCounts:
    """What kernels read of a release."""
    law = release.law
    counts = noisy_counts(release.blocks, law.variance("moves"), law.variance("rewards"))
    return NoisyCounts(*(part.copy() for part in counts))  # as the fused loop has them: writable
