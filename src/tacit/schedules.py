"""When to release: after how many users the learner plans anew."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Schedule = Callable[[int], int]
"""Number of users to serve before the next publication, given how many were served: public."""


def every_user(served: int) -> int:
    """Plan anew after every user."""
    return 1


def once(served: int) -> int:
    """One publication serves everybody."""
    return np.iinfo(np.int64).max


@dataclass(frozen=True)
class CappedBatches:
    """A share of the users so far, but at least ``least`` and at most ``most`` of them."""

    least: int
    most: int
    share: float

    def __call__(self, served: int) -> int:
        """Size of the next batch."""
        return max(self.least, min(int(self.share * served), self.most))


@dataclass(frozen=True)
class Every:
    """A new publication after every ``users`` users."""

    users: int = 1

    def __call__(self, served: int) -> int:
        """The same number every time."""
        return self.users


@dataclass(frozen=True)
class Geometric:
    """Releases after ``first`` users, then whenever their number has grown by ``growth``.

    Few releases mean little noise per release; their number grows with the logarithm of the users.
    The next one after t users is at t + max(least, whole(growth t) - t): rounded up in
    docs/papers/mixture_jdp.md#b5, to the nearest in docs/papers/linear_jdp.md#b2.
    """

    first: int
    growth: float
    least: int = 1
    whole: Callable[[float], int] = math.ceil

    def __call__(self, served: int) -> int:
        """Users until the next release, never less than ``least`` after one."""
        if served < self.first:
            return self.first - served
        return max(self.least, self.whole(self.growth * served) - served)

    def times(self, users: int) -> list[int]:
        """After how many users there is a release, the last user excluded: nobody acts on it."""
        marks, served = [], self(0)
        while served < users:
            marks.append(served)
            served += self(served)
        return marks

    def largest_batch(self, users: int) -> int:
        """Users in the largest batch."""
        return int(np.diff([0, *self.times(users), users]).max())


@dataclass(frozen=True)
class PlansPerRelease:
    """Several publications for every release: plan again without one.

    Attributes:
        times: after how many users there is a release, from 0 to the last user, increasing.
        plans: publications between two releases, at most; each is for as many users as the others.
        least: users of a publication, at least.
    """

    times: tuple[int, ...]
    plans: int
    least: int = 1

    def number(self, served: int) -> int:
        """Number of the newest release after so many users."""
        return bisect.bisect_right(self.times, served) - 1

    def __call__(self, served: int) -> int:
        """Users until the next publication."""
        i = self.number(served)
        if i == len(self.times) - 1:
            return 1
        start, users = self.times[i], self.times[i + 1] - self.times[i]
        many = 1 if i == 0 else max(1, min(self.plans, users // self.least))
        done = (served - start) * many // users + 1
        return start + -(-users * done // many) - served


@dataclass(frozen=True)
class MinimumBatch:
    """Another schedule, but no batch smaller than ``least``."""

    schedule: Schedule
    least: int

    def __call__(self, served: int) -> int:
        """Size of the next batch."""
        return max(self.least, self.schedule(served))
