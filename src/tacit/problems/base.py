"""What a problem is: the truth that users live in, read by rollouts and scoring only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import validate
from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput, suggestion
from tacit.policies.base import Policy
from tacit.task.task import Task
from tacit.trajectory import Trajectory


class Problem(ABC):
    """The secret truth. A learner gets its :class:`~tacit.task.task.Task`, never this.

    Attributes:
        name: what results and plots show.
        parameters: what made it, shown in results.
        family: of its task.
        sizes: of its task.
        horizon: number of steps of an episode.
        homogeneous: whether the law of a step does not depend on its number.
        played: whether nobody knows an optimum to measure regret from, so that results are returns.
            An attribute of the instance: fast runs are chosen by exact type.
    """

    name: str
    parameters: dict[str, Any]
    family: str
    sizes: dict[str, int]
    horizon: int
    homogeneous: bool = True
    played: bool = False

    def _called(self, name: str, parameters: Mapping[str, Any] | None, horizon: int) -> None:
        """What every problem has."""
        self.horizon = validate.integer(horizon, "horizon", low=1)
        self.name, self.parameters = name, dict(parameters or {})

    @abstractmethod
    def task(self, users: int, reveal: Iterable[str] = ()) -> Task:
        """The public description, with the named facts revealed."""

    @abstractmethod
    def optimal_value(self) -> float:
        """Exact expected return of the best policy, over the start law."""

    @abstractmethod
    def value(self, policy: Policy) -> float:
        """Exact expected return of a policy, over the start law."""

    @abstractmethod
    def baseline(self) -> tuple[str, float]:
        """Name and exact value of the policy that a learner must beat to be worth anything."""

    @abstractmethod
    def rollout(self, policy: Policy, rng: np.random.Generator) -> Trajectory:
        """One user's episode; uses the same number of draws whatever happens in it."""

    @abstractmethod
    def environment(self) -> Any:
        """The problem as a Gymnasium environment."""

    def describe(self) -> dict[str, Any]:
        """Name, parameters and facts for reports, as plain JSON values."""
        about = {"name": self.name, "parameters": self.parameters, "family": self.family}
        return {**about, **self.sizes, "horizon": self.horizon}

    def _values(self) -> dict[str, Any]:
        """Of reports, where regret is measured."""
        name, value = self.baseline()
        return {
            "optimal_value": self.optimal_value(),
            "baseline": {"name": name, "value": value},
        }

    def _task(self, users: int, known: Mapping[str, npt.NDArray[Any]], **others: Any) -> Task:
        """The public description with these facts."""
        same = self.family, self.horizon, self.sizes, self.homogeneous
        return Task(*same, users=users, known=known, **others)

    def prepare(self, rng: np.random.Generator) -> None:  # noqa: B027, nothing is the default
        """What is tried out before the first user: nothing, where the truth is known."""

    def total(self, reward: Array, episodes: int | IntArray) -> Array:
        """Rewards added up over so many episodes, in the units that results show."""
        return reward

    def tests(self, policies: Sequence[Policy], seed: int) -> dict[str, Any] | None:
        """How learned policies do on fresh episodes; None where their values are known."""
        return None


def revealed(name: str, facts: Mapping[str, Array], reveal: Iterable[str]) -> dict[str, Array]:
    """Those of a problem's facts that a task shall reveal; others are refused."""
    known = {}
    for fact in reveal:
        if fact not in facts:
            raise InvalidInput(f"{name} has no fact {fact!r} to reveal{suggestion(fact, facts)}")
        known[fact] = facts[fact]
    return known
