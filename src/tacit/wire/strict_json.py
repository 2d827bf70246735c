"""JSON as it is written and read between machines: strictly, and in one spelling.

Every field must be there, none may be unknown, and a wrong type, length, shape or number is refused
with a sentence, before anything is allocated that the sender chose the size of. Nothing is pickled.
Arrays travel bit for bit, as ``{"dtype": "<f8", "shape": [2, 3], "data": base64}``.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import rfc8785

from tacit.errors import InvalidInput, suggestion
from tacit.validate import table_fits

MOST_NAMES = 64
DTYPES = ("<f8", "<i8", "|b1")
"""All that is ever published: real numbers, whole numbers, flags."""

MOST_AXES = 8


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


def array_to_json(array: npt.NDArray[Any]) -> dict[str, Any]:
    """The array as JSON.

    >>> array_to_json(np.array([1]))
    {'dtype': '<i8', 'shape': [1], 'data': 'AQAAAAAAAAA='}
    """
    array = np.asarray(array)
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in DTYPES:
        raise InvalidInput(f"arrays of type {array.dtype} are not sent; use one of {DTYPES}")
    data = base64.b64encode(array.astype(dtype).tobytes()).decode()
    return {"dtype": dtype, "shape": list(array.shape), "data": data}


def array_from_json(
    value: object, what: str = "array", shape: tuple[int, ...] | None = None
) -> npt.NDArray[Any]:
    """The array again; ``shape`` refuses any other."""
    entries = fields(value, what, ("dtype", "shape", "data"))
    dtype, sizes = entries["dtype"], entries["shape"]
    if dtype not in DTYPES:
        raise InvalidInput(f"{what} has type {str(dtype)[:20]!r}, but it must be one of {DTYPES}")
    if not isinstance(sizes, list) or len(sizes) > MOST_AXES:
        raise InvalidInput(f"the shape of {what} must be a list of at most {MOST_AXES} numbers")
    lengths = tuple(whole(size, f"the shape of {what}", 0) for size in sizes)
    if shape is not None and lengths != shape:
        raise InvalidInput(f"{what} has shape {list(lengths)}, but it must be {list(shape)}")
    table_fits(what, *lengths)
    kind = np.dtype(dtype)
    raw = raw_bytes(entries["data"], what, math.prod(lengths) * kind.itemsize)
    if kind.kind == "b" and raw.strip(b"\x00\x01"):
        raise InvalidInput(f"{what} holds flags other than 0 and 1")
    return np.frombuffer(raw, dtype=kind).reshape(lengths).astype(kind.newbyteorder("="))


def arrays_to_json(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Arrays by name."""
    return {name: array_to_json(array) for name, array in arrays.items()}


def arrays_from_json(value: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The arrays again."""
    return {name: array_from_json(array, name) for name, array in value.items()}


def finite(value: Any) -> Any:
    """The same with null in place of numbers that JSON has no spelling for: infinite ones, NaN."""
    if isinstance(value, Mapping):
        return {name: finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def spelt(value: Any) -> bytes:
    """JSON as RFC 8785 spells it, the same in every language."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise InvalidInput(f"this has no spelling by RFC 8785: {error}") from None


def canonical(value: object) -> bytes:
    """JSON in one spelling of Python's: sorted keys, no spaces, UTF-8, finite numbers.

    Whoever compares such bytes has them as they were sent; of whole numbers and ASCII texts it is
    the spelling of RFC 8785.
    """
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"this cannot be written as JSON: {error}") from None


def named(value: object, what: str) -> Mapping[str, Any]:
    """An object of a few fields with any names."""
    if not isinstance(value, Mapping) or len(value) > MOST_NAMES:
        raise InvalidInput(f"{what} must be an object of at most {MOST_NAMES} fields")
    return {text(name, f"a name in {what}"): entry for name, entry in value.items()}


def sizes_from_json(value: object) -> dict[str, int]:
    """Public sizes of a task, by name."""
    entries = named(value, "sizes")
    return {name: whole(size, f"the number of {name}", 1) for name, size in entries.items()}
