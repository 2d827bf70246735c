"""What a planner is: a function of the task and of releases, and of nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray, Rows, VisitTables
from tacit.kernels.public.planning import greedy
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy
from tacit.publication import Publication
from tacit.release import NoiseLaw, Release
from tacit.task.pairs import full_rows, nonzero_rows
from tacit.task.task import Task

Ask = Callable[[Any], Release]
"""Answered queries: a planner that needs one more number asks for it, and it is charged."""


KEYS = 2**62
"""Keys of public directions are drawn below it."""

Context = Mapping[str, npt.NDArray[Any]]
"""What is published beside a policy."""


class Streams(NamedTuple):
    """The planner's own randomness, one generator per purpose.

    Attributes:
        ties: for equally good actions.
        posterior: for models that are drawn.
        draws: how many of them are averaged: one explores; the mean of many is for a policy that is
            left in the end, where a draw would only be a risk.
    """

    ties: np.random.Generator
    posterior: np.random.Generator
    draws: int = 1


def averaged(draw: Callable[[], None], filled: Sequence[Array], draws: int) -> None:
    """Draw a model, or leave the mean of several in the arrays that ``draw`` fills."""
    draw()
    if draws == 1:
        return
    total = [array.copy() for array in filled]
    for _ in range(draws - 1):
        draw()
        for added, array in zip(total, filled, strict=True):
            added += array
    for added, array in zip(total, filled, strict=True):
        array[...] = added / draws


class Planner(Protocol):
    """Plans the next publication.

    It may not reach a trajectory, a statistic, a privatizer or a problem: ``test_architecture.py``
    follows its imports, and the planner contract checks its behaviour.
    """

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """The next entry of the billboard.

        Args:
            task: what was public from the start.
            release: the newest release.
            ask: for answered queries, each of which is charged.
            previous: the last publication, None before the first.
            streams: ties are drawn uniformly from ``streams.ties``.
        """


def next_version(previous: Publication | None) -> int:
    """Versions count from 0."""
    return 0 if previous is None else previous.version + 1


def greedy_actions(Q: Array, task: Task, streams: Streams) -> IntArray:
    """The best allowed action of every step and state [H, S], ties drawn.

    Args:
        Q: values of all actions [H, S, A], or of the task's pairs [H, X].
        task: says what is allowed.
        streams: ties are drawn from ``streams.ties``.
    """
    pairs = task.pairs
    actions = np.zeros((len(Q), len(pairs.number)), dtype=np.int64)
    of_pairs = Q if Q.ndim == 2 else np.ascontiguousarray(Q[:, pairs.state, pairs.action])
    greedy(pairs.first, pairs.action, of_pairs, streams.ties, actions)
    return actions


class QueryPlanner(ABC):
    """Planners that may ask for more than the newest release: a subclass chooses a policy."""

    def plan(
        self, task: Task, release: Release, ask: Ask, previous: Publication | None, streams: Streams
    ) -> Publication:
        """That policy, and what goes with it."""
        policy, context = self.choose(task, release, ask, previous, streams)
        return Publication(next_version(previous), policy, context)

    @abstractmethod
    def choose(
        self, task: Task, release: Release, ask: Ask, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """The policy, and what is published beside it."""


class ReleasePlanner(QueryPlanner):
    """Planners that ask for nothing: a subclass makes a policy of the newest release."""

    def choose(
        self, task: Task, release: Release, ask: Ask, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """That policy."""
        return self.policy(task, release, previous, streams)

    @abstractmethod
    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """The policy, and what is published beside it."""


class ValuePlanner(ReleasePlanner):
    """Planners of tables that play greedily: a subclass works out how good actions look."""

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """The policy that is greedy in the values."""
        Q, context = self.values(task, release, previous, streams)
        return TabularPolicy(greedy_actions(Q, task, streams)), context

    @abstractmethod
    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Q of actions [H, S, A] or pairs [H, X], and what is published beside the policy."""


def pair_rewards(task: Task) -> Array:
    """Mean rewards [G, X] of the pairs where the task reveals them, NaN where not."""
    pairs = task.pairs
    if "reward" in task.known:
        return np.ascontiguousarray(task.known["reward"][:, pairs.state, pairs.action])
    return np.full((1 if task.homogeneous else task.horizon, len(pairs.action)), np.nan)


def released_pairs(task: Task, release: Release, *, listed: bool) -> tuple[VisitTables, Rows]:
    """Visits of a task's pairs, and lists of the next states that were seen, or of all."""
    blocks, X = release.blocks, len(task.pairs.action)
    visits = blocks["visits"].reshape(-1, X)
    table = blocks["transitions"].reshape(*visits.shape, -1)
    squares = blocks.get("reward_squares", np.zeros((0, X))).reshape(-1, X)
    counts = VisitTables(blocks["reward"].reshape(-1, X), squares, visits, table)
    return counts, nonzero_rows(table)[0] if listed else full_rows(*table.shape)


MANY_STATES = 32
"""Tables with more states than this list the next states that were seen: a plan on exact counts
then costs what was seen, not S^2 A.

``benchmarks/sparse.py`` measures what listing changes (garnet, 60 states). Not measured: from how
many states on it pays.
"""


def lists_seen(task: Task, law: NoiseLaw) -> bool:
    """Whether next states that were never seen are left out: counts must be exact."""
    return task.sizes["states"] > MANY_STATES and law.name == "none"


def least_count(reached: Callable[[int], bool], most: int | None = None) -> int | None:
    """The least count at which a condition that stays true once true holds; None above most."""
    high = 1
    while not reached(high):
        high *= 2
        if most is not None and high > most:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
