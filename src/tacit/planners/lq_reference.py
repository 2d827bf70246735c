"""Reference planners for linear systems: do nothing, certainty equivalence, Thompson sampling."""

from __future__ import annotations

import numpy as np

from tacit.planners.base import Ask, Streams, next_version
from tacit.planners.lq_model import (
    certainty_gains,
    inverted,
    linear_task,
    released_moments,
    within_unit,
)
from tacit.policy import LinearPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task

_KEYS = 2**62
_SQRT2 = 2.0**0.5


class IdlePlanner:
    """u = 0, whatever was released."""

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """The zero policy."""
        gains = np.zeros((task.horizon, task.sizes["inputs"], task.sizes["states"]))
        return Publication(next_version(previous), LinearPolicy(gains))


class CertaintyPlanner:
    """Ridge estimate, its optimal gains, and a decaying public excitation (not private).

    Args:
        ridge: weight of the ridge term.
        excitation: amplitude for the first users; after k users it is times (20 / (20 + k))^(1/3).
    """

    def __init__(self, ridge: float, excitation: float) -> None:
        self.ridge = ridge
        self.excitation = excitation

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Estimate, plan as if it were true, excite a little."""
        facts = linear_task(task)
        M, N = released_moments(facts, release, 1.0, _SQRT2)
        theta = within_unit(inverted(M + self.ridge * np.eye(facts.D)) @ N)
        amplitude = self.excitation * (20.0 / (20.0 + release.users)) ** (1.0 / 3.0)
        amplitude = min(amplitude, facts.gain)
        gains = certainty_gains(facts, theta, facts.gain - amplitude)
        key = int(streams.posterior.integers(_KEYS))
        policy = LinearPolicy(gains, amplitude=amplitude, key=key)
        return Publication(next_version(previous), policy)


class ThompsonPlanner:
    """One draw from the Gaussian posterior of Theta, played as if it were true (not private).

    Args:
        ridge: weight of the ridge term.
    """

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Columns of Theta have covariance W_ii V^{-1} around the ridge estimate."""
        facts = linear_task(task)
        M, N = released_moments(facts, release, 1.0, _SQRT2)
        V = M + self.ridge * np.eye(facts.D)
        lower = np.linalg.cholesky(V)
        normal = streams.posterior.standard_normal((facts.D, facts.n))
        spread = np.linalg.solve(lower.T, normal) * np.sqrt(np.diag(facts.W))
        theta = within_unit(np.linalg.solve(V, N) + spread)
        policy = LinearPolicy(certainty_gains(facts, theta, facts.gain))
        return Publication(next_version(previous), policy)
