"""How often one person may take part, and what that teaches: a public rule of a task.

People come back. The rule says how often they may, how far apart, after which time their budget is
renewed, and which of their participations are counted. A guarantee covers whatever one person does
in all their participations of a period.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from tacit.errors import InvalidInput
from tacit.util.durations import in_words, seconds
from tacit.validate import choice, integer

Teaches = Literal["first", "lifetime", "every"]
Attendance = Literal["public", "private"]

ANY = "any"
"""In place of a number: as often as they like."""

MOST = 10_000
"""No larger number of participations is counted."""

OFTEN = 255
"""A memory holds one byte per person and thing: what is counted there must not begin again at 0."""

LONGEST = 1e9
"""Seconds, about thirty years."""


@dataclass(frozen=True)
class Participation:
    """The rule.

    Attributes:
        times: participations of one person in a period, at most; None for any number.
        teaches: which of them teach. "first": of a period only the first one is counted; in the
            others people act on policies and nothing is reported. "lifetime": every one, but what
            one person teaches in all of them together is bounded as if it were one. "every": each
            is counted in full, and all are paid for as a group. None leaves it to the agent.
        apart: seconds from the beginning of one to the beginning of the next, at least.
        period: seconds after which budgets are renewed; 0 for never.
        attendance: "public" if two lives that must look alike come at the same moments; "private"
            if one of them may stay away.
        often: c, how often one person may teach the same in a life that is bounded; noise grows in
            proportion.
    """

    times: int | None = 1
    teaches: Teaches | None = None
    apart: float = 0.0
    period: float = 0.0
    attendance: Attendance = "public"
    often: int = 1

    def __post_init__(self) -> None:
        times: Any = self.times
        if times == ANY:
            times = None
        if times is not None:
            times = integer(times, "participations", low=1, high=MOST)
        object.__setattr__(self, "times", times)
        if self.teaches is not None:
            choice(self.teaches, "teaches", get_args(Teaches))
        choice(self.attendance, "attendance", get_args(Attendance))
        object.__setattr__(self, "often", integer(self.often, "often", low=1, high=OFTEN))
        for name in ("apart", "period"):
            length = seconds(getattr(self, name), name)
            if length > LONGEST:
                raise InvalidInput(f"{name} = {length:g} s, but it must be below {LONGEST:g} s")
            object.__setattr__(self, name, length)
        if 0.0 < self.period <= self.apart:
            raise InvalidInput(
                f"apart is {in_words(self.apart)} and a period {in_words(self.period)}, so nobody "
                "could take part twice in one: leave apart out"
            )
        if self.often > 1 and self.teaches not in (None, "lifetime"):
            raise InvalidInput("often is said of lives that are bounded: let teaches be lifetime")
        if self.teaches == "every" and times is None:
            raise InvalidInput(
                "participations may not be any number where every one is counted in full: no noise "
                "is enough for that. Say how many, or let teaches be first or lifetime"
            )

    @classmethod
    def of(cls, rule: object) -> Participation:
        """A rule as it is, or a number of participations (or "any") with nothing else said."""
        return rule if isinstance(rule, cls) else cls(times=rule)  # type: ignore[arg-type]

    def decided(self, teaches: Teaches) -> Participation:
        """The rule with what the agent chooses where it leaves that open.

        Once in every period leaves it open as well: budgets renew by what teaches.
        """
        if self.teaches is not None or (self.times == 1 and not self.period):
            return self
        return replace(self, teaches=teaches)

    @property
    def plain(self) -> bool:
        """Whether a number of participations, each counted in full, says it all."""
        counted = self.teaches in (None, "every") or self.times == 1
        return counted and not (self.apart or self.period) and self.attendance == "public"

    @property
    def counted(self) -> int:
        """Participations of one person that a mechanism must pay for in full, in a period."""
        if self.teaches in ("first", "lifetime"):
            return 1
        if self.times is None:
            raise InvalidInput(
                "participations may be any number only where it is said what they teach: first, or "
                "lifetime"
            )
        return self.times

    def period_at(self, moment: float) -> int:
        """The number of the period that a moment of unix time is in; 0 if budgets never renew."""
        return math.floor(moment / self.period) if self.period else 0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Participation:
        """The inverse."""
        unknown = fields.keys() - cls.__dataclass_fields__.keys()
        if unknown:
            raise InvalidInput(f"a participation rule has no {min(unknown)!r}")
        return cls(**fields)

    def in_words(self) -> str:
        """How often, how far apart, and until when, in a few words."""
        sentence = "any number of times"
        if self.times is not None:
            sentence = "once" if self.times == 1 else f"up to {self.times:,} times"
        if self.period:
            sentence += f" in every period of {in_words(self.period)}"
        if self.apart:
            sentence += f", at least {in_words(self.apart)} apart"
        return sentence
