"""What determines a run, and the name made of it under which it is kept."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.kernels.compiler import source_hash


@dataclass(frozen=True)
class Named:
    """A registered problem or agent, and the parameters that make it."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


sources = functools.cache(source_hash)
"""Digest of the code that determines a run: an edit there makes stored runs unknown."""


def digest(facts: dict[str, Any]) -> str:
    """Names what is determined by these facts (plain JSON values) and by our sources."""
    text = json.dumps({**facts, "sources": sources()}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
