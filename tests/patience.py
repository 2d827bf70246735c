"""How long a test waits for what must happen: so long that no machine, however busy, is too slow.

Only a test that fails anyway waits that long. What must not happen is waited for by an event that
comes after it, never by a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 1800.0
"""Seconds."""


def until(done: Callable[[], object], what: str = "what was waited for") -> None:
    """Look again and again until it is so."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, f"{what} did not happen within {PATIENCE:g} seconds"
        time.sleep(0.02)
