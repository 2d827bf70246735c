"""tacit report: one page about results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.display import speaker
from tacit.cli.options import Json


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder of a sweep, of a run, of runs, or of a log."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Page to write (default: report.html in DIR, page.html of a log)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Results as one self-contained HTML file: curves, price of privacy, guarantees.

    Of what tacit offline --out wrote: what the policy is worth, what it says, what was guaranteed.

    Example: tacit report results/
    """
    from tacit.logs.files import RELEASE
    from tacit_lab.report.log_page import write_page
    from tacit_lab.report.page import write_report

    target = (write_page if (folder / RELEASE).exists() else write_report)(folder, out)
    if as_json:
        print(json.dumps({"file": str(target), "bytes": target.stat().st_size}))
    else:
        speaker()(f"wrote {target}")
