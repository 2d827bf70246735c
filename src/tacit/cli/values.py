"""``key=value`` from the command line, read as the type the parameter declares."""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from tacit.errors import InvalidInput
from tacit.registry import Entry
from tacit.validate import integer

_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


def assignments(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """Split ``key=value`` strings; a key given twice is a mistake.

    >>> assignments(["states=4", "kernel=vtr"], "-P")
    {'states': '4', 'kernel': 'vtr'}
    """
    read: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise InvalidInput(f"{flag} {pair!r}, but it must look like {flag} name=value")
        if key in read:
            raise InvalidInput(f"{flag} {key} is given twice")
        read[key] = value.strip()
    return read


def read_parameters(entry: Entry[Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Parameters of an entry, from text; unknown names are refused with a suggestion."""
    entry.check({**dict.fromkeys(_required(entry)), **texts})
    takes = entry.parameters
    return {
        name: read(text, name, takes[name].annotation if name in takes else Any)
        for name, text in texts.items()
    }


def _required(entry: Entry[Any]) -> list[str]:
    return [name for name, p in entry.parameters.items() if p.default is inspect.Parameter.empty]


def read(text: str, name: str, annotation: Any) -> Any:
    """One value, as the annotation says; where it says nothing, as it looks."""
    if get_origin(annotation) in (Union, types.UnionType):
        options = get_args(annotation)
        if type(None) in options and text.lower() == "none":
            return None
        annotation = next(option for option in options if option is not type(None))
    if annotation is bool:
        return _boolean(text, name)
    if annotation is int:
        return _attempt(text, name, _whole, "a whole number")
    if annotation is float:
        return _attempt(text, name, _real, "a number")
    if annotation is str or get_origin(annotation) is Literal:
        return text
    return _guess(text)


def whole(text: str, name: str) -> int:
    """A whole number; 1e5 is one."""
    number: int = _attempt(text, name, _whole, "a whole number")
    return number


def processes(text: str | None) -> int:
    """The number after ``--workers``; one per core unless given."""
    if text is None:
        return os.cpu_count() or 1
    return integer(whole(text, "--workers"), "--workers", low=1, high=1024)


def real(text: str, name: str) -> float:
    """A number; 1/6 is one."""
    number: float = _attempt(text, name, _real, "a number")
    return number


def _attempt(text: str, name: str, convert: Callable[[str], Any], expected: str) -> Any:
    try:
        return convert(text)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise InvalidInput(f"{name} = {text!r}, but it must be {expected}") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)


def _real(text: str) -> float:
    above, slash, below = text.partition("/")
    return float(above) / float(below) if slash else float(text)


def _boolean(text: str, name: str) -> bool:
    word = text.lower()
    if word not in _YES + _NO:
        raise InvalidInput(f"{name} = {text!r}, but it must be true or false")
    return word in _YES


def _guess(text: str) -> Any:
    if text.lower() in _YES + _NO:
        return text.lower() in _YES
    for convert in (_whole, _real):
        try:
            return convert(text)
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
    return text
