"""Messages of devices: ids, public coins, and reports as they are packed.

A message is base64 of fixed-size numbers; a local one is randomized on the device and inspected
before it leaves and when it arrives.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.publication import Publication
from tacit.trajectory import Trajectory, VectorTrajectory
from tacit.wire.strict_json import raw_bytes

if TYPE_CHECKING:
    from tacit.learner import BoundAgent
    from tacit.privacy.base import LocalPrivatizer
    from tacit.privacy.noise import Noise


DECOY = "0" * 64
"""In the place of the rules' hash: no rules have it, and what names it is counted nowhere."""


_ID = re.compile(r"[0-9a-f]{32}")


LONGEST = 2**24
"""Entries of a message that is decoded at all."""


def new_report_id() -> str:
    """128 random bits from the operating system: nobody else has it, and it says nothing."""
    return secrets.token_hex(16)


def seat(token: str, task_id: str) -> bytes:
    """What a device's ids are made of: known to who holds its token, and the token stays hidden."""
    return hmac.digest(token.encode(), f"tacit ids of {task_id}".encode(), "sha256")


def assigned_id(seat: bytes, number: int) -> str:
    """The id of a device's report of that number, counted from 0: nobody can choose it.

    Where budgets renew, period n has the numbers from n times what is counted in a period.
    """
    return hmac.digest(seat, b"%d" % number, "sha256")[:16].hex()


def report_id(value: object) -> str:
    """A report's id, if it is one."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InvalidInput("a report id is 32 lower-case hexadecimal digits")
    return value


def coin(task_id: str, report_id: str) -> int:
    """The public coin of a report: 63 bits of SHA-256 over both ids.

    The id is fixed before the user does anything, so the coin says nothing about them.
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


def pack_return(total: float) -> str:
    """A clipped return for a trusted curator: 8 bytes, whatever it is."""
    return base64.b64encode(np.array([total], dtype="<f8").tobytes()).decode()


def unpack_return(value: object) -> Trajectory:
    """The return as a trajectory that holds nothing else; what it says is clipped, not judged."""
    rewards = np.frombuffer(raw_bytes(value, "the message", 8), dtype="<f8")
    nothing = np.zeros((0, 1))
    return VectorTrajectory(nothing, nothing, rewards)


def local_privatizer(bound: BoundAgent) -> LocalPrivatizer[Any]:
    """The agent's privatizer, if devices can report to it over a network.

    Sums must hold whatever devices may send, not only what honest ones do.
    """
    device, users = bound.privatizer.device, bound.task.users
    if bound.guarantee.model != "local" or device is None:
        raise InvalidInput(
            f"the agent's mechanism ({bound.guarantee.mechanism}) sends no local reports of one "
            "message; choose tacit-local, ldp-obi, ldp-psrl or tacit-search"
        )
    if users * device.max_increment >= 2**63:
        raise InvalidInput(
            f"the sums of {users:,} reports could leave the 64-bit integers if devices misbehave; "
            "plan for fewer users, or choose a larger epsilon"
        )
    return device


def device_message(
    bound: BoundAgent, contribution: IntArray, publication: Publication, coin: int, noise: Noise
) -> IntArray:
    """On the device: the randomized message about a contribution that was made with this coin.

    It is inspected as the collector will: a contribution made with another coin is caught here.
    """
    privatizer = local_privatizer(bound)
    message = privatizer.randomize(contribution, publication, noise)
    privatizer.inspect(message, publication, coin)
    return message
