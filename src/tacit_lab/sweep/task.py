"""One task: one agent on one problem under one root seed, named by all that determines it.

The same function runs it here, in a local process and on a cluster. What it returns are plain JSON
values, so nothing but numbers and words crosses between processes and machines. Finished work lies
on disk, one file each, under that name: a file appears complete or not at all, and floats are
written in their shortest exact form, so a curve read back is the curve that was written.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from tacit.errors import InvalidInput, TacitError
from tacit.experiment_spec import ExperimentSpec
from tacit.kernels.compiler import source_hash
from tacit.simulation.result import FACTS, Result
from tacit.simulation.scheduler import Progress
from tacit.util.files import provenance, require_folder

sources = functools.cache(source_hash)
"""Digest of the code that determines a run: an edit there makes stored runs unknown."""

_made_with = functools.cache(provenance)


def digest(facts: dict[str, Any]) -> str:
    """Names what is determined by these facts (plain JSON values) and by our sources."""
    text = json.dumps({**facts, "sources": sources()}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class SweepTask:
    """An experiment that is run, stored and sent as a whole."""

    spec: ExperimentSpec

    @functools.cached_property
    def digest(self) -> str:
        """Its name on disk."""
        return digest(self.spec.facts())

    def payload(self) -> dict[str, Any]:
        """What :func:`run_task` is given."""
        return {**self.spec.to_json(), "sources": sources()}

    def run(
        self, workers: int = 1, progress: Progress | None = None, stop: Event | None = None
    ) -> dict[str, Any]:
        """Its outcome: what :meth:`tacit.simulation.result.Result.from_json` reads, and times."""
        began = time.perf_counter()
        result = self.spec.make().run(workers=workers, progress=progress, stop=stop)
        report = result.to_json()
        return {
            **{key: report[key] for key in FACTS if key in report},
            "episode": result.episodes.tolist(),
            "regret": result.regret.ravel().tolist(),
            "reward": result.reward.ravel().tolist(),
            "made_with": _made_with(),
            "timing": {**report["timing"], "task": time.perf_counter() - began},
        }


def run_task(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Run a task; returns its outcome, or ``{"error", "again", "traceback"}``.

    A mistake of a person (``again`` false) fails again whenever it is tried; anything else may be
    the machine's fault.
    """
    try:
        return _task(payload).run()
    except TacitError as error:
        return {"error": " ".join(str(error).split()), "again": False, "traceback": ""}
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        return {"error": words, "again": True, "traceback": traceback.format_exc()}


def _task(payload: Mapping[str, Any]) -> SweepTask:
    """The task that was ordered, if this machine has the same code as the one that sent it."""
    spec = ExperimentSpec.from_json(payload)
    if sources() != payload["sources"] or spec.modules.load() != payload["modules"]:
        raise InvalidInput(
            "this worker has another version of tacit, or of the sweep's own modules, than the "
            "machine that sent the task; install the same on all of them"
        )
    return SweepTask(spec)


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
