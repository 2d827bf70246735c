"""Arrays in JSON, bit for bit: ``{"dtype": "<f8", "shape": [2, 3], "data": base64}``."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidInput
from tacit.validate import table_fits
from tacit.wire.fields import fields, raw_bytes, whole

DTYPES = ("<f8", "<i8", "|b1")
"""All that is ever published: real numbers, whole numbers, flags."""

MOST_AXES = 8


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
    given = fields(value, what, ("dtype", "shape", "data"))
    dtype, sizes = given["dtype"], given["shape"]
    if dtype not in DTYPES:
        raise InvalidInput(f"{what} has type {str(dtype)[:20]!r}, but it must be one of {DTYPES}")
    if not isinstance(sizes, list) or len(sizes) > MOST_AXES:
        raise InvalidInput(f"the shape of {what} must be a list of at most {MOST_AXES} numbers")
    found = tuple(whole(size, f"the shape of {what}", 0) for size in sizes)
    if shape is not None and found != shape:
        raise InvalidInput(f"{what} has shape {list(found)}, but it must be {list(shape)}")
    table_fits(what, *found)
    kind = np.dtype(dtype)
    raw = raw_bytes(given["data"], what, math.prod(found) * kind.itemsize)
    if kind.kind == "b" and raw.strip(b"\x00\x01"):
        raise InvalidInput(f"{what} holds flags other than 0 and 1")
    return np.frombuffer(raw, dtype=kind).reshape(found).astype(kind.newbyteorder("="))
