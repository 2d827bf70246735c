"""Rows of bits as they travel: 64 of them in one integer, the first one lowest."""

from __future__ import annotations

import numpy as np

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
    packed = int.from_bytes(message.astype("<i8").tobytes(), "little")
    if packed >> bits:
        raise InvalidInput(f"the report names a cell above the last one, {bits - 1}")
    if ones is not None and packed.bit_count() != ones:
        raise InvalidInput(
            f"the report names {packed.bit_count()} cells, but every report of this randomizer "
            f"names {ones}"
        )


def unpack(messages: IntArray, bits: int) -> IntArray:
    """The rows [n, bits] of inspected messages [n, words]."""
    raw = np.ascontiguousarray(messages.astype("<i8")).view(np.uint8)
    return np.unpackbits(raw, axis=1, count=bits, bitorder="little").astype(np.int64)
