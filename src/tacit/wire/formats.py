"""Tasks and publications in JSON, arrays bit for bit, and how a JSON object is read.

Every field must be there, none may be unknown, each has its type. An array is
``{"dtype": "<f8", "shape": [2, 3], "data": base64}``. The terms of a task have an id for ever.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidInput, suggestion
from tacit.policy import Policy, StochasticPolicy, TabularPolicy
from tacit.publication import Publication
from tacit.task import Task
from tacit.validate import table_fits

VERSION = 1
"""Of everything in this package; a peer that speaks another one is not understood."""

TERMS = ("name", "task", "agent", "reward_range", "absorbing_state", "unit")
"""What a user agrees to: one of them changed is another task."""

MOST_NAMES = 64
DTYPES = ("<f8", "<i8", "|b1")
"""All that is ever published: real numbers, whole numbers, flags."""

MOST_AXES = 8


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
    return hashlib.sha256(canonical({"wire": VERSION, **terms})).hexdigest()


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


def publication_to_json(publication: Publication, task_id: str) -> dict[str, Any]:
    """The body of a policy request."""
    return {
        "task_id": task_id,
        "version": publication.version,
        "policy": _policy_to_json(publication.policy),
        "context": {
            name: array_to_json(array) for name, array in sorted(publication.context.items())
        },
    }


def publication_from_json(value: object, task: Task, task_id: str) -> Publication:
    """The publication again, refused if it is of another task or does not fit this one."""
    given = fields(value, "policy answer", ("task_id", "version", "policy", "context"))
    if text(given["task_id"], "task_id") != task_id:
        raise InvalidInput(
            f"this is a policy of task {given['task_id'][:12]}..., not of {task_id[:12]}..."
        )
    context = {
        name: array_from_json(array, name)
        for name, array in named(given["context"], "context").items()
    }
    version = whole(given["version"], "version", 0)
    return Publication(version, _policy_from_json(given["policy"], task), context)


def _policy_to_json(policy: Policy) -> dict[str, Any]:
    if isinstance(policy, TabularPolicy):
        return {"kind": "table", "actions": policy.actions.tolist()}
    if isinstance(policy, StochasticPolicy):
        return {"kind": "stochastic", "probabilities": array_to_json(policy.probabilities)}
    raise InvalidInput(f"a {type(policy).__name__} is not served to devices")


def _policy_from_json(value: object, task: Task) -> Policy:
    H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
    if isinstance(value, dict) and value.get("kind") == "table":
        table = fields(value, "policy", ("kind", "actions"))["actions"]
        if not isinstance(table, list) or len(table) != H:
            raise InvalidInput(f"the policy must have {H} rows, one for each step")
        for row in table:
            if not isinstance(row, list) or len(row) != S:
                raise InvalidInput(f"every row of the policy must have {S} actions")
        actions = [[whole(action, "an action", 0, A - 1) for action in row] for row in table]
        return TabularPolicy(np.array(actions, dtype=np.int64))
    if isinstance(value, dict) and value.get("kind") == "stochastic":
        table = fields(value, "policy", ("kind", "probabilities"))["probabilities"]
        return StochasticPolicy(array_from_json(table, "probabilities", (H, S, A)))
    raise InvalidInput("the kind of the policy must be table or stochastic")
