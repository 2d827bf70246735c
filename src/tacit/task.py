"""What the learner may know before the first user arrives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import frozen_mapping
from tacit.errors import InvalidInput
from tacit.validate import integer, number, table_fits

LONGEST = 1e9
"""Seconds that an episode may take, about thirty years."""


@dataclass(frozen=True, eq=False)
class Task:
    """The public description of a problem (docs/architecture.md#consequence-6).

    A planner sees this and releases, nothing else. The truth about transitions and rewards stays
    in the Problem; a fact of it enters ``known`` only when it is revealed on purpose.

    Attributes:
        family: which planners fit, for example ``"tabular"``.
        horizon: number of steps H of one user's episode.
        sizes: public sizes, for example ``{"states": S, "actions": A}``.
        known: revealed facts by name, for example ``{"reward": array}``.
        homogeneous: whether the law of a step is declared not to depend on the stage.
        users: number K of participations the learner is planned (and paid) for.
        participations: how often one person may take part.
        duration: seconds that one episode takes, the same for whoever stops early; 0 if this is not
            declared. Devices hold their reports until it is over.
    """

    family: str
    horizon: int
    sizes: Mapping[str, int]
    homogeneous: bool
    users: int
    known: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    participations: int = 1
    duration: float = 0.0

    def __post_init__(self) -> None:
        for name in ("horizon", "users", "participations"):
            object.__setattr__(self, name, integer(getattr(self, name), name, low=1))
        duration = number(self.duration, "duration", low=0.0, high=LONGEST)
        object.__setattr__(self, "duration", duration)
        sizes = {name: integer(size, name, low=1) for name, size in self.sizes.items()}
        object.__setattr__(self, "sizes", MappingProxyType(sizes))
        object.__setattr__(self, "known", frozen_mapping(self.known))

    @property
    def revealed(self) -> tuple[str, ...]:
        """Names of the facts revealed, sorted."""
        return tuple(sorted(self.known))

    def digest(self) -> str:
        """SHA-256 of the content: equal digests mean that the learner was told the same."""
        text = repr(
            (
                self.family,
                self.horizon,
                sorted(self.sizes.items()),
                self.homogeneous,
                self.users,
                self.participations,
            )
        )
        sha = hashlib.sha256(text.encode())
        if self.duration:
            sha.update(f"duration{self.duration!r}".encode())
        for name in self.revealed:
            fact = self.known[name]
            sha.update(f"{name}{fact.dtype}{fact.shape}".encode())
            sha.update(fact.tobytes())
        return sha.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())


def table_sizes(task: Task) -> tuple[int, int, int]:
    """H, S, A of a finite task."""
    return task.horizon, task.sizes["states"], task.sizes["actions"]


def feature_table(task: Task) -> npt.NDArray[Any]:
    """phi(s, a) [S, A, d]: the declared features, or one coordinate per pair where there are none.

    So a tabular task is a linear one with d = S A (docs/papers/linear_jdp.md#river-swim).
    """
    _, S, A = table_sizes(task)
    if "features" in task.known:
        phi = task.known["features"]
        if phi.ndim != 3:
            raise InvalidInput(
                "this agent learns linear MDPs, with features of a state and an action, but the "
                "problem declares features of transitions (a linear mixture); choose an agent for "
                "mixtures, such as tacit-joint"
            )
        return phi
    table_fits("one-hot features", S, A, S * A)
    return np.eye(S * A).reshape(S, A, S * A)
