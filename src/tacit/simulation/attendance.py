"""Who takes part when: a population of people who come back, by a stated law.

Everything here is public in the guarantees that it is used with: who comes, and when, does not
depend on what happens to anybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels import kernel
from tacit.task.participation import Participation
from tacit.util.durations import DAY
from tacit.validate import choice, integer

SPARE = 1.3
"""More participations are drawn than are asked for: the rule may forbid some."""


@dataclass(frozen=True)
class Attendance:
    """How people come back.

    Attributes:
        law: rounds (everybody once a day, the usual one), anytime, bursts (on consecutive days) or
            few-often (some all the time, most hardly ever).
        people: how many different ones there are; None for as few as the rule allows.
    """

    law: str | None = None
    people: int | None = None

    def __post_init__(self) -> None:
        if self.law is not None:
            choice(self.law, "attendance", LAWS)
        if self.people is not None:
            object.__setattr__(self, "people", integer(self.people, "people", low=1))


@dataclass(frozen=True, eq=False)
class AttendanceTrace:
    """Participations in the order of time, as they were drawn.

    Attributes:
        law: by which they were drawn.
        people: how many different people there are.
        who: by participation, the person's number.
        when: by participation, days since the beginning.
        period: by participation, the number of its period.
        first: by participation, whether it is the person's first one of the period.
        clock: whether batches close by the clock, because it is not public who comes.
        renews: days of a period, 0 if there is only one.
    """

    law: str
    people: int
    who: IntArray
    when: Array
    period: IntArray
    first: IntArray
    clock: bool = False
    renews: float = 0.0

    def until(self, share: float) -> int:
        """How many take part before this share of the whole time is over."""
        if share >= 1.0:
            return len(self.who)
        return int(np.searchsorted(self.when, share * self.when[-1]))

    def period_of(self, served: int, planned: int) -> int:
        """The period in which a batch begins, after ``served`` of the ``planned`` participations.

        That of whoever takes part first; by the clock alone where batches close by it, so that it
        does not depend on who comes.
        """
        if not self.clock:
            return int(self.period[served])
        return int(served / planned * self.when[-1] // self.renews) if self.renews else 0


@dataclass(frozen=True)
class AttendanceSummary:
    """Of a population that came back: how many people, and when.

    Attributes:
        people: how many different ones took part.
        law: by which they came back.
        days: calendar time of every checkpoint, in days since the beginning.
    """

    people: int
    law: str
    days: tuple[float, ...]

    @classmethod
    def of(cls, trace: AttendanceTrace, episodes: IntArray) -> AttendanceSummary:
        """At these checkpoints."""
        seen = np.unique(trace.who[: episodes[-1]]) if len(episodes) else np.zeros(0)
        return cls(len(seen), trace.law, tuple(trace.when[episodes - 1].tolist()))

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> AttendanceSummary | None:
        """From plain values; None where nobody came back."""
        if data is None:
            return None
        return cls(int(data["people"]), str(data["law"]), tuple(data["days"]))


Drawn = tuple[IntArray, Array]
"""Who comes and when, in days, in any order."""


def _rounds(people: int, count: int, gap: float, rng: np.random.Generator) -> Drawn:
    """Everybody once a day, each at an hour of their own."""
    rounds = math.ceil(count / people)
    hours = np.tile(rng.random(people), rounds)
    return np.tile(np.arange(people), rounds), gap * (np.repeat(np.arange(rounds), people) + hours)


def _anytime(people: int, count: int, gap: float, rng: np.random.Generator) -> Drawn:
    """Everybody equally often, at any time: on average once a day."""
    each = math.ceil(count / people)
    who = np.tile(np.arange(people), each)
    return who, gap * each * rng.random(people * each)


def _bursts(people: int, count: int, gap: float, rng: np.random.Generator) -> Drawn:
    """Everybody on consecutive days; people begin at any time, as many at the end as before."""
    each = math.ceil(count / people)
    begin = 4.0 * gap * each * rng.random(people)
    days = np.repeat(gap * np.arange(each), people) + np.tile(begin, each)
    return np.tile(np.arange(people), each), days


def _few_often(people: int, count: int, gap: float, rng: np.random.Generator) -> Drawn:
    """Some come all the time and most hardly ever: shares fall as 1 / rank, everybody comes once.

    The busiest of 10,000 people comes a thousand times as often as the median one.
    """
    share = 1.0 / np.arange(1, people + 1)
    more = rng.choice(people, size=max(0, count - people), p=share / share.sum())
    who = np.concatenate([np.arange(people), rng.permutation(people)[more]])
    return who, gap * (count / people) * rng.random(len(who))


LAWS: dict[str, Callable[[int, int, float, np.random.Generator], Drawn]] = {
    "rounds": _rounds,
    "anytime": _anytime,
    "bursts": _bursts,
    "few-often": _few_often,
}
"""By name: how a population comes back. A day is longer where the rule wants more time between."""


def attend(
    rule: Participation,
    participations: int,
    people: int | None,
    law: str,
    rng: np.random.Generator,
) -> AttendanceTrace:
    """The first so many participations of a population that keeps to a rule.

    Args:
        rule: how often and how far apart anybody may take part.
        participations: how many in all.
        people: how many different ones; by default as few as the rule allows without periods.
        law: one of ``LAWS``.
        rng: what is drawn from.
    """
    choice(law, "attendance", LAWS)
    if people is None:
        if rule.times is None:
            raise InvalidInput(
                "people must be given where they may come any number of times: people=1000, or "
                "-R people=1000"
            )
        people = math.ceil(participations / rule.times)
    people = integer(people, "people", low=1, high=participations)
    gap = max(1.0, rule.apart / DAY)
    count = participations
    for _ in range(8):
        who, when = LAWS[law](people, count, gap, rng)
        order = np.argsort(when, kind="stable")
        who, when = who[order], when[order]
        period = np.zeros(len(who), dtype=np.int64)
        if rule.period:
            period = (when * DAY // rule.period).astype(np.int64)
        most = rule.times or len(who)
        first, kept = np.zeros(len(who), dtype=np.int64), np.zeros(len(who), dtype=np.int64)
        keep_to(who, when, period, people, most, rule.apart / DAY, first, kept)
        may = np.flatnonzero(kept)[:participations]
        if len(may) == participations:
            drawn = who[may], when[may], period[may], first[may]
            private = rule.attendance == "private"
            return AttendanceTrace(law, people, *drawn, clock=private, renews=rule.period / DAY)
        count = math.ceil(SPARE * count * participations / max(len(may), 1))
        if not rule.period and rule.times is not None and people * rule.times < participations:
            break
    raise InvalidInput(
        f"{people:,} people who may take part {rule.in_words()} do not come {participations:,} "
        f"times by the law {law!r}; say that there are more people, or ask for fewer episodes"
    )


@kernel
def keep_to(
    who: IntArray,
    when: Array,
    period: IntArray,
    people: int,
    times: int,
    apart: float,
    first: IntArray,
    kept: IntArray,
) -> None:
    """Flag the participations, in order, that a rule allows, and the first ones of a period."""
    last = np.full(people, -np.inf)
    current = np.full(people, -1, dtype=np.int64)
    done = np.zeros(people, dtype=np.int64)
    for i in range(who.shape[0]):
        p = who[i]
        if period[i] != current[p]:
            current[p] = period[i]
            done[p] = 0
        if done[p] < times and when[i] - last[p] >= apart * (1.0 - 1e-9):
            first[i] = 1 if done[p] == 0 else 0
            kept[i] = 1
            done[p] += 1
            last[p] = when[i]
