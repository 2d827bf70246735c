"""Mistakes that any private agent could make: the whole agent, with its claim, wrapped."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import tacit
from auditing import small
from tacit.agents import Agent
from tacit.arrays import IntArray
from tacit.auditing.agent import AgentAudit
from tacit.learner import BoundAgent
from tacit.privacy.finite.bits import BinaryResponse, UnaryEncoding
from tacit.privacy.finite.subset import SubsetSelection, _calibrated
from tacit.privacy.local.response import LocalResponse, PooledResponse
from tacit.privacy.noise import GridLaw, Noise
from tacit.problems.base import Problem
from tacit.task.task import Task


class LessNoise:
    """Noise of another source, scaled down; randomizers use a larger epsilon than they state."""

    def __init__(self, noise: Noise, factor: float) -> None:
        self._noise, self._factor = noise, factor
        self.source = noise.source

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """Drawn as it should be, then made smaller."""
        self._noise.fill(law, out)
        out[:] = np.rint(out * self._factor)

    def randomize(self, randomizer: Any, value: Any) -> IntArray:
        """By a randomizer of the same outputs, with other chances."""
        return self._noise.randomize(_surer(randomizer, self._factor), value)

    def happens(self, chance: int, of: int) -> bool:
        """Coins that hide nothing are left alone."""
        return self._noise.happens(chance, of)


@functools.cache
def _surer(randomizer: Any, factor: float) -> Any:
    """The same randomizer at an epsilon that is larger by 1 / factor."""
    if isinstance(randomizer, PooledResponse):
        return dataclasses.replace(randomizer, bits=_surer(randomizer.bits, factor))
    epsilon, domain = randomizer.epsilon / factor, randomizer.domain
    if isinstance(randomizer, BinaryResponse):
        return BinaryResponse.calibrate(epsilon, domain, randomizer.differing)
    if isinstance(randomizer, UnaryEncoding):
        return UnaryEncoding.calibrate(epsilon, domain, 2 * randomizer.keep != 2**64)
    assert isinstance(randomizer, SubsetSelection)
    return _calibrated(type(randomizer), epsilon, domain, randomizer.size)


def with_less_noise(privatizer: Any, factor: float) -> Any:
    """The same privatizer, with the same claim, whose noise is scaled wherever it is drawn."""
    kind = type(privatizer)

    class Weak(kind):  # type: ignore[misc, valid-type]
        def _less(self, noise: Noise) -> Noise:
            return noise if isinstance(noise, LessNoise) else LessNoise(noise, factor)

        def encode(self, contribution: IntArray, publication: Any, noise: Noise) -> Any:
            return super().encode(contribution, publication, self._less(noise))

        def release(self, secret: Any, query: Any, noise: Noise) -> Any:
            return super().release(secret, query, self._less(noise))

        if hasattr(kind, "randomize"):

            def randomize(self, contribution: IntArray, publication: Any, noise: Noise) -> Any:
                return super().randomize(contribution, publication, self._less(noise))

    weak = copy.copy(privatizer)
    weak.__class__ = Weak
    if hasattr(weak, "local"):  # behind a shuffler
        weak.local = with_less_noise(weak.local, factor)
    return weak


@dataclass
class LessNoiseAgent(Agent):
    """An agent whose noise is smaller by a factor than what its guarantee is computed from."""

    name: ClassVar[str] = "less-noise"
    comes_back: ClassVar[bool] = False
    right: Agent
    factor: float = 0.5

    def __post_init__(self) -> None:
        self.needs = self.right.needs  # type: ignore[misc]

    def bind(self, task: Task) -> BoundAgent:
        """As the right one, but for the noise."""
        bound = self.right.bind(task)
        weak = with_less_noise(bound.privatizer, self.factor)
        return dataclasses.replace(bound, privatizer=weak)


@dataclass
class ForgottenParticipations(Agent):
    """An agent that pays for one participation, and claims that it paid for all."""

    name: ClassVar[str] = "forgotten-participations"
    comes_back: ClassVar[bool] = True
    right: Agent

    def __post_init__(self) -> None:
        self.needs = self.right.needs  # type: ignore[misc]

    def bind(self, task: Task) -> BoundAgent:
        """As the right one for people who come once."""
        bound = self.right.bind(dataclasses.replace(task, participations=1))
        said = copy.copy(bound.privatizer)
        said.guarantee = dataclasses.replace(bound.guarantee, participations=task.participations)
        return dataclasses.replace(bound, task=task, privatizer=said)


def as_it_is(right: Agent) -> Agent:
    """The agent that is shipped, for people who come back."""
    return right


def adds_to_many_cells(name: str) -> bool:
    """Laplace noise and bits: ratios are seldom large, and what tells them apart takes trials."""
    bound = small.bound_to(small.made(name), small.smallest(name))
    pure = getattr(bound.privatizer, "kind", None) == "laplace"
    return pure or isinstance(bound.privatizer, LocalResponse)


def problem_for(name: str) -> Problem:
    """Where few trials are enough."""
    return small.ONE_STEP if adds_to_many_cells(name) else small.smallest(name)


@functools.cache
def audited(wrap: Callable[[Agent], Agent], name: str) -> AgentAudit:
    """An audit by simulated noise of an agent in which something may be wrong.

    All false alarms together have a probability below 0.001 for each agent. Epsilon is such that
    few trials are enough: what is shown about half the noise, over the claim, hardly depends on it.
    With Laplace noise a person's data goes into one release where it can: every further node of a
    tree splits epsilon over more draws, and all of them must fall far out at once to be decisive.
    """
    gaussian = small.bound_to(small.made(name), small.smallest(name)).guarantee.mu is not None
    many, times = adds_to_many_cells(name), 1
    right: Any = small.made(name, 8.0 if gaussian else 2.0)
    one_release = many and hasattr(right, "every")
    if one_release:
        right = dataclasses.replace(right, every=3)
    if getattr(wrap, "comes_back", True):  # often enough for few trials to show it
        times = 3 if many else 2
        if name in ("tacit-control", "tacit-search"):
            times = 10  # the first batch is a fifth of all users; two directions cancel out
    return tacit.audit(
        problem_for(name),
        wrap(right),
        participations=times,
        secure=False,
        trials=3000 if one_release else 6000 if many else 200 if gaussian else 1000,
        confidence=0.999,
        seconds=1e6,
    )
