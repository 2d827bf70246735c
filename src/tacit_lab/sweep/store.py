"""Finished work on disk, one file each, under a name made of all that determines it.

A file appears complete or not at all. Floats are written in their shortest exact form, so a curve
read back is the curve that was written, to the last bit.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

from tacit.errors import InvalidInput
from tacit.simulation.result import Result
from tacit.util.files import require_folder


class Job(Protocol):
    """What can be stored: a task of a sweep, or a measurement of a figure."""

    @property
    def digest(self) -> str:
        """Its name on disk, made of all that determines its outcome."""

    def payload(self) -> dict[str, Any]:
        """All that, as plain values."""


class ResultStore:
    """The folder of finished jobs."""

    def __init__(self, folder: Path) -> None:
        require_folder(folder)
        self.folder = folder

    def _at(self, job: Job) -> Path:
        return self.folder / f"{job.digest}.json"

    def __contains__(self, job: Job) -> bool:
        return self._at(job).exists()

    def keep(self, job: Job, outcome: dict[str, Any]) -> None:
        """Store an outcome, in one step."""
        part = self.folder / f"{job.digest}.part-{os.getpid()}"
        part.write_text(json.dumps({**outcome, "task": job.payload()}) + "\n")
        part.replace(self._at(job))

    def outcome(self, job: Job) -> dict[str, Any]:
        """The outcome of a finished job."""
        path = self._at(job)
        try:
            outcome: dict[str, Any] = json.loads(path.read_text())
        except ValueError as error:
            raise InvalidInput(f"{path} is damaged ({error}); delete it to run it again") from None
        return outcome

    def result(self, job: Job) -> Result:
        """The curves of a finished task."""
        outcome = self.outcome(job)
        return Result.from_json(outcome, outcome)
