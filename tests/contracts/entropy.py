"""The exact output law of code that draws: every tape of entropy is played, none is sampled.

A draw stands for all its values at once. Comparing it splits them into those below and those not
below, and both sides are followed, each with its exact probability; computing with it follows every
value. So a threshold that is off by one shows, and so does a draw more, a draw less, or an answer
that was drawn again. A secure sampler that does anything else with entropy than compare or add
whole numbers is refused.
"""

import contextlib
import importlib
import math
import os
import pkgutil
import secrets
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from tacit.kernels.raw import randomizers
from tacit.privacy import finite
from tacit.privacy.finite.oracle import generator

Law = dict[Hashable, Fraction]
LONGEST = 400
"""Draws of one output: more are a loop that does not end."""


class _Tape:
    """One path through all decisions; ``next_path`` moves on to the following one."""

    def __init__(self) -> None:
        self.path: list[tuple[int, list[Fraction]]] = []
        self.at = 0

    def choose(self, weights: list[Fraction]) -> int:
        """Which of these happens on this path."""
        if self.at == len(self.path):
            assert self.at < LONGEST, "drawing does not come to an end"
            self.path.append((self._first(weights, 0), weights))
        chosen, expected = self.path[self.at]
        assert weights == expected, "decisions must depend on earlier draws only"
        self.at += 1
        return chosen

    @staticmethod
    def _first(weights: list[Fraction], start: int) -> int:
        return next(i for i in range(start, len(weights)) if weights[i] > 0)

    def next_path(self) -> bool:
        self.at = 0
        while self.path:
            chosen, weights = self.path.pop()
            left = [i for i in range(chosen + 1, len(weights)) if weights[i] > 0]
            if left:
                self.path.append((left[0], weights))
                return True
        return False

    @property
    def chance(self) -> Fraction:
        return math.prod((weights[chosen] for chosen, weights in self.path), start=Fraction(1))


class _Whole:
    """A uniform whole number in [low, high), not yet decided."""

    def __init__(self, tape: _Tape, high: int) -> None:
        self.tape, self.low, self.high = tape, 0, high

    def _below(self, threshold: Any) -> bool:
        threshold = min(max(int(threshold), self.low), self.high)
        width = self.high - self.low
        below = Fraction(threshold - self.low, width)
        if self.tape.choose([below, 1 - below]) == 0:
            self.high = threshold
            return True
        self.low = threshold
        return False

    def __lt__(self, other: Any) -> bool:
        return self._below(other)

    def __le__(self, other: Any) -> bool:
        return self._below(other + 1)

    def __ge__(self, other: Any) -> bool:
        return not self._below(other)

    def __gt__(self, other: Any) -> bool:
        return not self._below(other + 1)

    def __eq__(self, other: object) -> bool:
        return self.__index__() == other

    def __bool__(self) -> bool:
        return self.__index__() != 0

    __hash__ = None  # type: ignore[assignment]

    def __index__(self) -> int:
        width = self.high - self.low
        assert width <= 64, "too many values to follow one by one: compare instead"
        chosen = self.low + self.tape.choose([Fraction(1, width)] * width)
        self.low, self.high = chosen, chosen + 1
        return chosen

    __int__ = __index__

    def __add__(self, other: int) -> int:
        return self.__index__() + other

    __radd__ = __add__


class _Real:
    """A uniform real number in [0, scale), not yet decided."""

    def __init__(self, tape: _Tape, scale: int = 1) -> None:
        self.tape, self.scale = tape, scale

    def __mul__(self, other: Any) -> "_Real":
        return _Real(self.tape, self.scale * int(other))

    def __lt__(self, other: Any) -> bool:
        below = min(max(Fraction(float(other)) / self.scale, Fraction(0)), Fraction(1))
        return self.tape.choose([below, 1 - below]) == 0

    def __int__(self) -> int:
        return self.tape.choose([Fraction(1, self.scale)] * self.scale)

    def __eq__(self, other: object) -> bool:
        raise AssertionError("real numbers are never equal")

    def __bool__(self) -> bool:
        raise AssertionError("real numbers are never zero")

    __hash__ = None  # type: ignore[assignment]


class _Generator:
    """What kernels use of a numpy Generator, with every value followed."""

    def __init__(self, tape: _Tape) -> None:
        self.tape = tape

    def random(self) -> _Real:
        return _Real(self.tape)

    def binomial(self, n: int, p: float) -> int:
        n, p = int(n), Fraction(float(p))
        masses = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        return self.tape.choose(masses)


def _followed(rng: Any) -> Any:
    """What is followed, where a generator is asked for; anything else is refused as ever."""
    return rng if isinstance(rng, _Generator) else generator(rng)


def _refused(*anything: Any, **more: Any) -> None:
    raise AssertionError("entropy was drawn in a way that cannot be followed")


def _played(run: Callable[[_Tape], Any]) -> Law:
    law: Law = defaultdict(Fraction)
    tape, more = _Tape(), True
    while more:
        output = run(tape)
        assert tape.at == len(tape.path)
        key = tuple(output.tolist()) if isinstance(output, np.ndarray) else output
        law[key] += tape.chance
        more = tape.next_path()
    assert sum(law.values()) == 1
    return dict(law)


def secure_law(sample: Callable[[], Any]) -> Law:
    """Probability of every output of code that draws from the operating system.

    It runs once unwatched: what is compiled on first use draws the names of its cache files.
    """
    sample()

    def run(tape: _Tape) -> Any:
        with mock.patch.multiple(
            secrets,
            randbits=lambda bits: _Whole(tape, 1 << bits),
            randbelow=lambda high: _Whole(tape, int(high)),
            choice=_refused,
            token_bytes=_refused,
        ), mock.patch.object(os, "urandom", _refused):  # fmt: skip
            return sample()

    return _played(run)


@contextlib.contextmanager
def _plain_kernels() -> Iterator[None]:
    """The plain Python of the kernels, which other tests show to be what is compiled."""
    with contextlib.ExitStack() as stack:
        for name, item in vars(randomizers).items():
            if hasattr(item, "py_func"):
                stack.enter_context(mock.patch.object(randomizers, name, item.py_func))
        for module in pkgutil.iter_modules(finite.__path__, f"{finite.__name__}."):
            if hasattr(importlib.import_module(module.name), "generator"):
                stack.enter_context(mock.patch(f"{module.name}.generator", _followed))
        for name in ("respond", "round_sums"):
            plain = getattr(randomizers, name)
            stack.enter_context(mock.patch(f"tacit.privacy.local.response.{name}", plain))
        yield


def simulated_law(sample: Callable[[Any], Any]) -> Law:
    """Probability of every output of code that draws from the generator it is given."""
    with _plain_kernels():
        return _played(lambda tape: sample(_Generator(tape)))
