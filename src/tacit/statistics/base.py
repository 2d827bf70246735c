"""What a statistic is: a bounded function of one trajectory that knows its own bound."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Literal, NoReturn, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput, RawDataLeak, suggestion
from tacit.grid import STEPS
from tacit.publication import Publication
from tacit.task.task import Task
from tacit.trajectory import Attendees, Lives, Trajectory
from tacit.validate import number, table_fits

Norm = Literal["l1", "l2"]
NORMS = ("l1", "l2")


class Relation(Enum):
    """Which two datasets must look alike. Never implied, always passed."""

    REPLACE_ONE = "replace-one"
    """One user's whole trajectory is replaced by any other."""
    ADD_REMOVE_ONE = "add-remove-one"
    """One user's contribution is there or is zero."""


@dataclass(frozen=True)
class Block:
    """A named part of a contribution: an integer array counted in steps of ``unit``."""

    name: str
    shape: tuple[int, ...]
    unit: float = 1.0

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)


class Layout:
    """How named blocks lie in the one flat integer vector that a user contributes."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)

    @cached_property
    def size(self) -> int:
        """Length of the flat vector."""
        return sum(block.size for block in self.blocks)

    @cached_property
    def units(self) -> Array:
        """Size of one step of every cell, flat."""
        return np.concatenate([np.zeros(0), *(np.full(b.size, b.unit) for b in self.blocks)])

    def views(self, flat: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """The blocks of a flat vector, as views into it."""
        views, start = {}, 0
        for block in self.blocks:
            views[block.name] = flat[start : start + block.size].reshape(block.shape)
            start += block.size
        return views


def block_weights(
    layout: Layout, norm: Norm, relation: Relation, scale: Mapping[str, float] | None
) -> dict[str, float]:
    """The weight of every block in a sensitivity question, which must not be asked wrongly.

    A misspelt relation, norm or block would give a smaller number without a word, and so too little
    noise: each is refused.
    """
    if not isinstance(relation, Relation):
        raise InvalidInput(f"relation = {relation!r}, but it must be a member of Relation")
    if norm not in NORMS:
        raise InvalidInput(f"norm = {norm!r}, but it must be one of {', '.join(NORMS)}")
    weights = {block.name: 1.0 for block in layout.blocks}
    for name, weight in (scale or {}).items():
        if name not in weights:
            raise InvalidInput(f"there is no block {name!r} to scale{suggestion(name, weights)}")
        weights[name] = number(weight, f"scale of {name}", low=0.0)
    return weights


def counted(name: str, *shape: int) -> Block:
    """A block of sums of numbers on the grid."""
    return Block(name, shape, 1.0 / STEPS)


def visits_moved(
    weights: tuple[float, float, float], visits: int, norm: Norm, replaced: bool
) -> float:
    """What so many counted visits of one person move at most: L1, or the square of L2.

    A visit adds 1 to where it led, something within 1/2 to what it earned, and 1/2 to a total. A
    pair that two people count moves two cells by 1 and what it earned by 1, its total not at all;
    one that only one of them counts moves a cell by 1 and the others by 1/2 each.

    Args:
        weights: of where visits lead, of what they earn, and of totals; 0 for what is not counted.
        visits: how many of one person are counted; those of one pair n^2 times in squared L2.
        norm: "l1" or "l2".
        replaced: whether one person's visits take the place of another one's.
    """
    led, earned, total = weights
    people = 1 + replaced
    if norm == "l1":
        return people * visits * (led + 0.5 * (earned + total))
    apart = (earned**2 + total**2) / 4
    if replaced:
        apart = max(apart, earned**2 / 2)
    return people * visits * (led**2 + apart)


def context_array(publication: Publication, name: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """An array of the publication's context, of the shape that the statistic's kernels read.

    What was published is public, so refusing it says nothing about the user; compiled code that
    reads another shape would run out of bounds on the user's own device.
    """
    array = publication.context.get(name)
    if array is None or array.shape != shape:
        content = "nothing" if array is None else f"shape {list(array.shape)}"
        raise InvalidInput(
            f"publication {publication.version} must carry {name!r} of shape {list(shape)}, but it "
            f"carries {content}"
        )
    return array


class Bounded(Protocol):
    """A sum over people that knows how far one of them can move it."""

    @property
    def layout(self) -> Layout:
        """Blocks of the contribution."""

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """Largest change of the whole vector over all neighbours and publications, natural units.

        Args:
            norm: "l1" or "l2", jointly over all blocks.
            relation: which datasets are neighbours.
            scale: optional weight per block (default 1), for mechanisms that rescale blocks.
        """


class Statistic(Bounded, Protocol):
    """Turns a user's raw trajectory into a bounded vector (docs/architecture.md#consequence-2)."""

    def contribute(
        self, trajectory: Trajectory, publication: Publication, coin: int, out: IntArray
    ) -> None:
        """Overwrite ``out`` with the clipped contribution, whatever the publication says.

        Args:
            trajectory: what the user lived through.
            publication: the entry the user acted on.
            coin: the report's public id (in simulation: k). Whatever a statistic draws at random
                (an assigned step, a rounding) is a keyed function of it.
            out: flat integer vector of the layout's size.
        """

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Two trajectories whose contributions are as far apart as replace-one allows.

        Audits run on them; a test checks that they attain the declared sensitivity.
        """


def contribution_of(
    statistic: Statistic, life: Trajectory, publication: Publication, coin: int
) -> IntArray:
    """What a life contributes, clipped."""
    out = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.contribute(life, publication, coin, out)
    return out


@runtime_checkable
class ReadsPublication(Protocol):
    """A statistic that reads numbers from the publication: whoever publishes can aim it."""

    def worst_contexts(self) -> Mapping[str, Mapping[str, npt.NDArray[Any]]]:
        """Public numbers to audit under, by name: each set takes the place of what was published.

        Together they bring out everything that the statistic can be made to report.
        """


class BoundedSum(ABC):
    """A sum over people that refuses questions about its bound that are asked wrongly."""

    layout: Layout

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """See :meth:`Bounded.sensitivity`; what it is, is said where it is worked out."""
        weights = block_weights(self.layout, norm, relation, scale)
        return self._sensitivity(weights, norm, relation is Relation.REPLACE_ONE)

    @abstractmethod
    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """With a weight for every block; one person is replaced by another, or removed."""


class BatchStatistic(ABC):
    """A statistic that adds up many users of one publication; one user is a batch of one."""

    @abstractmethod
    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the clipped contributions of many users to ``out``.

        Args:
            lives: what they lived through.
            publication: the entry that all of them acted on.
            coins: the public ids of their reports, one per user.
            out: flat integer vector of the layout's size.
        """

    def contribute(
        self, trajectory: Trajectory, publication: Publication, coin: int, out: IntArray
    ) -> None:
        """Overwrite ``out`` with the clipped contribution of one user."""
        out[:] = 0
        states, actions, rewards = trajectory.states, trajectory.actions, trajectory.rewards
        alone = Lives(states[None], actions[None], rewards[None])
        self.add_many(alone, publication, np.array([coin], dtype=np.int64), out)


class Memory:
    """What people have taught so far, at first nothing: raw. Never printed, never pickled.

    A curator keeps it with its sums, as secret, and forgets it with them (``state`` and ``rows``).

    Attributes:
        taught: by person, how often each thing was taught.
        spent: by person, what is used up of the bound of a life.
    """

    __slots__ = ("taught", "spent")

    def __init__(self, people: int, memory_size: int) -> None:
        table_fits("the memory of who taught what", people, memory_size)
        self.taught: npt.NDArray[np.uint8] = np.zeros((people, memory_size), dtype=np.uint8)
        self.spent: IntArray = np.zeros(people, dtype=np.int64)

    def of(self, who: IntArray, forget: bool = False) -> Attendees:
        """The people of these rows, as statistics take them; what they teach is remembered here."""
        return Attendees(who, self.taught, self.spent, forget)

    def clear(self) -> None:
        """Forget everything: a new period begins."""
        self.taught[...], self.spent[...] = 0, 0

    def __repr__(self) -> str:
        return f"Memory(people={len(self.spent)}, content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RawDataLeak("a Memory holds what people did and cannot be pickled or copied")


class LifetimeStatistic(BatchStatistic):
    """A batch statistic that can bound what one person adds in all their participations together.

    Its sensitivity then is that of whole lives: of any two lives that come at the same moments,
    whatever happens in them and at whichever of these moments they teach, through a counter with
    non-negative columns of norm at most 1 (proofs/lifetimes.md). Without a task that asks for it
    every row is a person of their own.
    """

    task: Task
    memory_size: int
    """How many things a person's memory tells apart."""

    @property
    def lifetime(self) -> bool:
        """Whether people are remembered."""
        return self.task.lifetime

    def memory(self, people: int) -> Memory:
        """The memory of so many people, blank."""
        return Memory(people, self.memory_size)

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the contributions of strangers, who are forgotten at once."""
        rows = np.zeros(len(lives.rewards), dtype=np.int64)
        self.add_people(lives, publication, coins, self.memory(1).of(rows, forget=True), out)

    @abstractmethod
    def add_people(
        self, lives: Lives, publication: Publication, coins: IntArray, who: Attendees, out: IntArray
    ) -> None:
        """Add what many participations teach, in their order.

        Args:
            lives: what was lived through, one participation per row.
            publication: the entry that all of them acted on.
            coins: the public ids of their reports.
            who: who they were, and what these people have taught before; brought up to date.
            out: flat integer vector of the layout's size.
        """


def bounds_lifetimes(statistic: Bounded) -> bool:
    """Whether a statistic bounds what one person adds in all their participations together."""
    return isinstance(statistic, LifetimeStatistic) and statistic.lifetime
