"""What devices and collectors say to each other: tasks and publications in JSON, and messages.

Everything that arrives is decoded strictly: every field must be there, none may be unknown, and a
wrong type, length, shape or number is refused with a sentence, before anything is allocated that
the sender chose the size of. Nothing is pickled. Arrays travel bit for bit, as
``{"dtype": "<f8", "shape": [2, 3], "data": base64}``. A message is base64 of fixed-size numbers; a
local one is randomized on the device and inspected before it leaves and when it arrives.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import IntArray
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput, suggestion
from tacit.policy import LinearPolicy, Policy, StochasticPolicy, TabularPolicy, check_allowed
from tacit.privacy.base import LocalPrivatizer
from tacit.privacy.noise import Noise
from tacit.publication import Publication
from tacit.task import Task
from tacit.trajectory import Trajectory
from tacit.validate import table_fits

VERSION = 2
"""Of everything in this package; a peer that speaks another one is not understood.

1 had no hashes of publications, no question whether a report would be taken, and ids that every
device drew for itself. Devices still follow an episode that they began under version 1.
"""

READABLE = (1, VERSION)
"""Versions of a description that a device stored and can go on with."""

TERMS_FORM = 1
"""Hashed with the terms. It stays: tasks keep their ids when the version above goes up."""

TERMS = ("name", "task", "agent", "reward_range", "absorbing_state", "unit")
"""What a user agrees to: one of them changed is another task."""

PUBLISHED = ("task_id", "version", "policy", "context")
"""What is said about a policy wherever it goes."""

BESIDES: tuple[str, ...] = ("format", "format_version", "family", "horizon", "sizes", "users")
BESIDES += ("guarantee", "names", "about", "sha256")
"""What a policy file says besides."""

MOST_NAMES = 64
DTYPES = ("<f8", "<i8", "|b1")
"""All that is ever published: real numbers, whole numbers, flags."""

MOST_AXES = 8
_ID = re.compile(r"[0-9a-f]{32}")

LONGEST = 2**24
"""Entries of a message that is decoded at all."""


def fields(
    value: object, what: str, names: Iterable[str], optional: Iterable[str] = ()
) -> Mapping[str, Any]:
    """An object with exactly these fields, and perhaps the optional ones."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} must be an object, got {type(value).__name__}")
    names = list(names)
    for name in names:
        if name not in value:
            raise InvalidInput(f"{what} lacks the field {name!r}")
    names += optional
    for name in value:
        if name not in names:
            known = suggestion(str(name), names)
            raise InvalidInput(f"{what} has an unknown field {str(name)[:40]!r}{known}")
    return value


def whole(value: object, what: str, low: int, high: int = 2**53) -> int:
    """A JSON whole number; 1.0 and true are not."""
    if type(value) is not int or not low <= value <= high:
        shown = repr(value)[:40]
        raise InvalidInput(f"{what} = {shown}, but it must be a whole number in [{low}, {high}]")
    return value


def text(value: object, what: str, longest: int = 200) -> str:
    """A JSON string."""
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise InvalidInput(f"{what} must be a text of 1 to {longest} characters")
    return value


def truth(value: object, what: str) -> bool:
    """A JSON true or false."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} must be true or false")
    return value


def real(value: object, what: str) -> float:
    """A finite JSON number."""
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise InvalidInput(f"{what} must be a finite number")
    return float(value)  # type: ignore[arg-type]


def raw_bytes(value: object, what: str, size: int) -> bytes:
    """Base64 of exactly that many bytes, in its one canonical spelling."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be base64 text, got {type(value).__name__}")
    longest = 4 * ((size + 2) // 3)
    if len(value) != longest:
        raise InvalidInput(
            f"{what} has {len(value)} characters, but {size} bytes are {longest} characters of "
            "base64"
        )
    try:
        raw = binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise InvalidInput(f"{what} is not base64") from None
    if len(raw) != size or binascii.b2a_base64(raw, newline=False).decode() != value:
        raise InvalidInput(f"{what} is not the canonical base64 of {size} bytes")
    return raw


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


def canonical(value: object) -> bytes:
    """JSON in its one spelling: sorted keys, no spaces, UTF-8, finite numbers."""
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"this cannot be written as JSON: {error}") from None


def task_id(description: Mapping[str, Any]) -> str:
    """SHA-256 of the terms in a task's description (see ``TERMS``; other fields do not count)."""
    for name in TERMS:
        if name not in description:
            raise InvalidInput(f"a task without {name!r} has no id")
    terms = {name: description[name] for name in TERMS}
    return hashlib.sha256(canonical({"wire": TERMS_FORM, **terms})).hexdigest()


def task_to_json(task: Task) -> dict[str, Any]:
    """A Task, as JSON. A duration is written where there is one: other tasks keep their ids."""
    duration = {"duration": task.duration} if task.duration else {}
    return {
        "family": task.family,
        "horizon": task.horizon,
        "sizes": dict(task.sizes),
        "homogeneous": task.homogeneous,
        "users": task.users,
        "participations": task.participations,
        "known": {name: array_to_json(task.known[name]) for name in task.revealed},
        **duration,
    }


def task_from_json(value: object) -> Task:
    """The Task again."""
    given = fields(
        value,
        "task",
        ("family", "horizon", "sizes", "homogeneous", "users", "participations", "known"),
        ("duration",),
    )
    return Task(
        family=text(given["family"], "family"),
        horizon=whole(given["horizon"], "horizon", 1),
        sizes={
            name: whole(size, f"the number of {name}", 1)
            for name, size in named(given["sizes"], "sizes").items()
        },
        homogeneous=truth(given["homogeneous"], "homogeneous"),
        users=whole(given["users"], "users", 1),
        known={
            name: array_from_json(fact, name)
            for name, fact in named(given["known"], "known").items()
        },
        participations=whole(given["participations"], "participations", 1),
        duration=real(given.get("duration", 0.0), "duration"),
    )


def named(value: object, what: str) -> Mapping[str, Any]:
    """An object of a few fields with any names."""
    if not isinstance(value, Mapping) or len(value) > MOST_NAMES:
        raise InvalidInput(f"{what} must be an object of at most {MOST_NAMES} fields")
    return {text(name, f"a name in {what}"): entry for name, entry in value.items()}


def publication_to_json(
    publication: Publication, task_id: str, previous: str | None = None
) -> dict[str, Any]:
    """What a policy file and the answer to a policy request say about the policy itself.

    ``previous`` is the hash of the publication before; those made before there were hashes name
    none.
    """
    return {
        "task_id": task_id,
        **({} if previous is None else {"previous": previous}),
        "version": publication.version,
        "policy": _policy_to_json(publication.policy),
        "context": {
            name: array_to_json(array) for name, array in sorted(publication.context.items())
        },
    }


def publication_hash(body: object) -> str:
    """Names a publication and, as each names the one before, the whole history it stands in."""
    return hashlib.sha256(canonical(body)).hexdigest()


def publication_from_json(value: object, task: Task, task_id: str) -> Publication:
    """The publication again, refused if it is of another task or does not fit this one.

    What a policy file says besides (``tacit.learned``) is passed over, but for its seal.
    """
    given = fields(value, "policy answer", PUBLISHED, (*BESIDES, "previous"))
    if "sha256" in given:
        check_seal(given)
    if text(given["task_id"], "task_id") != task_id:
        raise InvalidInput(
            f"this is a policy of task {given['task_id'][:12]}..., not of {task_id[:12]}..."
        )
    publication = read_publication(given, task.horizon, task.sizes)
    if task.family == "tabular":
        check_allowed(publication.policy, task.pairs)
    return publication


def read_publication(
    given: Mapping[str, Any], horizon: int, sizes: Mapping[str, int]
) -> Publication:
    """The publication in fields that were checked, for a task of these sizes."""
    if "previous" in given:
        text(given["previous"], "previous")
    context = {
        name: array_from_json(array, name)
        for name, array in named(given["context"], "context").items()
    }
    version = whole(given["version"], "version", 0)
    return Publication(version, _policy_from_json(given["policy"], horizon, sizes), context)


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the SHA-256 of its canonical JSON in it: what was damaged is noticed."""
    return {**value, "sha256": hashlib.sha256(canonical(value)).hexdigest()}


def check_seal(value: Mapping[str, Any]) -> None:
    """Refuse an object whose content is not what was sealed."""
    content = {name: entry for name, entry in value.items() if name != "sha256"}
    if sealed(content)["sha256"] != value["sha256"]:
        raise InvalidInput(
            "the policy is damaged or was changed: its content does not have the SHA-256 that it "
            "states; get it again from where it came from"
        )


def _policy_to_json(policy: Policy) -> dict[str, Any]:
    if isinstance(policy, TabularPolicy):
        return {"kind": "table", "actions": policy.actions.tolist()}
    if isinstance(policy, StochasticPolicy):
        return {"kind": "stochastic", "probabilities": array_to_json(policy.probabilities)}
    if isinstance(policy, LinearPolicy):
        return {
            "kind": "linear",
            "gains": array_to_json(policy.gains),
            "offsets": array_to_json(policy.offsets),
            "amplitude": policy.amplitude,
            "key": policy.key,
        }
    raise InvalidInput(f"a {type(policy).__name__} has no form in which it can be sent or saved")


def _policy_from_json(value: object, horizon: int, sizes: Mapping[str, int]) -> Policy:
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if kind == "linear" and "inputs" in sizes:
        return _linear_from_json(value, horizon, sizes)
    if kind not in ("table", "stochastic") or "actions" not in sizes:
        raise InvalidInput("the kind of the policy must be table, stochastic or linear")
    H, S, A = horizon, sizes["states"], sizes["actions"]
    if kind == "stochastic":
        table = fields(value, "policy", ("kind", "probabilities"))["probabilities"]
        return StochasticPolicy(array_from_json(table, "probabilities", (H, S, A)))
    table = fields(value, "policy", ("kind", "actions"))["actions"]
    if not isinstance(table, list) or len(table) != H:
        raise InvalidInput(f"the policy must have {H} rows, one for each step")
    for row in table:
        if not isinstance(row, list) or len(row) != S:
            raise InvalidInput(f"every row of the policy must have {S} actions")
    actions = [[whole(action, "an action", 0, A - 1) for action in row] for row in table]
    return TabularPolicy(np.array(actions, dtype=np.int64))


def _linear_from_json(value: object, horizon: int, sizes: Mapping[str, int]) -> LinearPolicy:
    given = fields(value, "policy", ("kind", "gains", "offsets", "amplitude", "key"))
    H, d, n = horizon, sizes["inputs"], sizes["states"]
    return LinearPolicy(
        array_from_json(given["gains"], "gains", (H, d, n)),
        array_from_json(given["offsets"], "offsets", (H, d)),
        amplitude=real(given["amplitude"], "amplitude"),
        key=whole(given["key"], "key", 0, 2**63 - 1),
    )


def new_report_id() -> str:
    """128 random bits from the operating system: nobody else has it, and it says nothing."""
    return secrets.token_hex(16)


def seat(token: str, task_id: str) -> bytes:
    """What a device's ids are made of: known to who holds its token, and the token stays hidden."""
    return hmac.digest(token.encode(), f"tacit ids of {task_id}".encode(), "sha256")


def assigned_id(seat: bytes, number: int) -> str:
    """The id of a device's report of that number, counted from 0: nobody can choose it."""
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


def local_privatizer(bound: BoundAgent) -> LocalPrivatizer[Any]:
    """The agent's privatizer, if devices can report to it over a network.

    Sums must hold whatever devices may send, not only what honest ones do.
    """
    device, users = bound.privatizer.device, bound.task.users
    if bound.guarantee.model != "local" or device is None:
        raise InvalidInput(
            f"the agent's mechanism ({bound.guarantee.mechanism}) sends no local reports of one "
            "message; choose tacit-local, ldp-obi or ldp-psrl"
        )
    if users * device.largest >= 2**63:
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
