"""The answers: how many users at each epsilon, from what was measured, in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.util.intervals import Interval, mean_interval
from tacit.wire.strict_json import finite

EXPONENT = 2.0
"""Users are taken to grow like epsilon to the minus this when they are extrapolated: with noise in
every report they do for small epsilons, with noise in sums they grow more slowly."""


@dataclass(frozen=True, eq=False)
class SizeMeasurement:
    """Runs of one agent with so many users.

    Attributes:
        users: how many took part; where people come back, how many different ones.
        gap_closed: by run, the share of the gap between the baseline and the best policy that is
            closed in the last tenth of the participations: 1 minus their exact regret over that of
            the baseline.
        seconds: wall-clock time of all runs together.
    """

    users: int
    gap_closed: tuple[float, ...]
    seconds: float

    @cached_property
    def interval(self) -> Interval:
        """The mean share; each end is missed with probability 5% (one-sided Student t)."""
        mean = mean_interval(np.array(self.gap_closed), 0.9)
        return Interval(mean.value, mean.low, min(mean.high, 1.0))

    def words(self) -> str:
        """The mean share with its bounds, in percent."""
        mean = self.interval
        ends = f" ({_percent(mean.low)} to {_percent(mean.high)})"
        return f"{_percent(mean.value)}{ends if np.isfinite(mean.low) else ''}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        mean = self.interval
        ends = finite({"closed": mean.value, "low": mean.low, "high": mean.high})
        return {"users": self.users, **ends, "per_run": list(self.gap_closed)}


def _percent(share: float) -> str:
    return f"{round(share, 2) + 0.0:.0%}"  # not -0%


@dataclass(frozen=True, eq=False)
class SizeAnswer:
    """How many users it takes at one epsilon.

    Attributes:
        epsilon: what was asked for; None for agents without.
        share: of the gap that is to be closed.
        measured: what was simulated, by number of users.
        never: why no number of users is enough, where that is certain; else empty.
        limit: why the agent takes no more users than were simulated, where it does not; else empty.
        extrapolated: users by a power law through larger epsilons; None where nothing allows it.
    """

    epsilon: float | None
    share: float
    measured: tuple[SizeMeasurement, ...]
    never: str = ""
    limit: str = ""
    extrapolated: int | None = None

    @property
    def sufficient(self) -> int | None:
        """The least number simulated at which the share is closed, with confidence."""
        large = (size for size in self.measured if size.interval.low >= self.share)
        return next((size.users for size in large), None)

    @property
    def insufficient(self) -> int:
        """Up to here every number simulated was too small, with confidence; 0 if none was."""
        small = itertools.takewhile(lambda size: size.interval.high < self.share, self.measured)
        return max((size.users for size in small), default=0)

    @property
    def level(self) -> str:
        """Its epsilon in words."""
        return "none" if self.epsilon is None else f"{self.epsilon:g}"

    def status(self, users: int) -> str:
        """Whether so many users are enough, not enough, or nobody knows."""
        if self.sufficient is not None and self.sufficient <= users:
            return "enough"
        if self.never or self.insufficient >= users:
            return "not enough"
        return "not decided" if self.last >= users else "not simulated so far"

    @property
    def last(self) -> int:
        """The largest number of users that was simulated."""
        return self.measured[-1].users if self.measured else 0

    @property
    def flat_since(self) -> int | None:
        """A hundredth of the users, or fewer, that was as close as the last, but for chance."""
        if not self.measured or self.insufficient < self.last:
            return None
        newest = self.measured[-1].interval.value
        earlier = [size for size in self.measured if 100 * size.users <= self.last]
        return earlier[-1].users if earlier and newest <= earlier[-1].interval.high else None

    def words(self) -> str:
        """The answer as a person would say it."""
        if self.never:
            return "never"
        if self.sufficient is not None:
            if self.sufficient == self.measured[0].users:
                return f"{self.sufficient:,} or fewer"
            least = f"{self.insufficient:,} to" if self.insufficient else "at most"
            return f"{least} {self.sufficient:,}"
        if not self.measured:
            return "not simulated"
        if self.insufficient:
            return f"not below {self.insufficient:,}"
        return f"not decided up to {self.last:,}"

    def note(self) -> str:
        """What goes with it: how it is known, and what is not."""
        if self.never:
            return self.never
        notes = []
        if self.sufficient is None and self.insufficient and self.insufficient < self.last:
            notes.append(f"not decided at {self.last:,}")
        if self.sufficient is None and self.flat_since is not None:
            notes.append(f"no closer than with {self.flat_since:,}")
        if self.limit:
            notes.append(self.limit)
        if self.extrapolated is not None:
            notes.append(f"extrapolated, not simulated: {about(self.extrapolated)}")
        return "; ".join(notes)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "epsilon": self.epsilon,
            "enough": self.sufficient,
            "not_below": self.insufficient,
            "extrapolated": self.extrapolated,
            "never": self.never,
            "limit": self.limit,
            "words": self.words(),
            "measured": [size.to_json() for size in self.measured],
        }


def about(users: int) -> str:
    """A number that is not known better than its size, rounded up.

    >>> about(33_500_000), about(1_100), about(7)
    ('about 40 million', 'about 2,000', 'about 7')
    """
    power = 10 ** (len(str(users)) - 1)
    rounded = -(-users // power) * power
    for size, word in ((10**9, "billion"), (10**6, "million")):
        if rounded >= size:
            return f"about {rounded // size:,} {word}"
    return f"about {rounded:,}"


def extrapolate(answers: Sequence[SizeAnswer]) -> dict[float, int]:
    """Users by epsilon where no number was shown to be enough, from the next larger one that was.

    By ``EXPONENT``, from the number that was enough there, which is more than is needed.
    """
    private = [(a.epsilon, a) for a in answers if a.epsilon is not None]
    known = {epsilon: a.sufficient for epsilon, a in private if a.sufficient}
    guesses = {}
    for epsilon, answer in private:
        larger = min((e for e in known if e > epsilon), default=None)
        if answer.sufficient is None and larger is not None:
            users = math.ceil(known[larger] * (larger / epsilon) ** EXPONENT)
            guesses[epsilon] = max(users, answer.last)
    return guesses
