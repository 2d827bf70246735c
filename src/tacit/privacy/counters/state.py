"""The state of a running counter: secret, resumable, and unable to draw a node's noise twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tacit.arrays import IntArray
from tacit.errors import InvalidInput, RawDataLeak

Draw = Callable[[int], npt.NDArray[Any]]
"""Gives the noise vector (int64, in grid steps) of the node with this number."""

Buffers = dict[str, npt.NDArray[Any]]
"""Named arrays that a counter carries from step to step."""


def whole_vector(value: object, name: str, size: int) -> IntArray:
    """A private int64 copy of a vector of whole numbers.

    Judged by type and shape alone: a refusal must not depend on what a user contributed, so a float
    vector is refused whatever it holds (NaN included), and nothing of its content is printed.
    """
    array = np.asarray(value)
    whole = array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64)
    if not whole or array.shape != (size,):
        raise InvalidInput(
            f"{name} has dtype {array.dtype} and shape {array.shape}, but it must be a vector of "
            f"{size} whole numbers (int64), in grid steps"
        )
    return np.array(array, dtype=np.int64)


class CounterState:
    """Where a counter stands. Holds exact sums and noise: never printed, never pickled.

    Attributes:
        counter: the description of the counter it belongs to.
        size: cells of a contribution.
        largest: bound on the absolute value of a contribution's cells, in grid steps.
        steps: number of prefixes released so far.
        drawn: number of nodes whose noise has been drawn; nodes are numbered in drawing order, so
            exactly the numbers below this one have been.
        pending: noise drawn for a step that has not been completed.
        secret: exact buffers, functions of the contributions.
        public: buffers that are functions of published values only.
        whole: False while a step is being worked out, and for ever if that was interrupted.
    """

    __slots__ = (
        *("counter", "drawn", "largest", "pending", "public"),
        *("secret", "size", "steps", "whole"),
    )

    def __init__(
        self, counter: str, size: int, largest: int, secret: Buffers, public: Buffers
    ) -> None:
        self.counter = counter
        self.size = size
        self.largest = largest
        self.secret = secret
        self.public = public
        self.steps = 0
        self.drawn = 0
        self.pending: list[IntArray] = []
        self.whole = True

    def __repr__(self) -> str:
        return "State(content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RawDataLeak(
            "the state of a counter holds exact user data and noise and cannot be pickled or "
            "copied; to_arrays() is for encrypted storage"
        )

    def require_whole(self) -> None:
        """Refuse a state whose last step was cut short: its buffers may be half updated."""
        if not self.whole:
            raise InvalidInput(
                f"step {self.steps + 1} of this counter was interrupted half-way, but a state must "
                "be whole to go on; restore the one saved before that step"
            )

    def take(self, nodes: range, draw: Draw) -> IntArray:
        """The noise of these nodes, one row each, every node drawn exactly once.

        If ``draw`` fails half-way, what it gave so far is kept, and the next attempt uses it.
        """
        unused = self.drawn - len(self.pending)
        if nodes.start != unused:
            raise InvalidInput(
                f"noise of node {nodes.start} was asked for, but the next node that may be used is "
                f"{unused}: a node's noise is drawn once, in order"
            )
        while self.drawn < nodes.stop:
            node = self.drawn
            noise = whole_vector(draw(node), f"noise of node {node}", self.size)
            if self.drawn != node:
                raise InvalidInput(
                    f"node {node} was drawn while it was being drawn: the noise source must not "
                    "step the counter it serves"
                )
            self.pending.append(noise)
            self.drawn += 1
        return np.stack(self.pending)

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the content of saved arrays, which must have the shapes of this state's own."""
        own = self.to_arrays()
        if set(arrays) != set(own):
            raise InvalidInput(
                f"the saved state has the parts {sorted(arrays)}, but this counter keeps "
                f"{sorted(own)}"
            )
        for name, array in own.items():
            part = arrays[name]
            free = name in ("counter", "pending")  # text, and as many rows as it happens to have
            shape = (len(part), self.size) if name == "pending" and part.ndim else array.shape
            if part.shape != shape or not (free or part.dtype == array.dtype):
                raise InvalidInput(
                    f"{name} of the saved state has dtype {part.dtype} and shape {part.shape}, "
                    f"but this counter keeps {array.dtype} and {shape}"
                )
            if array.dtype.kind == "f" and not np.isfinite(part).all():
                raise InvalidInput(f"{name} of the saved state is not finite")
        for place, buffers in (("secret", self.secret), ("public", self.public)):
            for name, buffer in buffers.items():
                buffer[...] = arrays[f"{place}.{name}"]
        self.drawn = int(arrays["drawn"])
        self.pending = [whole_vector(row, "pending noise", self.size) for row in arrays["pending"]]

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to go on, as plain arrays (copies). Secret: store encrypted.

        Save it before a prefix is shown to anybody: a prefix that was shown and forgotten would be
        released again with other noise.
        """
        self.require_whole()
        pending = np.array(self.pending, dtype=np.int64).reshape(len(self.pending), self.size)
        numbers = {name: np.array(getattr(self, name), dtype=np.int64) for name in NUMBERS}
        return {
            "counter": np.array(self.counter),
            **numbers,
            "pending": pending,
            **{f"secret.{name}": array.copy() for name, array in self.secret.items()},
            **{f"public.{name}": array.copy() for name, array in self.public.items()},
        }


NUMBERS = ("size", "largest", "steps", "drawn")
