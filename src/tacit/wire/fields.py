"""Reading a JSON object: every field there, none unknown, each of its type."""

from __future__ import annotations

import binascii
import math
from collections.abc import Iterable, Mapping
from typing import Any

from tacit.errors import InvalidInput, suggestion


def fields(
    value: object, what: str, names: Iterable[str], optional: Iterable[str] = ()
) -> Mapping[str, Any]:
    """An object with exactly these fields, and perhaps the optional ones."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} must be an object, got {type(value).__name__}")
    names = list(names)
    for name in names:
        if name not in value:
            raise InvalidInput(f"{what} lacks the field {name!r}")
    names += optional
    for name in value:
        if name not in names:
            known = suggestion(str(name), names)
            raise InvalidInput(f"{what} has an unknown field {str(name)[:40]!r}{known}")
    return value


def whole(value: object, what: str, low: int, high: int = 2**53) -> int:
    """A JSON whole number; 1.0 and true are not."""
    if type(value) is not int or not low <= value <= high:
        shown = repr(value)[:40]
        raise InvalidInput(f"{what} = {shown}, but it must be a whole number in [{low}, {high}]")
    return value


def text(value: object, what: str, longest: int = 200) -> str:
    """A JSON string."""
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise InvalidInput(f"{what} must be a text of 1 to {longest} characters")
    return value


def truth(value: object, what: str) -> bool:
    """A JSON true or false."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} must be true or false")
    return value


def real(value: object, what: str) -> float:
    """A finite JSON number."""
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise InvalidInput(f"{what} must be a finite number")
    return float(value)  # type: ignore[arg-type]


def raw_bytes(value: object, what: str, size: int) -> bytes:
    """Base64 of exactly that many bytes, in its one canonical spelling."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be base64 text, got {type(value).__name__}")
    longest = 4 * ((size + 2) // 3)
    if len(value) != longest:
        raise InvalidInput(
            f"{what} has {len(value)} characters, but {size} bytes are {longest} characters of "
            "base64"
        )
    try:
        raw = binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise InvalidInput(f"{what} is not base64") from None
    if len(raw) != size or binascii.b2a_base64(raw, newline=False).decode() != value:
        raise InvalidInput(f"{what} is not the canonical base64 of {size} bytes")
    return raw
