"""Entropy that is written down: what a device would get from the operating system."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


class Tape:
    """Bytes from a seed, and how many of them were used."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self.used = rng, b""

    def __call__(self, count: int) -> bytes:
        """The next bytes."""
        fresh = self._rng.randbytes(count)
        self.used += fresh
        return fresh


@contextmanager
def drawing_from(tape: Any) -> Iterator[None]:
    """The operating system's entropy, as ``secrets`` reads it, comes from a tape."""
    with patch("random._urandom", tape):
        yield
