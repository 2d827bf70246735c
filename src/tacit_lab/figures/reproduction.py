"""Run a figure, draw it, judge its claims, write it all down."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tacit._version import __version__
from tacit.errors import InvalidInput, UnknownName
from tacit.util.files import provenance, require_folder, write_json
from tacit.validate import integer
from tacit.wire.strict_json import finite
from tacit_lab.figures import draw
from tacit_lab.figures.figure import (
    Claim,
    Curve,
    Evidence,
    Figure,
    Measured,
    Part,
    Runs,
    Size,
)
from tacit_lab.papers import linear_jdp, lq_jdp, mixture, tabular_jdp, tabular_ldp
from tacit_lab.sweep.pool import run_on_threads
from tacit_lab.sweep.run import SweepProgress
from tacit_lab.sweep.task import ResultStore

figures: tuple[Figure, ...] = (
    *tabular_ldp.FIGURES,
    *tabular_jdp.FIGURES,
    *mixture.FIGURES,
    *linear_jdp.FIGURES,
    *lq_jdp.FIGURES,
)


def find(name: str) -> Figure:
    """The figure of that id, or an error that suggests the nearest ones."""
    by_id = {figure.id: figure for figure in figures}
    if name not in by_id:
        raise UnknownName("figure", name, by_id)
    return by_id[name]


@dataclass(frozen=True)
class Step:
    """How far the work is: part number ``part`` (from 0) of ``parts``, and the share of it done."""

    part: int
    parts: int
    label: str
    share: float


Watch = Callable[[Step], None]
"""Told now and then how far the work is."""


def gather(
    parts: Sequence[Part], size: Size, folder: Path, workers: int | None, watch: Watch
) -> Evidence:
    """Finish every part in turn, or take it from the folder if it is finished.

    Ctrl-C loses the part in progress, at most, and is passed on.
    """
    keys = [part.key for part in parts]
    if len(set(keys)) < len(keys):
        raise InvalidInput(f"the parts of a figure need different keys, got {', '.join(keys)}")
    threads = integer(workers, "workers", low=1) if workers is not None else os.cpu_count() or 1
    finished, evidence = ResultStore(folder), Evidence(size, {}, {})
    for i, part in enumerate(parts):

        def tell(share: float, i: int = i, label: str = part.label) -> None:
            watch(Step(i, len(parts), label, share))

        tell(0.0)
        if isinstance(part, Curve):
            backend = partial(run_on_threads, workers=threads, watch=tell)
            SweepProgress(finished, backend).finish(part.tasks())
            results = tuple(finished.result(task) for task in part.tasks())
            evidence.curves[part.key] = Runs(part, results)
        else:
            if part not in finished:  # in the main thread: nobody else can stop a plain function
                finished.keep(part, part.run())
            kept = finished.outcome(part)
            arrays = {name: np.array(values) for name, values in kept["arrays"].items()}
            evidence.measurements[part.key] = Measured(part, arrays, kept["seconds"])
        tell(1.0)
    return evidence


OUT = "tacit-figures"
PICTURE, CLAIMS, MANIFEST = "figure.png", "claims.json", "manifest.json"
BOUNDS = "bounds.png"


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A figure that was run.

    Attributes:
        figure: which.
        size: how much of it.
        scale: "quick", "full", "paper" or "custom".
        claims: what the paper says beside what was measured.
        evidence: every curve and measurement behind them.
        files: picture, claims and manifest, and the picture of bounds if there is one.
        seconds: wall-clock time of this call; stored parts cost none.
        cpu_seconds: processor time of this call, over all cores.
    """

    figure: Figure
    size: Size
    scale: str
    claims: tuple[Claim, ...]
    evidence: Evidence
    files: tuple[Path, ...]
    seconds: float
    cpu_seconds: float

    def to_json(self) -> dict[str, Any]:
        """The object ``tacit reproduce --json`` prints, and ``claims.json`` holds."""
        return {
            "tacit": __version__,
            "figure": self.figure.id,
            "title": self.figure.title,
            "scale": self.scale,
            "size": self.size.to_json(),
            "claims": [finite(vars(claim)) for claim in self.claims],
            "notes": self.figure.noted(self.size),
            "curves": [runs.to_json() for runs in self.evidence.curves.values()],
            "files": [str(file) for file in self.files],
            "timing": {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds},
        }


def reproduce(
    figure: str | Figure,
    *,
    size: str | Size = "full",
    out: str | Path = OUT,
    workers: int | None = None,
    watch: Watch = lambda step: None,
    bounds: bool = False,
) -> Reproduction:
    """Run a figure, draw it, and judge every claim.

    Finished parts are kept under ``out/parts`` and never computed twice, so a call that was
    interrupted goes on where it stopped, and repeating a finished one is instant.

    Args:
        figure: its id (``tacit list figures``), or a figure of your own.
        size: "quick", "full" or "paper", or a size of your own.
        out: folder for parts, picture, claims and manifest.
        workers: threads; by default one per core.
        watch: told how far the work is.
        bounds: draw a second picture, of the curves beside what theorems say of them.
    """
    figure = find(figure) if isinstance(figure, str) else figure
    scale, chosen = ("custom", size) if isinstance(size, Size) else (size, figure.at(size))
    folder = Path(out) / figure.id / scale
    require_folder(folder)
    began, cpu_began = time.perf_counter(), time.process_time()
    evidence = gather(figure.parts(chosen), chosen, Path(out) / "parts", workers, watch)
    figure.draw(evidence).savefig(folder / PICTURE, bbox_inches="tight")
    names = [PICTURE, CLAIMS, MANIFEST]
    if bounds and evidence.curves:
        draw.bounds(figure.title, evidence).savefig(folder / BOUNDS, bbox_inches="tight")
        names.append(BOUNDS)
    done = Reproduction(
        figure=figure,
        size=chosen,
        scale=scale,
        claims=tuple(judge(evidence) for judge in figure.claims),
        evidence=evidence,
        files=tuple(folder / name for name in names),
        seconds=time.perf_counter() - began,
        cpu_seconds=time.process_time() - cpu_began,
    )
    write_json(folder / CLAIMS, done.to_json())
    write_json(folder / MANIFEST, _manifest(done))
    return done


def _manifest(done: Reproduction) -> dict[str, Any]:
    """How it was made: versions, machine, seeds and times."""
    curves, measurements = done.evidence.curves.values(), done.evidence.measurements.values()
    computing = sum(r.seconds for runs in curves for r in runs.results)
    return {
        "tacit": __version__,
        "figure": done.figure.id,
        "scale": done.scale,
        "size": done.size.to_json(),
        "seeds": {runs.curve.key: [r.seed for r in runs.results] for runs in curves},
        "measurements": {m.measurement.key: dict(m.measurement.parameters) for m in measurements},
        **provenance(),
        "timing": {
            "seconds": done.seconds,
            "cpu_seconds": done.cpu_seconds,
            "seconds_of_all_parts": computing + sum(m.seconds for m in measurements),
        },
    }
