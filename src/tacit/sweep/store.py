"""Finished tasks on disk, one file each, under a name made of all that determines them.

A file appears complete or not at all. Floats are written in their shortest exact form, so a curve
read back is the curve that was written, to the last bit.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tacit.errors import InvalidInput
from tacit.folders import make_folder
from tacit.sweep.tasks import Task


class Finished:
    """The folder of finished tasks."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.folder = folder

    def _at(self, task: Task) -> Path:
        return self.folder / f"{task.digest}.json"

    def __contains__(self, task: Task) -> bool:
        return self._at(task).exists()

    def keep(self, task: Task, outcome: dict[str, Any]) -> None:
        """Store an outcome, in one step."""
        part = self.folder / f"{task.digest}.part-{os.getpid()}"
        part.write_text(json.dumps({**outcome, "task": task.order()}) + "\n")
        part.replace(self._at(task))

    def outcome(self, task: Task) -> dict[str, Any]:
        """The outcome of a finished task."""
        path = self._at(task)
        try:
            outcome: dict[str, Any] = json.loads(path.read_text())
        except ValueError as error:
            raise InvalidInput(f"{path} is damaged ({error}); delete it to run it again") from None
        return outcome
