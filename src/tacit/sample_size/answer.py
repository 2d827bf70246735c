"""The answers of a plan: how many users at each epsilon, from what was measured, in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.sample_size.measure import Measured

EXPONENT = 2.0
"""Users are taken to grow like epsilon to the minus this when they are extrapolated: with noise in
every report they do for small epsilons, with noise in sums they grow more slowly."""


@dataclass(frozen=True, eq=False)
class Answer:
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
    measured: tuple[Measured, ...]
    never: str = ""
    limit: str = ""
    extrapolated: int | None = None

    @property
    def enough(self) -> int | None:
        """The least number simulated at which the share is closed, with confidence."""
        found = (size for size in self.measured if size.interval.low >= self.share)
        return next((size.users for size in found), None)

    @property
    def not_below(self) -> int:
        """Up to here every number simulated was too small, with confidence; 0 if none was."""
        small = itertools.takewhile(lambda size: size.interval.high < self.share, self.measured)
        return max((size.users for size in small), default=0)

    @property
    def last(self) -> int:
        """The largest number of users that was simulated."""
        return self.measured[-1].users if self.measured else 0

    @property
    def flat_since(self) -> int | None:
        """A hundredth of the users, or fewer, that was as close as the last, but for chance."""
        if not self.measured or self.not_below < self.last:
            return None
        newest = self.measured[-1].interval.value
        earlier = [size for size in self.measured if 100 * size.users <= self.last]
        return earlier[-1].users if earlier and newest <= earlier[-1].interval.high else None

    def words(self) -> str:
        """The answer as a person would say it."""
        if self.never:
            return "never"
        if self.enough is not None:
            if self.enough == self.measured[0].users:
                return f"{self.enough:,} or fewer"
            return (
                f"{self.not_below:,} to {self.enough:,}"
                if self.not_below
                else (f"at most {self.enough:,}")
            )
        if not self.measured:
            return "not simulated"
        if self.not_below:
            return f"not below {self.not_below:,}"
        return f"not decided up to {self.last:,}"

    def note(self) -> str:
        """What goes with it: how it is known, and what is not."""
        if self.never:
            return self.never
        said = []
        if self.enough is None and self.not_below and self.not_below < self.last:
            said.append(f"not decided at {self.last:,}")
        if self.enough is None and self.flat_since is not None:
            said.append(f"no closer than with {self.flat_since:,}")
        if self.limit:
            said.append(self.limit)
        if self.extrapolated is not None:
            said.append(f"extrapolated, not simulated: {about(self.extrapolated)}")
        return "; ".join(said)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "epsilon": self.epsilon,
            "enough": self.enough,
            "not_below": self.not_below,
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


def extrapolate(answers: Sequence[Answer]) -> dict[float, int]:
    """Users by epsilon where no number was shown to be enough, from the next larger one that was.

    By ``EXPONENT``, from the number that was enough there, which is more than is needed.
    """
    known = {a.epsilon: a.enough for a in answers if a.epsilon is not None and a.enough}
    found = {}
    for answer in answers:
        larger = [e for e in known if answer.epsilon is not None and e > answer.epsilon]
        if answer.epsilon is not None and answer.enough is None and larger:
            ratio = min(larger) / answer.epsilon
            users = math.ceil(known[min(larger)] * ratio**EXPONENT)
            found[answer.epsilon] = max(users, answer.last)
    return found
