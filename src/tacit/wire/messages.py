"""Report ids, the public coin of a report, and messages as base64 of fixed-size numbers."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.trajectory import Trajectory
from tacit.wire.formats import raw_bytes

_ID = re.compile(r"[0-9a-f]{32}")

LONGEST = 2**24
"""Entries of a message that is decoded at all."""


def new_report_id() -> str:
    """128 random bits from the operating system: nobody else has it, and it says nothing."""
    return secrets.token_hex(16)


def report_id(value: object) -> str:
    """A report's id, if it is one."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InvalidInput("a report id is 32 lower-case hexadecimal digits")
    return value


def coin(task_id: str, report_id: str) -> int:
    """The public coin of a report: 63 bits of SHA-256 over both ids.

    The id is drawn before the user does anything, so the coin says nothing about them.
    """
    digest = hashlib.sha256(f"{task_id}:{report_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def pack_message(message: IntArray) -> str:
    """Base64 of little-endian 64-bit integers."""
    if message.ndim != 1 or message.dtype != np.int64:
        raise InvalidInput("a message is one row of 64-bit integers")
    return base64.b64encode(message.astype("<i8").tobytes()).decode()


def unpack_message(value: object) -> IntArray:
    """The integers again; the privatizer judges how many there must be and what they may say."""
    if not isinstance(value, str):
        raise InvalidInput("the message must be base64 text")
    size = len(value) // 4 * 3 - (value[-2:].count("=") if value else 0)
    if size % 8 or size > 8 * LONGEST:
        raise InvalidInput("the message must be base64 of whole 64-bit integers")
    raw = raw_bytes(value, "the message", size)
    return np.frombuffer(raw, dtype="<i8").astype(np.int64, copy=False)


def pack_trajectory(trajectory: Trajectory, horizon: int) -> str:
    """Raw data for a trusted curator, always of one length: the length of a life says nothing."""
    states, actions, rewards = trajectory.states, trajectory.actions, trajectory.rewards
    if (states.shape, actions.shape, rewards.shape) != ((horizon + 1,), (horizon,), (horizon,)):
        raise InvalidInput(f"a trajectory must be padded to {horizon} steps before it is sent")
    raw = states.astype("<i4").tobytes() + actions.astype("<i4").tobytes()
    return base64.b64encode(raw + rewards.astype("<f8").tobytes()).decode()


def unpack_trajectory(value: object, horizon: int) -> Trajectory:
    """The trajectory again. Only its length is judged: what it says is clipped, never refused."""
    H = horizon
    raw = raw_bytes(value, "the message", 4 * (H + 1) + 4 * H + 8 * H)
    numbers = np.frombuffer(raw, dtype="<i4", count=2 * H + 1)
    rewards = np.frombuffer(raw, dtype="<f8", offset=4 * (2 * H + 1))
    return Trajectory(numbers[: H + 1], numbers[H + 1 :], rewards)
