"""Streams of unknown length: phases of growing length, each with a counter of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.privacy.counters.base import EXACT, Counter, Strategy
from tacit.privacy.counters.catalogue import strategy
from tacit.privacy.counters.state import Buffers
from tacit.validate import integer

_strategy = lru_cache(maxsize=256)(strategy)


@dataclass(frozen=True)
class Doubling(Counter):
    """Phases of ``first``, ``first * growth``, ... items, at most ``longest``, then all that long.

    An item is in one phase, fixed by its position, so phases compose in parallel: the charge is
    that of one phase, not a sum (docs/papers/mixture_jdp.md#e16). Nodes of a phase with column norm
    a get noise of std a sigma (:meth:`node_scale`): every phase then costs the same, and
    ``column_norm`` is 1. A release is the sum of the last prefixes of all finished phases and the
    current one.

    Where any bound on the length is known, ``blt`` for that bound is better: made for 2^20 items it
    releases prefix 2^14 with variance 23 (unit sensitivity and mu), phases of blt with 102, or 62
    at growth 4.

    Attributes:
        kind: name of the counter of every phase.
        first: length of the first phase.
        growth: ratio of the lengths of neighbouring phases.
        longest: where phases stop growing. It bounds memory (toeplitz) and rounding.
    """

    kind: str
    first: int = 1
    growth: int = 2
    longest: int = 2**16

    name: ClassVar[str] = "doubling"

    def __post_init__(self) -> None:
        for field, low, high in (
            ("longest", 1, EXACT),
            ("first", 1, self.longest),
            ("growth", 2, None),
        ):
            value = integer(getattr(self, field), field, low=low, high=high)
            object.__setattr__(self, field, value)
        strategy(self.kind, self.longest)

    @cached_property
    def _growing(self) -> tuple[int, ...]:
        """Lengths of the phases before the first one of full length."""
        lengths = []
        length = self.first
        while length < self.longest:
            lengths.append(length)
            length *= self.growth
        return tuple(lengths)

    def phase(self, index: int) -> Strategy:
        """The counter of a phase."""
        grown = index >= len(self._growing)
        return _strategy(self.kind, self.longest if grown else self._growing[index])

    def locate(self, t: int) -> tuple[int, int]:
        """Phase of step t, and which step of that phase it is (1-based)."""
        for index, length in enumerate(self._growing):
            if t <= length:
                return index, t
            t -= length
        more, rest = divmod(t - 1, self.longest)
        return len(self._growing) + more, rest + 1

    def column_norm(self) -> float:
        """1: the noise of every phase is scaled by its column norm."""
        return 1.0

    def node_scale(self, node: int) -> float:
        """Column norm of the phase that the node belongs to."""
        node = integer(node, "node", low=0)
        for length in self._growing:
            counter = _strategy(self.kind, length)
            if node < _node_count(counter):
                return counter.column_norm()
            node -= _node_count(counter)
        return _strategy(self.kind, self.longest).column_norm()

    def error_std(self, t: int) -> float:
        """Variances of the finished phases and of the current one add up."""
        index, local = self.locate(self._position(t))
        current = _variance(self.phase(index), local)
        return math.sqrt(self._finished(index, lambda c: _variance(c, c.length)) + current)

    def rounding_sensitivity(self, size: int, largest: int) -> float:
        """The worst phase, in units of that phase's column norm."""
        size, largest = self._checked(size, largest)
        return max(
            counter.rounding_sensitivity(size, largest) / counter.column_norm()
            for counter in map(self.phase, range(len(self._growing) + 1))
        )

    def nodes(self, t: int) -> range:
        """Nodes of the phase, numbered after those of all earlier phases."""
        index, local = self.locate(t)
        before = int(self._finished(index, _node_count))
        inner = self.phase(index).nodes(local)
        return range(before + inner.start, before + inner.stop)

    def buffers(self, size: int, steps: int) -> tuple[Buffers, Buffers]:
        """Those of the current phase, the sum of finished phases and the latest prefix."""
        index, _ = self.locate(max(steps, 1))
        secret, public = self.phase(index).buffers(size, 0)
        return secret, public | {"finished": np.zeros(size), "latest": np.zeros(size)}

    def encode(self, secret: Buffers, t: int, item: IntArray) -> IntArray:
        """As the phase does; a new phase forgets the exact sums of the one before."""
        index, local = self.locate(t)
        if local == 1:
            secret.clear()
            secret.update(self.phase(index).buffers(len(item), 0)[0])
        return self.phase(index).encode(secret, local, item)

    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """Finished phases plus the current prefix."""
        index, local = self.locate(t)
        if local == 1:
            finished = public["finished"] + public["latest"]
            public.clear()
            public.update(self.phase(index).buffers(len(finished), 0)[1], finished=finished)
        latest = self.phase(index).decode(public, local, published)
        public["latest"] = latest
        total: Array = public["finished"] + latest
        return total

    def _finished(self, index: int, value: Callable[[Strategy], float]) -> float:
        """Sum of a quantity over all phases before this one."""
        growing = min(index, len(self._growing))
        total = sum(value(self.phase(i)) for i in range(growing))
        return total + (index - growing) * value(_strategy(self.kind, self.longest))

    def _longest(self) -> int:
        return self.longest

    def _position(self, t: int) -> int:
        return integer(t, "step", low=1)


def _node_count(counter: Strategy) -> int:
    return counter.nodes(counter.length + 1).start


def _variance(counter: Strategy, t: int) -> float:
    return (counter.column_norm() * counter.error_std(t)) ** 2
