"""What the time of a report tells, and how long it is taken: the sentences that people read.

An episode of a task with a duration takes that long for everybody. Its report is due at

    begin + duration + a delay drawn at the beginning, uniform in [0, delay],

and none of the three depends on what happens in the episode.
"""

from __future__ import annotations

import re

from tacit.errors import InvalidInput

HOUR, DAY = 3600.0, 86400.0

_LETTERS = {"s": 1.0, "m": 60.0, "h": HOUR, "d": DAY}

_UNITS = (("day", DAY), ("hour", HOUR), ("minute", 60.0))


def seconds(value: object, name: str) -> float:
    """Seconds, given as a number or as text like "90s", "5m", "2h" or "1d".

    >>> seconds("5m", "cadence")
    300.0
    """
    from tacit.validate import number  # needs NumPy, which the command line does without

    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", value.strip())
        if match is None:
            raise InvalidInput(
                f'{name} = {value!r}, but it must be seconds, or text like "90s", "5m", "2h", "1d"'
            )
        value = float(match[1]) * _LETTERS[match[2]]
    return number(value, name, low=0.0)


def default_delay(duration: float) -> float:
    """A tenth of the duration, six hours at most.

    Long enough that a report cannot be matched by its second, or its hour, with the fetch of a
    policy one duration earlier, and that people who began together do not report together; more
    would only make learning slower.
    """
    return min(duration / 10, 6 * HOUR)


def default_grace(duration: float) -> float:
    """The duration again, and never less than a day: an app is not open in the second that is due.

    A late report is worth as much as another one and costs no privacy, so this is generous.
    """
    return max(duration, DAY)


def in_words(seconds: float) -> str:
    """A length of time, not rounded.

    >>> in_words(7 * DAY + 6 * HOUR)
    '7 days 6 hours'
    """
    parts = []
    for name, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{int(count):,} {name}{'' if count == 1 else 's'}")
    if seconds or not parts:
        parts.append(f"{seconds:g} second{'' if seconds == 1 else 's'}")
    return " ".join(parts)


def when_sent(duration: float, delay: float) -> str:
    """What the time of a report tells, for somebody who decides whether to take part."""
    if not duration:
        return (
            "The task does not say how long an episode takes, so reports are sent as soon as they "
            "are made: whoever sees when a device sends can tell who stopped early"
        )
    return (
        f"Reports are held on the device for {in_words(duration)} from the beginning of an episode "
        f"and a random delay of up to {in_words(delay)}, also of those who stop early; an app that "
        "is not opened then sends later or never, and that can be seen"
    )


def how_long_waited(duration: float, delay: float, grace: float) -> str:
    """Until when a report is accepted where people are counted as they begin."""
    return (
        "People are counted when they begin. When a batch is full, nobody else can begin, and its "
        f"reports are taken for another {in_words(duration + delay + grace)}: {in_words(duration)} "
        f"for the episode, {in_words(delay)} of delay, {in_words(grace)} of grace; who has not "
        "reported by then counts as zero"
    )


def how_long_taken(duration: float, delay: float, grace: float, versions: int | None) -> str:
    """Until when a report under an older policy is accepted."""
    if versions is not None:
        before = {1: "", 2: " and the one before it"}
        older = before.get(versions, f" and the {versions - 1} before it")
        return f"Reports may name the newest policy{older}, however long an episode takes"
    return (
        f"Reports may name a policy until {in_words(duration + delay + grace)} after it was "
        f"replaced: {in_words(duration)} for the episode, {in_words(delay)} of delay, "
        f"{in_words(grace)} of grace"
    )
