"""Reference planners: of agents that do not learn, and of two plain learners of linear systems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tacit.arrays import Array
from tacit.kernels.public.planning import backward_induction
from tacit.planners.base import KEYS, Context, ReleasePlanner, Streams, ValuePlanner, pair_rewards
from tacit.planners.lq_model import (
    LinearTask,
    Moments,
    MomentsPlanner,
    certainty_gains,
    inverted,
    within_unit,
)
from tacit.policies.base import Policy
from tacit.policies.linear import LinearPolicy
from tacit.policies.tabular import uniform_policy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.pairs import nonzero_rows, rows_of_steps
from tacit.task.task import Task, table_sizes


class UniformPlanner(ReleasePlanner):
    """Every action equally likely, whatever was released."""

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """The uniform policy."""
        return uniform_policy(*table_sizes(task), task.pairs), {}


class OptimalPlanner(ValuePlanner):
    """The optimum of a problem whose transitions and rewards were revealed in the task."""

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Plan in the revealed truth."""
        pairs, transitions = task.pairs, task.known["transitions"]
        if transitions.ndim == 2:
            rows, P = rows_of_steps(transitions, pairs)
        else:
            met = transitions[:, pairs.state, pairs.action]
            rows, flat = nonzero_rows(met)
            P = met.ravel()[flat]
        Q = np.full((task.horizon, len(pairs.action)), np.inf)
        R = pair_rewards(task)
        V = np.empty((task.horizon + 1, task.sizes["states"]))
        none = np.zeros((0, 0))
        backward_induction(pairs.first, rows, P, none, R, task.end_reward, Q, V)
        return Q, {}


class IdlePlanner(ReleasePlanner):
    """u = 0, whatever was released."""

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """The zero policy."""
        gains = np.zeros((task.horizon, task.sizes["inputs"], task.sizes["states"]))
        return LinearPolicy(gains), {}


@dataclass(frozen=True)
class CertaintyPlanner(MomentsPlanner):
    """Ridge estimate, its optimal gains, and a decaying public excitation (not private).

    Attributes:
        ridge: weight of the ridge term.
        excitation: amplitude for the first users; after k users it is times (20 / (20 + k))^(1/3).
    """

    ridge: float
    excitation: float

    def _policy(
        self, facts: LinearTask, moments: Moments, previous: Publication | None, rng: Generator
    ) -> tuple[LinearPolicy, Context]:
        theta = within_unit(inverted(moments.M + self.ridge * np.eye(facts.D)) @ moments.N)
        amplitude = self.excitation * (20.0 / (20.0 + moments.users)) ** (1.0 / 3.0)
        amplitude = min(amplitude, facts.gain)
        gains = certainty_gains(facts, theta, facts.gain - amplitude)
        return LinearPolicy(gains, amplitude=amplitude, key=int(rng.integers(KEYS))), {}


@dataclass(frozen=True)
class ThompsonPlanner(MomentsPlanner):
    """One draw from the Gaussian posterior of Theta, played as if it were true (not private).

    Columns of Theta have covariance W_ii V^{-1} around the ridge estimate.

    Attributes:
        ridge: weight of the ridge term.
    """

    ridge: float

    def _policy(
        self, facts: LinearTask, moments: Moments, previous: Publication | None, rng: Generator
    ) -> tuple[LinearPolicy, Context]:
        V = moments.M + self.ridge * np.eye(facts.D)
        lower = np.linalg.cholesky(V)
        normal = rng.standard_normal((facts.D, facts.n))
        spread = np.linalg.solve(lower.T, normal) * np.sqrt(np.diag(facts.W))
        theta = within_unit(np.linalg.solve(V, moments.N) + spread)
        return LinearPolicy(certainty_gains(facts, theta, facts.gain)), {}
