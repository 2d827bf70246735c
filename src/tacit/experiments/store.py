"""Finished parts on disk, under a name made of everything that determines them.

A part appears complete or not at all, so an interrupted figure goes on where it stopped, and what
two figures share is computed once.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.experiments.evidence import Measured
from tacit.experiments.figure import Curve, Measurement
from tacit.folders import make_folder
from tacit.simulation.naming import digest
from tacit.simulation.result import Result


def curve_digest(curve: Curve, problem: int) -> str:
    """Names the runs of a curve on one of its problems."""
    on = curve.problems[problem]
    return digest(
        {
            "problem": [on.name, dict(on.parameters)],
            "agent": [curve.agent.name, dict(curve.agent.parameters)],
            "episodes": curve.episodes,
            "runs": curve.runs,
            "seed": curve.seed + problem,
            "reveal": sorted(curve.reveal),
        }
    )


def measurement_digest(measurement: Measurement) -> str:
    """Names the outcome of a measurement; its own module's code is part of the name."""
    function = measurement.measure
    module = inspect.getmodule(function)
    return digest(
        {
            "measure": f"{function.__module__}.{function.__qualname__}",
            "code": inspect.getsource(module) if module else "",
            "parameters": dict(measurement.parameters),
        }
    )


class Store:
    """A folder of finished parts."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.folder = folder

    def result(self, digest: str) -> Result | None:
        """The stored runs of that name, if there are any."""
        at = self.folder / digest
        return Result.load(at) if at.exists() else None

    def keep_result(self, digest: str, result: Result) -> None:
        """Store finished runs."""
        self._keep(digest, lambda folder: result.save(folder))

    def measured(self, digest: str, measurement: Measurement) -> Measured | None:
        """The stored outcome of that name, if there is one."""
        at = self.folder / digest
        if not at.exists():
            return None
        with np.load(at / "arrays.npz") as arrays:
            kept: dict[str, Array] = {name: arrays[name] for name in arrays.files}
        return Measured(measurement, kept, json.loads((at / "facts.json").read_text())["seconds"])

    def keep_measured(self, digest: str, outcome: Measured) -> None:
        """Store a finished measurement."""

        def write(folder: Path) -> None:
            folder.mkdir()
            arrays: dict[str, Any] = dict(outcome.arrays)
            np.savez(folder / "arrays.npz", **arrays)
            facts = {"parameters": dict(outcome.measurement.parameters), "seconds": outcome.seconds}
            (folder / "facts.json").write_text(json.dumps(facts, indent=2) + "\n")

        self._keep(digest, write)

    def _keep(self, digest: str, write: Callable[[Path], object]) -> None:
        """Write into a folder of our own, then give it its name in one step."""
        part = self.folder / f"{digest}.part-{os.getpid()}"
        shutil.rmtree(part, ignore_errors=True)
        write(part)
        try:
            part.rename(self.folder / digest)
        except OSError:  # somebody else finished the same part first
            shutil.rmtree(part)
