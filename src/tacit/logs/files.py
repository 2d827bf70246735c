"""The files of a result: policy, release and values. All of them are public if noise was secure.

Those of simulated noise say so, and are not for passing on where the log is of real people: whoever
knows the seed takes the noise away, and nothing was charged.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tacit.errors import InvalidInput
from tacit.learned_policy import load_policy
from tacit.logs.mapping import Mapped
from tacit.logs.offline import NOT_FOR_OTHERS, OfflineResult
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.joint.batched import reread
from tacit.release import Release
from tacit.task.task import Task
from tacit.util.files import make_folder, read_json, write_json
from tacit.wire.documents import task_from_json, task_to_json

POLICY, VALUES, RELEASE = "policy.json", "values.json", "release.npz"


def make_room(folder: str | Path) -> Path:
    """A folder for a result; ask for it before anything is charged."""
    folder = Path(folder)
    make_folder(folder)
    if (folder / POLICY).exists():
        raise InvalidInput(f"{folder} holds a result already; choose another folder")
    return folder


def save(result: OfflineResult, folder: str | Path) -> list[Path]:
    """Write policy, values and release into a folder."""
    folder, release = make_room(folder), result.release
    mapped = result.mapped
    public = {"task": task_to_json(mapped.task), "top": mapped.top, "source": release.source}
    public["ended"] = mapped.ended
    if result.guarantee.simulated:
        public["note"] = NOT_FOR_OTHERS
    write_json(folder / VALUES, {**result.to_json(), **public})
    with (folder / RELEASE).open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **release.blocks)
    result.policy.save(folder / POLICY)
    return [folder / name for name in (POLICY, VALUES, RELEASE)]


class Stored(NamedTuple):
    """What a folder holds, as far as learning goes on from it."""

    name: str  # of the data set
    release: Release
    task: Task
    top: float
    ended: int  # the state after a row that ends, -1 if no column says that
    guarantee: Guarantee


def stored(folder: str | Path) -> Stored:
    """A result that was saved, for whatever costs nothing more."""
    folder = Path(folder)
    values = read_json(folder / VALUES, f"{folder} holds no result of tacit offline")
    if not {"task", "top", "source"} <= values.keys():
        raise InvalidInput(
            f"{folder} was written by an earlier version of tacit, which did not keep the task "
            "beside the release; make it again with this one, or use it with that one"
        )
    guarantee = load_policy(folder / POLICY).guarantee
    with np.load(folder / RELEASE, allow_pickle=False) as arrays:
        blocks = {name: arrays[name] for name in arrays.files}
    if "transitions" in blocks:  # earlier versions did not count what was cut, nor choices
        missing = {name: np.zeros_like(blocks["totals"]) for name in ("censored", "choices")}
        blocks = {**missing, "whole": np.zeros(1), **blocks}
    task, std = task_from_json(values["task"]), float(guarantee.noise["std"])
    release = reread(task.users, blocks, std, str(values["source"]))
    top, ended = float(values["top"]), int(values.get("ended", -1))
    return Stored(values["data"]["name"], release, task, top, ended, guarantee)


def stored_release(folder: str | Path, mapped: Mapped) -> Release:
    """The release alone, for further questions about the same mapping."""
    found = stored(folder)
    if found.task.digest() != mapped.task.digest():
        raise InvalidInput(f"{folder} was made with another mapping")
    return found.release
