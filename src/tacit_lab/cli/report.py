"""tacit report: one page about results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.display import speaker
from tacit.cli.options import Json

if TYPE_CHECKING:
    pass


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a sweep, of a run, or of runs.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Page to write (default: DIR/report.html).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Results as one self-contained HTML file: curves, price of privacy, guarantees.

    Example: tacit report results/
    """
    from tacit_lab.report.page import write_report

    target = write_report(folder, out)
    if as_json:
        print(json.dumps({"file": str(target), "bytes": target.stat().st_size}))
    else:
        speaker()(f"wrote {target}")
