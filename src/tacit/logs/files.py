"""The files of a result: policy, release and values. All of them are public if noise was secure.

Those of simulated noise say so, and are not for passing on where the log is of real people: whoever
knows the seed takes the noise away, and nothing was charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import InvalidInput
from tacit.learned_policy import load_policy
from tacit.logs.mapping import LogMapping
from tacit.logs.offline import NOT_FOR_OTHERS, OfflineResult, ReleasedResult
from tacit.privacy.joint.batched import reread
from tacit.release import Release
from tacit.task.task import Task
from tacit.util.files import read_json, require_folder, write_json
from tacit.util.intervals import Interval
from tacit.wire.documents import task_from_json, task_to_json

POLICY, VALUES, RELEASE = "policy.json", "values.json", "release.npz"


def require_empty(folder: str | Path) -> Path:
    """A folder for a result; ask for it before anything is charged."""
    folder = Path(folder)
    require_folder(folder)
    if (folder / POLICY).exists():
        raise InvalidInput(f"{folder} holds a result already; choose another folder")
    return folder


def save(result: OfflineResult, folder: str | Path) -> list[Path]:
    """Write policy, values and release into a folder."""
    folder, release, mapped = require_empty(folder), result.release, result.mapped
    public = {"task": task_to_json(mapped.task), "top": mapped.max_return, "source": release.source}
    public["ended"] = mapped.ended
    if result.guarantee.simulated:
        public["note"] = NOT_FOR_OTHERS
    write_json(folder / VALUES, {**result.to_json(), **public})
    with (folder / RELEASE).open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **release.blocks)
    result.policy.save(folder / POLICY)
    return [folder / name for name in (POLICY, VALUES, RELEASE)]


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredResult(ReleasedResult):
    """What a folder holds: all that is public, and what learning goes on from.

    Attributes:
        task: of the mapping.
        max_return: the most that one episode earns, in rewards of [0, 1] per step.
        ended: the state after a row that ends, -1 if no column says that.
    """

    task: Task
    max_return: float
    ended: int


def read_result(folder: str | Path) -> StoredResult:
    """A result that was saved, for whatever costs nothing more."""
    folder = Path(folder)
    values = read_json(folder / VALUES, f"{folder} holds no result of tacit offline")
    if not {"task", "top", "source"} <= values.keys():
        raise InvalidInput(
            f"{folder} was written by an earlier version of tacit, which did not keep the task "
            "beside the release; make it again with this one, or use it with that one"
        )
    policy = load_policy(folder / POLICY)
    with np.load(folder / RELEASE, allow_pickle=False) as arrays:
        blocks = {name: arrays[name] for name in arrays.files}
    if "transitions" in blocks:  # earlier versions did not count what was cut, nor choices
        missing = {name: np.zeros_like(blocks["totals"]) for name in ("censored", "choices")}
        blocks = {**missing, "whole": np.zeros(1), **blocks}
    task, std = task_from_json(values["task"]), float(policy.guarantee.noise["std"])
    return StoredResult(
        policy=policy,
        release=reread(task.users, blocks, std, str(values["source"])),
        data=values["data"],
        values={name: _interval(interval) for name, interval in values["values"].items()},
        whole=_interval(values.get("whole_first_episodes")) or Interval(1.0, 1.0, 1.0),
        task=task,
        max_return=float(values["top"]),
        ended=int(values.get("ended", -1)),
    )


def _interval(stored: Mapping[str, Any] | None) -> Interval | None:
    return None if stored is None else Interval(stored["value"], *stored["ci95"])


def read_release(folder: str | Path, mapped: LogMapping) -> Release:
    """The release alone, for further questions about the same mapping."""
    stored = read_result(folder)
    if stored.task.digest() != mapped.task.digest():
        raise InvalidInput(f"{folder} was made with another mapping")
    return stored.release
