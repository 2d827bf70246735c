"""The public task in JSON, and the id that its terms have for ever."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tacit.errors import InvalidInput
from tacit.task import Task
from tacit.wire.arrays import array_from_json, array_to_json
from tacit.wire.fields import fields, real, text, truth, whole

VERSION = 1
"""Of everything in this package; a peer that speaks another one is not understood."""

TERMS = ("name", "task", "agent", "reward_range", "absorbing_state", "unit")
"""What a user agrees to: one of them changed is another task."""

MOST_NAMES = 64


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
