"""What a continual counter is: noisy prefix sums of a stream, charged once for the whole stream.

The matrix of prefix sums is written A = B C, both lower triangular in time. The counter publishes
y = C x + z, one fresh Gaussian vector z per row of C (a *node*), and everything released is made
from y: the prefixes are B y = A x + B z. Replacing one item whose L2 change is at most Delta moves
y by at most a Delta, a the largest column norm of C, whatever the other items do in reaction
(docs/papers/mixture_jdp.md#composition; proofs/continual_counters.md).

All of it is on the integer grid: contributions, C x (rounded where it is not whole), noise and y
are int64, so exact discrete samplers can be used; only B y is floating point, after the noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import GRID
from tacit.privacy.counters.state import Buffers, CounterState, Draw, whole_vector
from tacit.validate import integer, number

EXACT = 2**53
"""Whole numbers up to here are exact in float64."""

ROOM = 2**62
"""No exact sum may pass it: noise on top of it stays within the 64-bit integers."""

EXPLICIT = 4096
"""Longest stream whose matrices are written out."""


@dataclass(frozen=True)
class Strategy(ABC):
    """A counter for a stream of known length; immutable and public. Its state is the secret."""

    name: ClassVar[str]
    length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", integer(self.length, "length", low=1, high=EXACT))

    # What it costs and what it gives.

    @abstractmethod
    def column_norm(self) -> float:
        """a: how far y moves, in units of node noise, when one item moves by 1."""

    @abstractmethod
    def error_std(self, t: int) -> float:
        """Exact std of the noise in prefix t (1-based), for nodes of unit std.

        In a vector counter with node noise N(0, sigma^2 I) the noise in prefix t has covariance
        error_std(t)^2 sigma^2 I.
        """

    def worst_std(self) -> float:
        """The largest of them; the last one, unless a counter says otherwise."""
        return self.error_std(self.length)

    @abstractmethod
    def rounding_sensitivity(self, size: int, largest: int) -> float:
        """What rounding C x to the grid can add to a Delta, in grid steps; 0 if C x is whole."""

    def shift(self, sensitivity: float, size: int, largest: int) -> float:
        """The furthest that replacing one item can move y, in grid steps: a Delta + rounding.

        Args:
            sensitivity: L2 replace-one sensitivity of one item, in grid steps.
            size: cells of a contribution.
            largest: bound on the absolute value of a cell, in grid steps.
        """
        sensitivity = number(sensitivity, "sensitivity", low=0.0)
        return self.column_norm() * sensitivity + self.rounding_sensitivity(size, largest)

    def column_sum(self) -> float:
        """The same in L1, for Laplace noise: the largest column sum of C."""
        raise InvalidInput(
            f"a {self.name} counter has no known price for Laplace noise; choose the tree, or "
            "Gaussian noise"
        )

    # Running it.

    def init(self, size: int, largest: int) -> CounterState:
        """State before the first item.

        Args:
            size: cells of a contribution.
            largest: bound on the absolute value of a cell, in grid steps. Larger ones are clipped
                to it, which never moves two contributions further apart.
        """
        size, largest = self._checked(size, largest)
        return CounterState(self._description, size, largest, *self.buffers(size))

    def step(
        self, state: CounterState, contribution: npt.ArrayLike, draw: Draw
    ) -> tuple[Array, CounterState]:
        """Take in the next item and release the noisy prefix sum that ends with it.

        ``draw`` is asked for the noise of the nodes that this step completes, in order. The state
        is updated in place, so that no earlier one can be stepped a second time.
        """
        if state.counter != self._description:
            raise InvalidInput(f"this state belongs to {state.counter}, not to {self}")
        state.require_whole()
        t = self._position(state.steps + 1)
        item = whole_vector(contribution, "contribution", state.size)
        np.clip(item, -state.largest, state.largest, out=item)
        noise = state.take(self.nodes(t), draw)
        state.whole = False
        published = self.encode(state.secret, t, item) + noise
        prefix = self.decode(state.public, t, published)
        state.steps = t
        state.pending.clear()
        state.whole = True
        return prefix, state

    def close(
        self, state: CounterState, prefix: Array, contribution: npt.ArrayLike, draw: Draw
    ) -> Array:
        """The sum of everything: the last prefix, and one more item with noise of its own.

        One row more in C that holds this item alone. Its column has norm 1, the others are as they
        were, so replacing one item still moves y by at most a Delta (a >= 1), and noise that was
        drawn before is untouched (proofs/continual_counters.md).
        """
        if self.column_norm() < 1.0 or state.steps != self.length:
            raise InvalidInput(
                f"this counter is closed once, after its {self.length} steps, and only where one "
                "more item costs nobody more than the others"
            )
        state.require_whole()
        item = whole_vector(contribution, "contribution", state.size)
        np.clip(item, -state.largest, state.largest, out=item)
        noise = state.take(self.due(state.steps), draw)[0]
        state.steps += 1
        state.pending.clear()
        closed: Array = prefix + (item + noise)
        return closed

    def closing_std(self) -> float:
        """Exact std of the noise in that sum, for nodes of unit std."""
        return math.hypot(self.error_std(self.length), 1.0)

    def due(self, steps: int) -> range:
        """Numbers of the nodes that the step after so many completes; one closes the counter."""
        nodes = self.nodes(steps + 1)
        return nodes if steps < self.length else range(nodes.start, nodes.start + 1)

    def renew(self, state: CounterState) -> CounterState:
        """Forget the items so far: later rows hold none of them, which everybody knows.

        So C is made of blocks, one per period, and whoever is in one item of each moves y by at
        most a Delta in each, over independent noise. A counter of prefixes begins anew, and its
        prefixes are those of the period.
        """
        return self.init(state.size, state.largest)

    def from_arrays(
        self, arrays: Mapping[str, npt.NDArray[Any]], size: int, largest: int
    ) -> CounterState:
        """The state that ``to_arrays`` of one saved; goes on bit for bit as if never stopped."""
        saved = {name: np.asarray(array) for name, array in arrays.items()}
        state = self.init(size, largest)
        wanted = {"counter": state.counter, "size": state.size, "largest": state.largest}
        for name, value in wanted.items():
            stored = saved[name].tolist() if name in saved else None
            if stored != value:
                raise InvalidInput(f"the saved state has {name} = {stored!r}, not {value!r}")
        steps = saved["steps"].tolist() if "steps" in saved else None
        if steps != 0:
            state.steps = self._position(integer(steps, "steps of the saved state"))
        state.load(saved)
        due = self.due(state.steps)
        if not due.start + len(state.pending) == state.drawn <= due.stop:
            raise InvalidInput(
                f"the saved state has drawn {state.drawn} nodes with {len(state.pending)} pending, "
                f"but {due.start} are used up after {state.steps} steps"
            )
        return state

    # What each counter says about itself: C in ``encode``, B in ``decode``.

    def nodes(self, t: int) -> range:
        """Numbers of the nodes that step t completes; consecutive over the steps, from 0.

        One node per step, unless a counter says otherwise.
        """
        return range(t - 1, t)

    @abstractmethod
    def buffers(self, size: int) -> tuple[Buffers, Buffers]:
        """Blank secret and public buffers."""

    @abstractmethod
    def encode(self, secret: Buffers, t: int, item: IntArray) -> IntArray:
        """The rows of C x that step t completes, on the grid, without noise."""

    @abstractmethod
    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """Prefix t from what has been published; sees nothing else."""

    @abstractmethod
    def _factors(self) -> tuple[Array, Array]: ...

    def covariance(self) -> Array:
        """B B^T: the covariance of all prefixes, for nodes of unit std."""
        b, _ = self.factors()
        product: Array = b @ b.T
        return product

    # What an audit reads.

    def audit_view(self, public: Buffers, released: Array) -> Array:
        """What the newest step has published, for those who know the law of its noise."""
        return released

    def expected(self, items: IntArray) -> IntArray:
        """What is shown of these items [n, cells], without noise."""
        return np.cumsum(items, axis=0)

    def precision(self, releases: int) -> Array:
        """Inverse of the covariance of the noise in what so many steps show, for unit nodes."""
        return np.asarray(np.linalg.inv(self.covariance()[:releases, :releases]))

    def factors(self) -> tuple[Array, Array]:
        """B and C written out; B has a column and C a row per node."""
        if self.length > EXPLICIT:
            raise InvalidInput(
                f"length = {self.length}, but matrices are written out up to {EXPLICIT}"
            )
        return self._factors()

    def _position(self, t: int) -> int:
        """t, if the stream has such a step."""
        return integer(t, "step", low=1, high=self.length)

    @cached_property
    def _description(self) -> str:
        return repr(self)

    def _checked(self, size: int, largest: int) -> tuple[int, int]:
        size, largest = integer(size, "size", low=1), integer(largest, "largest", low=1)
        if self.length * largest > ROOM:
            raise InvalidInput(
                f"{self.length:,} releases with sums of up to {largest * GRID:.3g} between two of "
                "them could leave the 64-bit integers; plan for fewer users or shorter episodes"
            )
        return size, largest


class ExactRows(Strategy):
    """Counters whose C has entries 0 and 1: sums of whole numbers are whole."""

    def rounding_sensitivity(self, size: int, largest: int) -> float:
        """Nothing is rounded."""
        self._checked(size, largest)
        return 0.0


class RoundedRows(Strategy):
    """Counters whose C x must be rounded to the grid before integer noise is added."""

    def rounding_sensitivity(self, size: int, largest: int) -> float:
        """At most sqrt(n size) (1 + 2 e) grid steps.

        In either world a cell of the published rows is within 1/2 + e grid steps of C x, where e
        bounds the error of the floating-point sum. So each of the at most n size cells moves by at
        most 1 + 2 e more than the exact difference, and the triangle inequality does the rest.
        Items above 2^53 are themselves rounded, once each, which errs less than adding them up.
        """
        size, largest = self._checked(size, largest)
        error = self.unit_error() * (1.0 if largest <= EXACT else 2.0)
        per_cell = 1.0 + 2.0 * largest * error
        return math.sqrt(self.length * size) * per_cell

    @abstractmethod
    def unit_error(self) -> float:
        """Bound on the floating-point error of a cell of C x when all cells are within 1.

        At least the relative error of one operation times the largest sum of a row of C.
        """
