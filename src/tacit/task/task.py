"""What the learner may know before the first user arrives."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import frozen_mapping
from tacit.errors import InvalidInput
from tacit.task.pairs import Pairs, declared_flags, make_pairs
from tacit.task.participation import Participation
from tacit.validate import integer, number, table_fits

LONGEST = 1e9
"""Seconds that an episode may take, about thirty years."""


@dataclass(frozen=True, eq=False)
class Task:
    """The public description of a problem (docs/architecture.md#consequence-6).

    A planner sees this and releases, nothing else. The truth about transitions and rewards stays
    in the Problem; a fact of it enters ``known`` only when it is revealed on purpose.

    Facts that a table may declare, and that every agent for tables honours: "terminal", flags [S]
    of the states that end an episode; "allowed", flags [S, A] of what may be played; "end_reward",
    the reward of every step after the end (0 unless declared); "returns", the least and
    the largest return of an episode (0 and the horizon unless declared). "initial" is the start law
    [S].

    Attributes:
        family: which planners fit, for example ``"tabular"``.
        horizon: number of steps H of one user's episode.
        sizes: public sizes, for example ``{"states": S, "actions": A}``.
        known: revealed facts by name, for example ``{"reward": array}``.
        homogeneous: whether the law of a step is declared not to depend on the stage.
        users: number K of participations the learner is planned (and paid) for.
        participations: of one person that are counted in full, in a period if budgets are renewed.
        rule: how often one person may take part, where that number does not say it all.
        duration: seconds that one episode takes, the same for whoever stops early; 0 if this is not
            declared. Devices hold their reports until it is over.
        labels: names of the states and of the actions, for people: no part of the task's identity.
    """

    family: str
    horizon: int
    sizes: Mapping[str, int]
    homogeneous: bool
    users: int
    known: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    participations: int = 1
    duration: float = 0.0
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rule: Participation | None = None

    def __post_init__(self) -> None:
        if self.rule is not None:
            object.__setattr__(self, "participations", self.rule.counted)
            object.__setattr__(self, "rule", None if self.rule.plain else self.rule)
        for name in ("horizon", "users", "participations"):
            object.__setattr__(self, name, integer(getattr(self, name), name, low=1))
        duration = number(self.duration, "duration", low=0.0, high=LONGEST)
        object.__setattr__(self, "duration", duration)
        sizes = {name: integer(size, name, low=1) for name, size in self.sizes.items()}
        object.__setattr__(self, "sizes", MappingProxyType(sizes))
        object.__setattr__(self, "known", frozen_mapping(self.known))
        object.__setattr__(self, "labels", checked_labels(self.labels, sizes))
        self._check_facts()

    def _check_facts(self) -> None:
        facts = {"terminal", "allowed", "end_reward"} & set(self.known)
        if facts and self.family != "tabular":
            raise InvalidInput(f"{min(facts)} is declared of tables only, not of {self.family}")
        if "allowed" in facts and "features" in self.known:
            raise InvalidInput("no agent learns from features where actions are forbidden")
        if facts:
            declared_flags(self.sizes, self.known)
            number(self.end_reward, "end_reward", low=0.0, high=1.0)
        if self.family == "tabular":
            low, high = self.returns
            number(high, "the largest of returns", low=0.0, low_open=True, high=self.horizon)
            number(low, "the least of returns", low=0.0, high=high, high_open=True)

    @property
    def end_reward(self) -> float:
        """Reward of every step after the end of an episode."""
        reward: Any = self.known.get("end_reward", 0.0)
        return float(reward) if np.ndim(reward) == 0 else math.nan

    @property
    def returns(self) -> tuple[float, float]:
        """The least and the largest return of an episode of a table."""
        declared = np.ravel(self.known.get("returns", np.array([0.0, self.horizon])))
        return (float(declared[0]), float(declared[1])) if len(declared) == 2 else (0.0, math.nan)

    @cached_property
    def pairs(self) -> Pairs:
        """Allowed actions of states that are not terminal, numbered."""
        return make_pairs(declared_flags(self.sizes, self.known))

    @property
    def counted(self) -> str:
        """What makes one report, in words: a user, unless people may come back."""
        once = self.rule is None and self.participations == 1
        return "user" if once else "participation that counts"

    @property
    def lifetime(self) -> bool:
        """Whether what one person teaches is bounded over all their participations together."""
        return self.rule is not None and self.rule.teaches == "lifetime"

    @property
    def masked(self) -> bool:
        """Whether some action is not allowed in a state that an episode goes on from."""
        alive = np.diff(self.pairs.first)
        return bool((alive[alive > 0] < self.sizes["actions"]).any())

    @property
    def revealed(self) -> tuple[str, ...]:
        """Names of the facts revealed, sorted."""
        return tuple(sorted(self.known))

    def digest(self) -> str:
        """SHA-256 of the content: equal digests mean that the learner was told the same."""
        sizes, people = sorted(self.sizes.items()), (self.users, self.participations)
        text = repr((self.family, self.horizon, sizes, self.homogeneous, *people))
        sha = hashlib.sha256(text.encode())
        if self.duration:
            sha.update(f"duration{self.duration!r}".encode())
        if self.rule is not None:
            sha.update(repr(self.rule).encode())
        for name in self.revealed:
            fact = self.known[name]
            sha.update(f"{name}{fact.dtype}{fact.shape}".encode())
            sha.update(fact.tobytes())
        return sha.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())


def checked_labels(
    labels: Mapping[str, Iterable[str]], sizes: Mapping[str, int]
) -> Mapping[str, tuple[str, ...]]:
    """Names of states and actions, as many as there are and each once."""
    if not isinstance(labels, Mapping):
        raise InvalidInput(
            f"labels = {labels!r}, but it must be names by kind, as in {{'actions': ['left', "
            "'right']}"
        )
    named = {kind: tuple(names) for kind, names in labels.items()}
    for kind, names in named.items():
        if kind not in sizes:
            raise InvalidInput(f"labels name {kind!r}, but only {', '.join(sizes)} have names")
        if not all(isinstance(name, str) and name for name in names):
            raise InvalidInput(f"labels of {kind} must be texts")
        if len(names) != sizes[kind] or len(set(names)) < len(names):
            raise InvalidInput(
                f"{len(set(names))} different names are given for {sizes[kind]} {kind}; give one "
                "for each"
            )
    return MappingProxyType(named)


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
