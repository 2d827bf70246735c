"""``tacit.experiments.reproduce``: run a figure, draw it, judge its claims, write it all down."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tacit._version import __version__
from tacit.experiments.catalogue import find
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Figure, Size
from tacit.experiments.gather import Watch, gather
from tacit.experiments.store import Store
from tacit.folders import make_folder
from tacit.simulation.storage import made_with, write_json

OUT = "tacit-figures"
PICTURE, CLAIMS, MANIFEST = "figure.png", "claims.json", "manifest.json"


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A figure that was run.

    Attributes:
        figure: which.
        size: how much of it.
        scale: "quick", "full", "paper" or "custom".
        claims: what the paper says beside what was measured.
        evidence: every curve and measurement behind them.
        files: picture, claims and manifest.
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
            "size": asdict(self.size),
            "claims": [
                {
                    "claim": claim.claim,
                    "expected": claim.expected,
                    "measured": _finite(claim.measured),
                    "holds": claim.holds,
                    "why": claim.why,
                }
                for claim in self.claims
            ],
            "notes": list(self.figure.notes(self.size)),
            "curves": [runs.to_json() for runs in self.evidence.curves.values()],
            "files": [str(file) for file in self.files],
            "timing": {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds},
        }


def _finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: float(x) if math.isfinite(x) else None for name, x in numbers.items()}


def reproduce(
    figure: str | Figure,
    *,
    quick: bool = False,
    size: str | Size = "full",
    out: str | Path = OUT,
    workers: int | None = None,
    watch: Watch | None = None,
) -> Reproduction:
    """Run a figure, draw it, and judge every claim.

    Finished parts are kept under ``out/parts`` and never computed twice, so a call that was
    interrupted goes on where it stopped, and repeating a finished one is instant.

    Args:
        figure: its id (``tacit list figures``), or a figure of your own.
        quick: the small size, whatever ``size`` says.
        size: "quick", "full" or "paper", or a size of your own.
        out: folder for parts, picture, claims and manifest.
        workers: threads; by default one per core.
        watch: told how far the work is.
    """
    figure = find(figure) if isinstance(figure, str) else figure
    size = "quick" if quick else size
    scale, chosen = ("custom", size) if isinstance(size, Size) else (size, figure.at(size)[0])
    folder = Path(out) / figure.id / scale
    make_folder(folder)
    began, cpu_began = time.perf_counter(), time.process_time()
    evidence = gather(figure.parts(chosen), chosen, Store(Path(out) / "parts"), workers, watch)
    figure.draw(evidence).savefig(folder / PICTURE, bbox_inches="tight")
    done = Reproduction(
        figure=figure,
        size=chosen,
        scale=scale,
        claims=tuple(judge(evidence) for judge in figure.claims),
        evidence=evidence,
        files=tuple(folder / name for name in (PICTURE, CLAIMS, MANIFEST)),
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
        "size": asdict(done.size),
        "seeds": {runs.curve.key: [r.seed for r in runs.results] for runs in curves},
        "measurements": {m.measurement.key: dict(m.measurement.parameters) for m in measurements},
        **made_with(),
        "timing": {
            "seconds": done.seconds,
            "cpu_seconds": done.cpu_seconds,
            "seconds_of_all_parts": computing + sum(m.seconds for m in measurements),
        },
    }
