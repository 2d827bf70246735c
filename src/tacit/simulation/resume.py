"""Where runs stand, kept in a folder while they go on: what was interrupted goes on bit for bit.

Each run has a file of its own with plain arrays: score, random streams, sums and publication. It is
replaced as a whole every few seconds, after the last user, and when the runs are stopped; so
whatever ends the program costs at most the work since then. The users in it are simulated, so
nobody is protected and nothing is encrypted; nothing is pickled.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tacit.arrays import Arrays
from tacit.errors import InvalidInput
from tacit.learner import Learner
from tacit.simulation.runs.base import Run
from tacit.simulation.score import CHANGING
from tacit.util.files import read_json, require_folder, write_json
from tacit.wire import documents

SECONDS = 5.0
"""Between two times that a run is saved."""

CONFIGURATION = "configuration.json"


class ResumeFolder:
    """A folder in which runs keep where they stand.

    Args:
        folder: is made if it is not there.
        configuration: everything that decides the results, as plain values; a folder that was begun
            with another one is refused.
    """

    def __init__(self, folder: Path, configuration: Mapping[str, Any]) -> None:
        self._folder = folder
        mine = json.loads(json.dumps(configuration))
        require_folder(folder)
        if not (folder / CONFIGURATION).exists():
            write_json(folder / CONFIGURATION, mine)
        kept = read_json(folder / CONFIGURATION, "")
        for name in [*mine, *(kept.keys() - mine.keys())]:
            if mine.get(name) != kept.get(name):
                raise InvalidInput(
                    f"{folder} holds the progress of a run with {name} = {_short(kept.get(name))}, "
                    f"not {_short(mine.get(name))}: go on with what it was begun with, or choose "
                    "another folder"
                )

    def save(self, number: int, arrays: Arrays) -> None:
        """Replace what is kept of a run; it appears complete or not at all."""
        target = self._file(number)
        part = target.with_suffix(".part")
        with part.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        part.replace(target)

    def load(self, number: int) -> Arrays | None:
        """What is kept of a run, None if nothing is."""
        try:
            with self._file(number).open("rb") as file, np.load(file, allow_pickle=False) as kept:
                return {name: kept[name] for name in kept.files}
        except FileNotFoundError:
            return None
        except (ValueError, OSError, BadZipFile):
            raise InvalidInput(
                f"{self._file(number)} cannot be read; delete it, and this run begins anew"
            ) from None

    def _file(self, number: int) -> Path:
        return self._folder / f"{number}.npz"


def keeper(
    folder: Path, runs: Sequence[Run], configuration: dict[str, Any]
) -> Callable[[Run], None]:
    """Bring runs to where the folder says they stood, and keep it up to date.

    A run whose mechanism has no form to be stored in is not kept, and begins anew.
    """
    kept = ResumeFolder(folder, configuration)
    for number, run in enumerate(runs):
        arrays = kept.load(number)
        if arrays is not None:
            restore(run, arrays)
    numbers = {id(run): number for number, run in enumerate(runs)}

    def keep(run: Run) -> None:
        with suppress(InvalidInput):
            kept.save(numbers[id(run)], state(run))

    return keep


def forget(folder: Path) -> None:
    """Delete what was kept, once the result is."""
    shutil.rmtree(folder, ignore_errors=True)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else text[:200] + "..."


def state(run: Run) -> Arrays:
    """Where a run stands before it is concluded."""
    arrays = {name: getattr(run.score, name) for name in CHANGING}
    for name, rng in run.generators.items():
        arrays[f"stream.{name}"] = np.array(json.dumps(rng.bit_generator.state))
    if run.learner is not None:
        arrays |= _of_learner(run.learner)
    return arrays | run.kept()


def restore(run: Run, arrays: Arrays) -> None:
    """Let a run that has just been made go on from there."""
    for name in CHANGING:
        getattr(run.score, name)[...] = arrays[name]
    for name, rng in run.generators.items():
        rng.bit_generator.state = json.loads(str(arrays[f"stream.{name}"]))
    if run.learner is not None:
        _to_learner(run.learner, arrays)
    run.recall(arrays)


def _of_learner(learner: Learner) -> Arrays:
    """Where a learner stands; mechanisms whose state has no form to be stored in refuse."""
    state = learner.agent.privatizer.state(learner.secret)
    publication, document, users = learner.publication, "", None
    if publication is not None:
        document = json.dumps(documents.publication_to_json(publication, "simulated"))
        users = publication.users
    numbers = learner.served, learner.left, learner.learned, -1 if users is None else users
    secret = {f"secret.{name}": array for name, array in state.items()}
    return {**secret, "publication": np.array(document), "numbers": np.array(numbers)}


def _to_learner(learner: Learner, arrays: Arrays) -> None:
    """Set a learner back to where it stood."""
    secret = {
        name.removeprefix("secret."): array
        for name, array in arrays.items()
        if name.startswith("secret.")
    }
    learner.secret = learner.agent.privatizer.restore(secret)
    learner.served, learner.left, learner.learned, users = map(int, arrays["numbers"])
    if document := json.loads(str(arrays["publication"]) or "null"):
        publication = documents.publication_from_json(document, learner.agent.task, "simulated")
        learner.publication = replace(publication, users=None if users < 0 else users)
