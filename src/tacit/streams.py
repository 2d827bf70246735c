"""Random streams of a simulation, keyed by root seed, run and purpose.

A stream depends on its key alone: not on the order in which streams are made, not on the number of
workers, not on what other streams were used for. The "users" stream does not depend on the agent
either, so agents compared under one root seed meet the same users.
"""

from __future__ import annotations

import hashlib

import numpy as np

from tacit.planners.base import Streams


def stream(root: int, run: int, purpose: str) -> np.random.Generator:
    """The generator of that key."""
    digest = hashlib.sha256(purpose.encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    key = np.random.SeedSequence(root, spawn_key=(run, *words))
    return np.random.Generator(np.random.PCG64DXSM(key))


def planner_streams(root: int, run: int) -> Streams:
    """The planner's streams of one run."""
    return Streams(ties=stream(root, run, "ties"), posterior=stream(root, run, "posterior"))
