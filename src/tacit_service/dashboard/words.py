"""Numbers, times and lengths of time as a person reads them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

_UNITS = (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0), ("second", 1.0))
_LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def whole(number: int) -> str:
    """A count: exact up to a million, then in three digits and a word."""
    for size, word in _LARGE:
        if abs(number) >= size:
            return f"{number / size:.3g} {word}"
    return f"{number:,}"


def real(number: float) -> str:
    """A measured number in three digits, without an exponent where it can be avoided."""
    if number == 0.0 or not math.isfinite(number):
        return f"{number:g}"
    size = abs(number)
    if size < 1e-3 or size >= 1e6:
        return f"{number:.2e}"
    decimals = max(0, 2 - math.floor(math.log10(size)))
    return f"{number:,.{min(decimals, 4)}f}"


def percent(share: float) -> str:
    """A share; never rounded to all or nothing unless it is."""
    if 0.0 < share < 0.001:
        return "under 0.1%"
    if 0.999 < share < 1.0:
        return "over 99.9%"
    return f"{100 * share:.3g}%"


def counted(number: int, word: str) -> str:
    """A count with its noun."""
    return f"{whole(number)} {word}{'' if number == 1 else 's'}"


def moment(at: float) -> str:
    """A point in time, to the second, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(at: float) -> str:
    """The same for machines."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def length(seconds: float) -> str:
    """A length of time in its largest fitting unit; years where days say little."""
    if seconds >= 2 * 365.25 * 86_400:
        return f"{real(seconds / (365.25 * 86_400))} years"
    for name, size in _UNITS:
        count = round(seconds / size)
        if seconds >= 2 * size or (name == "second" and count > 0):
            return f"{count} {name}{'' if count == 1 else 's'}"
    return "less than a second"


def relative(at: float, now: float) -> str:
    """How long ago, or in how long."""
    if abs(at - now) < 1.0:
        return "just now"
    return f"{length(now - at)} ago" if at < now else f"in {length(at - now)}"
