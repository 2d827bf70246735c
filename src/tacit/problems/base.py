"""What a problem is: the truth that users live in, read by rollouts and scoring only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput, suggestion
from tacit.policies.base import Policy
from tacit.task.task import Task
from tacit.trajectory import Trajectory


@runtime_checkable
class Problem(Protocol):
    """The secret truth. A learner gets its :class:`~tacit.task.task.Task`, never this."""

    @property
    def name(self) -> str:
        """The name results and plots show."""

    @property
    def family(self) -> str:
        """Of its task."""

    @property
    def horizon(self) -> int:
        """Number of steps of an episode."""

    def task(self, users: int, reveal: Iterable[str] = ()) -> Task:
        """The public description, with the named facts revealed."""

    def optimal_value(self) -> float:
        """Exact expected return of the best policy, over the start law."""

    def value(self, policy: Policy) -> float:
        """Exact expected return of a policy, over the start law."""

    def baseline(self) -> tuple[str, float]:
        """Name and exact value of the policy that a learner must beat to be worth anything."""

    def rollout(self, policy: Policy, rng: np.random.Generator) -> Trajectory:
        """One user's episode; uses the same number of draws whatever happens in it."""

    def environment(self) -> Any:
        """The problem as a Gymnasium environment."""

    def describe(self) -> dict[str, Any]:
        """Name, parameters and facts for reports, as plain JSON values."""


def revealed(name: str, facts: Mapping[str, Array], reveal: Iterable[str]) -> dict[str, Array]:
    """Those of a problem's facts that a task shall reveal; others are refused."""
    known = {}
    for fact in reveal:
        if fact not in facts:
            raise InvalidInput(f"{name} has no fact {fact!r} to reveal{suggestion(fact, facts)}")
        known[fact] = facts[fact]
    return known
