"""The tables of a deployment file: which keys there are, and what each may hold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tacit.errors import InvalidInput, suggestion
from tacit.validate import choice, flag, integer, number

Table = Mapping[str, Any]
Reader = Callable[[object, str], Any]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def text(value: object, name: str) -> str:
    """A short printable line."""
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise InvalidInput(f"{name} = {value!r}, but it must be 1 to 200 printable characters")
    return value


def labels(value: object, name: str) -> tuple[str, ...] | int:
    """A number of things, or a list of their names."""
    if not isinstance(value, list):
        return integer(value, name, low=1, high=1_000_000)
    names = tuple(text(label, f"a name in {name}") for label in value)
    if not names or len(set(names)) < len(names):
        raise InvalidInput(f"{name} must list at least one name, and each name once")
    return names


def duration(value: object, name: str) -> float:
    """Seconds, given as a number or as text like "90s", "5m", "2h" or "1d".

    >>> duration("5m", "cadence")
    300.0
    """
    if isinstance(value, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", value.strip())
        if found is None:
            raise InvalidInput(
                f'{name} = {value!r}, but it must be seconds, or text like "90s", "5m", "2h", "1d"'
            )
        value = float(found[1]) * _UNITS[found[2]]
    return number(value, name, low=0.0)


def moment(value: object, name: str) -> float:
    """Unix time of a date and time with an offset."""
    given = value
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            given = None
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise InvalidInput(
            f"{name} = {value!r}, but it must be a time with an offset, like 2026-05-01T08:00:00Z"
        )
    return given.timestamp()


def iso(unix: float | None) -> str | None:
    """The same moment as text, in UTC."""
    if unix is None:
        return None
    return datetime.fromtimestamp(unix, UTC).isoformat().replace("+00:00", "Z")


def span(value: object, name: str) -> tuple[float, float]:
    """Two numbers, the first below the second."""
    if not isinstance(value, list) or len(value) != 2:
        raise InvalidInput(f"{name} = {value!r}, but it must be two numbers, like [0.0, 1.0]")
    low, high = (number(x, name) for x in value)
    if not (low < high and math.isfinite(high - low)):
        raise InvalidInput(f"{name} = [{low:g}, {high:g}], but the first must be below the second")
    return low, high


def whole(low: int, high: int | None = None) -> Reader:
    """A reader of whole numbers from ``low``."""
    return lambda value, name: integer(value, name, low=low, high=high)


def real(low: float) -> Reader:
    """A reader of numbers from ``low``."""
    return lambda value, name: number(value, name, low=low)


def one_of(*words: str) -> Reader:
    """A reader of one of a few words."""
    return lambda value, name: choice(value, name, words)


SECTIONS: Mapping[str, Mapping[str, Reader]] = {
    "task": {
        "name": text,
        "states": labels,
        "actions": labels,
        "horizon": whole(1, 100_000),
        "duration": duration,
        "reward_range": span,
        "homogeneous": flag,
        "absorbing_state": whole(0),
        "features": text,
        "theta_norm": real(0.0),
    },
    "population": {
        "users": whole(1, 10**12),
        "participations": whole(1, 10_000),
        "tokens": one_of("per-device", "shared"),
    },
    "updates": {
        "minimum_batch": whole(1),
        "cadence": duration,
        "accepted_versions": whole(1, 1000),
        "delay": duration,
        "grace": duration,
    },
    "window": {"opens": moment, "closes": moment},
    "storage": {"database": text, "key_file": text, "witness": text, "keep_reports": flag},
    "server": {
        "host": text,
        "port": whole(1, 65535),
        "max_body_bytes": whole(1024),
        "max_batch": whole(1, 100_000),
    },
}

FREE = ("agent", "fleet")
"""Sections whose keys are checked by what they configure."""

REQUIRED = {
    "task": ("name", "states", "actions", "horizon"),
    "agent": ("name",),
    "population": ("users",),
}


def read_sections(data: Table) -> dict[str, dict[str, Any]]:
    """Every section with checked values; unknown names are refused with a suggestion."""
    known = (*SECTIONS, *FREE)
    for name in data:
        if name not in known:
            raise InvalidInput(f"unknown section [{name}]{suggestion(name, known)}")
        if not isinstance(data[name], dict):
            raise InvalidInput(f"{name} must be a section, written [{name}] on a line of its own")
    found: dict[str, dict[str, Any]] = {name: dict(data.get(name, {})) for name in FREE}
    for section, readers in SECTIONS.items():
        given = data.get(section, {})
        for key in given:
            if key not in readers:
                raise InvalidInput(f"[{section}] has no key {key!r}{suggestion(key, readers)}")
        found[section] = {
            key: readers[key](value, f"{key} in [{section}]") for key, value in given.items()
        }
    for section, keys in REQUIRED.items():
        for key in keys:
            if key not in found[section]:
                raise InvalidInput(f"[{section}] needs the key {key!r}")
    return found
