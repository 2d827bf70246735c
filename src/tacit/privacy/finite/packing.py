"""Rows of bits as they travel: 64 of them in one integer, the first one lowest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tacit.arrays import IntArray
from tacit.errors import InvalidInput

WORD = 64


def words(bits: int) -> int:
    """Integers that a row of that many bits takes.

    >>> words(64), words(65)
    (1, 2)
    """
    return -(-bits // WORD)


def pack(row: IntArray) -> IntArray:
    """The row of zeros and ones in as few 64-bit integers as hold it; the rest is zero."""
    padded = np.zeros(words(len(row)) * WORD, dtype=np.uint8)
    padded[: len(row)] = row
    return np.packbits(padded, bitorder="little").view("<i8").astype(np.int64)


def inspect(message: IntArray, bits: int, ones: int | None) -> None:
    """Refuse what ``pack`` cannot have made of a row of that many bits with so many ones."""
    if message.shape != (words(bits),):
        raise InvalidInput(
            f"the report has shape {list(message.shape)}, but {bits} bits travel in {words(bits)} "
            "whole numbers"
        )
    packed = int.from_bytes(message.astype("<i8", copy=False).tobytes(), "little")
    if packed >> bits:
        raise InvalidInput(f"the report names a cell above the last one, {bits - 1}")
    if ones is not None and packed.bit_count() != ones:
        raise InvalidInput(
            f"the report names {packed.bit_count()} cells, but every report of this randomizer "
            f"names {ones}"
        )


def inspect_all(messages: Sequence[IntArray], bits: int, ones: int | None) -> IntArray:
    """Many messages as rows [n, words], if ``inspect`` lets every one of them pass."""
    shape = (words(bits),)
    for message in messages:
        if message.shape != shape:
            inspect(message, bits, ones)
    rows = np.concatenate(messages).reshape(len(messages), *shape)
    cells = _cells(rows)
    doubtful = cells[:, bits:].any(axis=1)
    if ones is not None:
        doubtful |= cells.sum(axis=1) != ones
    for row in rows[doubtful]:
        inspect(row, bits, ones)
    return rows


def unpack(messages: IntArray, bits: int) -> IntArray:
    """The rows [n, bits] of inspected messages [n, words]."""
    return _cells(messages)[:, :bits].astype(np.int64)


def _cells(messages: IntArray) -> npt.NDArray[np.uint8]:
    """All bits [n, 64 words]."""
    raw = np.ascontiguousarray(messages.astype("<i8", copy=False)).view(np.uint8)
    return np.unpackbits(raw, axis=1, bitorder="little")
