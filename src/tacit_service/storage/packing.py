"""Named arrays as bytes and back, without pickle: for what the database keeps."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.release import Release
from tacit_service.responses import PublicRelease


def to_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Arrays by name, in the format of ``numpy.savez``."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    return buffer.getvalue()


def from_bytes(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """The inverse; objects are refused."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def content(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """The same arrays in one spelling, to be hashed: names, types, shapes and values."""
    parts = []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        data = array.tobytes()
        parts += [f"{name}:{array.dtype.str}:{array.shape}:{len(data)};".encode(), data]
    return b"".join(parts)


def release_to_bytes(release: Release) -> bytes:
    """The public numbers of a release."""
    return to_bytes(
        {
            "users": np.array(release.users),
            "source": np.array(release.source),
            **{f"block.{name}": block for name, block in release.blocks.items()},
            **{f"variance.{name}": release.law.variance(name) for name in release.blocks},
        }
    )


def release_from_bytes(data: bytes) -> PublicRelease:
    """The same, read back."""
    arrays = from_bytes(data)
    named: dict[str, dict[str, npt.NDArray[Any]]] = {"block": {}, "variance": {}}
    for name, array in arrays.items():
        kind, _, block = name.partition(".")
        if kind in named:
            named[kind][block] = array
    users, source = int(arrays["users"]), str(arrays["source"])
    return PublicRelease(users, named["block"], named["variance"], source)
