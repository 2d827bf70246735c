"""People who come back: what a participation that begins now is, by the rule of its task.

Nothing here looks at what happens in an episode. Which participations are reported follows from
when they begin, from the rule, and from what was spent before: under the rule "first" the first one
that begins in a period is reported, whatever happens in it, and the others are free rides. They act
on the newest policy, and nothing of them leaves the device.

A period is that of the beginning on the device's own clock. A clock that is set back to a period in
which the device took no part begins another first one, under the id of that period: the collector
takes it if that period is not long over, and never two of one period.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from tacit.client.errors import AlreadyTookPart
from tacit.client.report_times import ReportTimes
from tacit.task.participation import Participation
from tacit.util.durations import in_words


@dataclass(frozen=True)
class History:
    """What a device did before in a task with a rule.

    Attributes:
        begun: participations that began in the period that is asked about.
        reported: those of them that led to a report or will.
        periods: of how many periods something is reported, in all.
        last: times of the last participation, of whichever period; None if there was none.
    """

    begun: int
    reported: int
    periods: int
    last: ReportTimes | None


@dataclass(frozen=True)
class NextParticipation:
    """A participation that begins now.

    Attributes:
        period: number of the period that it begins in; None of a task without a rule.
        before: participations that began in it before, on this device.
        begun: unix time.
        silent: why nothing of it is reported, in a sentence; None if it is.
    """

    period: int | None
    before: int
    begun: float
    silent: str | None


ONCE = NextParticipation(None, 0, 0.0, None)
"""Of a task without a rule for people who come back."""


def next_participation(
    rule: Participation, past: History, now: float, too_much: str | None
) -> NextParticipation:
    """What a participation is that begins now, or why none does.

    Args:
        rule: of the task.
        past: of the period of ``now``.
        now: unix time.
        too_much: why the app does not allow another period that is paid for; None if it does.
    """
    period = rule.period_at(now)
    if rule.apart and past.last is not None:
        following = past.last.at(past.last.begun + rule.apart, now)
        if now < following:
            raise AlreadyTookPart(
                f"participations begin at least {in_words(rule.apart)} apart; the next one may "
                f"begin at {in_utc(following)}"
            )
    if rule.times is not None and past.begun >= rule.times:
        limit = f"one may take part {rule.in_words()}, and this device has done so"
        if rule.period:
            limit += f"; the next period begins at {in_utc((period + 1) * rule.period)}"
        raise AlreadyTookPart(limit)
    silent = None
    if rule.teaches == "first" and past.begun:
        of = "of every period" if rule.period else "of all"
        silent = f"only the first participation {of} is reported, and this is a later one"
    elif past.periods and not past.reported and too_much is not None:
        silent = f"nothing of this period is reported: {too_much}"
    return NextParticipation(period, past.begun, now, silent)


def in_utc(unix: float) -> str:
    """A moment of unix time, to the minute."""
    return f"{datetime.fromtimestamp(unix, UTC):%Y-%m-%d %H:%M} UTC"
