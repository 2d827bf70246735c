"""What is audited: the shipped privatizer on its worst pair, and the whole learner."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.driver import BoundAgent, drive
from tacit.errors import InvalidInput
from tacit.planners.base import Ask, Planner, Streams
from tacit.policy import LinearPolicy, Policy
from tacit.privacy import Noise, ReplayNoise, SecureNoise, SimulatedNoise
from tacit.privacy.bounded import log_density
from tacit.privacy.local import LocalAdditive, LocalResponse
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task
from tacit.trajectory import Trajectory

Source = Literal["simulated", "secure"]


class ReportTarget:
    """One user's report, from the trajectory pair that moves the statistic most.

    Args:
        bound: the agent, fitted to a task.
        publication: the entry the user acted on.
        source: "simulated" noise is drawn from the auditor's generator, "secure" noise from OS
            entropy through the same code that protects people.
    """

    def __init__(self, bound: BoundAgent, publication: Publication, source: Source) -> None:
        if bound.guarantee.model == "joint":
            raise InvalidInput(
                "under joint privacy a report goes to the curator in clear; audit the releases"
            )
        self.name = f"one report ({bound.guarantee.mechanism})"
        self.source: str = source
        self.family = getattr(bound.privatizer, "kind", "unknown")
        self._bound = bound
        self._publication = publication
        self._worlds = [self._contribution(t) for t in bound.statistic.worst_pair()]

    def _contribution(self, trajectory: Trajectory) -> IntArray:
        out = np.zeros(self._bound.statistic.layout.size, dtype=np.int64)
        self._bound.statistic.contribute(trajectory, self._publication, 0, out)
        return out

    def sample(self, world: int, trials: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Reports of independent users who all lived through the same trajectory."""
        privatizer, contribution = self._bound.privatizer, self._worlds[world]
        noise = self._noise(trials, rng)
        return np.array(
            [
                privatizer.encode(contribution, self._publication, noise).values
                for _ in range(trials)
            ],
            dtype=np.float64,
        )

    def _noise(self, trials: int, rng: np.random.Generator) -> Noise:
        if self.source == "simulated":
            return SimulatedNoise(rng)
        return bulk_secure(self._bound, trials)

    def score(self, outputs: Array) -> Array | None:
        """The log-likelihood ratio of the declared noise, where it is known."""
        privatizer = self._bound.privatizer
        if isinstance(privatizer, LocalResponse):
            pooled = privatizer.randomizer
            moved = (self._worlds[1] - self._worlds[0]) / pooled.steps
            per_bit = moved / np.maximum(pooled.trials, 1)
            return np.asarray(2 * pooled.bits.epsilon_per_bit * outputs @ per_bit)
        if not isinstance(privatizer, LocalAdditive):
            return None
        zero, one = (world * privatizer.factors for world in self._worlds)
        scale = privatizer.noise_law.scales
        ratio: Array
        if privatizer.kind == "laplace":
            ratio = ((np.abs(outputs - zero) - np.abs(outputs - one)) / scale).sum(axis=1)
        elif privatizer.kind == "gaussian":
            ratio = ((outputs - (zero + one) / 2) * (one - zero) / scale**2).sum(axis=1)
        else:
            below, above = (log_density((outputs - world) / scale) for world in (zero, one))
            ratio = (above - below).sum(axis=1)
        return ratio


def bulk_secure(bound: BoundAgent, trials: int) -> Noise:
    """Secure draws for many reports in one call of the sampler, each handed out once."""
    privatizer = bound.privatizer
    if not isinstance(privatizer, LocalAdditive):
        return SecureNoise()
    law = privatizer.noise_law
    cells = len(law.scales)
    draws = np.empty(trials * cells, dtype=np.int64)
    SecureNoise().fill(type(law)(law.kind, np.tile(law.scales, trials)), draws)
    return ReplayNoise(list(draws.reshape(trials, cells)))


class LearnerTarget:
    """The whole learner with its first user's trajectory replaced: everything it publishes.

    Later users live in the problem and act on what was published, so the data after the first user
    react to it, as in service. Outputs are all releases and the last policy. Small cases only: one
    trial runs the whole learner.
    """

    def __init__(self, problem: Problem, bound: BoundAgent, source: Source = "simulated") -> None:
        self.name = f"the whole learner, {bound.task.users} users"
        self.source: str = source
        self._problem = problem
        self._bound = bound
        self._worlds = bound.statistic.worst_pair()

    def sample(self, world: int, trials: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Everything published by independent runs."""
        return np.array([self._run(self._worlds[world], rng) for _ in range(trials)])

    def _run(self, first: Trajectory, rng: np.random.Generator) -> Array:
        waiting = [first]

        def live(publication: Publication) -> Trajectory:
            if waiting:
                return waiting.pop()
            return self._problem.rollout(publication.policy, rng)

        watching = _Watching(self._bound.planner)
        agent = dataclasses.replace(self._bound, planner=watching)
        noise: Noise = SecureNoise() if self.source == "secure" else SimulatedNoise(rng)
        *_, last = drive(agent, live, noise, Streams(ties=rng, posterior=rng))
        answers = self._answers(watching)
        return np.concatenate([*watching.seen[1:], answers, _numbers(last.policy)])

    def _answers(self, watching: _Watching) -> Array:
        """Every answer given, in order, padded with zeros to what could have been asked."""
        cells = getattr(self._bound.privatizer, "answer_cells", None)
        padded = np.zeros(cells(self._bound.task.users) if cells else 0)
        given = np.concatenate([np.zeros(0), *watching.answers])
        padded[: len(given)] = given
        return padded

    def score(self, outputs: Array) -> Array | None:
        """Unknown: it is learned."""
        return None


def _numbers(policy: Policy) -> Array:
    """The table that a user acts on, flat."""
    table = policy.gains if isinstance(policy, LinearPolicy) else getattr(policy, "actions", [])
    return np.asarray(table, dtype=np.float64).ravel()


class _Watching:
    """A planner that keeps a copy of every release it is given, and of every answer."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.seen: list[Array] = []
        self.answers: list[Array] = []

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Look, then plan."""
        self.seen.append(np.concatenate([block.ravel() for block in release.blocks.values()]))

        def watched(query: Any) -> Release:
            answer = ask(query)
            self.answers.append(np.concatenate([b.ravel() for b in answer.blocks.values()]))
            return answer

        return self.planner.plan(task, release, watched, previous, streams)
