"""tacit-search: any environment, from one bounded number per person."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents.base import PrivateAgent, SearchAgent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.search import TUNING, Errors, SearchPlanner, batch_size
from tacit.policies.parametric import parameters, scoring
from tacit.privacy import Exact, Privatizer
from tacit.privacy.finite.sliding import USUAL_SQUARE, Sliding
from tacit.privacy.joint.batched import BatchSums
from tacit.privacy.local.one_number import OneNumber, sliding_for
from tacit.privacy.shuffle.directions import ShuffledReturns, words_for
from tacit.schedules import Every
from tacit.statistics.search import RoundedReturn, SharedReturn, WindowedReturn
from tacit.task.task import Task

USUAL_VARIANCES = (USUAL_SQUARE, 0.25, 0.09)
"""Variances of one person's x z (an entry), x and x^2, as if the window were a usual one."""


@dataclass(frozen=True)
class PolicySearch(SearchAgent):
    """The same search on exact sums, not private: what privacy costs is measured against it."""

    name: ClassVar[str] = "policy-search"

    def fitted(self, task: Task) -> BoundAgent:
        """Batches as small as the sample allows."""
        statistic = WindowedReturn(task)
        errors = Errors((0.0, 0.0, 0.0), USUAL_VARIANCES, cumulative=True)
        return searching(task, statistic, Exact(statistic, task), errors)


@dataclass(frozen=True)
class TacitSearch(SearchAgent, PrivateAgent):
    """Policy search by one return per person, seen through a window that follows the releases.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise; the local model gives pure epsilon and does not use it.
        model: "joint": a trusted curator; "local": every person sends one randomized number;
            "shuffle": the same, hidden among people who try out the same.
    """

    name: ClassVar[str] = "tacit-search"
    models: ClassVar[tuple[str, ...]] = ("joint", "local", "shuffle")
    model: Literal["joint", "local", "shuffle"] = "joint"

    def fitted(self, task: Task) -> BoundAgent:
        """Separate batches, whose sizes the planner decides from known noise."""
        if self.model == "local":
            randomizer = sliding_for(self.epsilon, task.participations)
            rounded = RoundedReturn(task, randomizer.largest)
            numbers = OneNumber(rounded, task, randomizer, requested_epsilon=self.epsilon)
            return searching(task, rounded, numbers, local_errors(randomizer))
        if self.model == "shuffle":
            return self._shuffled(task)
        statistic = WindowedReturn(task)
        sums = BatchSums(statistic, task, requested=self.requested())
        errors = joint_errors(sums.noise_std, statistic.dimension)
        return searching(task, statistic, sums, errors)

    def _shuffled(self, task: Task) -> BoundAgent:
        """As many batches as leave crowds that hide enough for a gradient with the wanted error."""
        statistic = SharedReturn(task)
        d, c, asked = statistic.dimension, TUNING, (float(self.epsilon), float(self.delta))
        if task.users < 2 * d:
            raise InvalidInput(
                f"{task.users} people are fewer than the 2 d = {2 * d} directions of a batch, so "
                f"none would ever be opened; take at least {2 * d}"
            )
        crowd = max(task.users // (c.fewest * 2 * d), 1)
        for batches in (100, 60, 40, 25, 16):
            fewer = task.users // (batches * 2 * d)
            if fewer < 2:
                continue
            errors = local_errors(words_for(fewer, task, *asked))
            if errors.sd(0, fewer * 2 * d) * math.sqrt(d) <= c.tau:
                crowd = fewer
                break
        shuffler = ShuffledReturns(statistic, task, crowd=crowd, requested=self.requested())
        errors = local_errors(shuffler.randomizer)
        planner = SearchPlanner(errors, whole=shuffler.batch, shared=2 * d)
        return BoundAgent(task, statistic, shuffler, planner, Every(shuffler.batch))

    def notes(self, task: Task) -> tuple[str, ...]:
        """How many batches there are, and whether their noise leaves anything to see."""
        bound, d = self.bind(task), parameters(scoring(task.sizes, task.known))
        planner, size = bound.planner, bound.schedule(0)
        assert isinstance(planner, SearchPlanner)
        error = planner.errors.sd(0, size) * math.sqrt(d)
        notes = [f"{math.ceil(task.users / size)} batches of {size:,} people, {d} parameters"]
        if error > 2.0 * planner.tuning.tau:
            notes.append(
                f"the error of a batch's gradient is {error:.2g} where {planner.tuning.tau:g} is "
                "wanted: more people, fewer parameters or a larger epsilon would help"
            )
        return tuple(notes)


def searching(
    task: Task, statistic: WindowedReturn | RoundedReturn, privatizer: Privatizer[Any], to: Errors
) -> BoundAgent:
    """Equal batches, planned with what is known of the noise."""
    size = batch_size(task.users, statistic.dimension, to)
    return BoundAgent(task, statistic, privatizer, SearchPlanner(to), Every(size))


def joint_errors(noise_std: float, d: int) -> Errors:
    """Noise once per release; the sample spreads as if E[x^2] were that of a usual window."""
    noise = noise_std**2
    return Errors((noise, noise, noise / (2.0 * (d + 1))), USUAL_VARIANCES, cumulative=False)


def local_errors(randomizer: Sliding) -> Errors:
    """Noise of every person, at the same usual x."""
    value, square = randomizer.moments(math.sqrt(USUAL_SQUARE))
    return Errors((0.0, 0.0, 0.0), (value, value, square), cumulative=True)
