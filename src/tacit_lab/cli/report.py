"""tacit report: one page about results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from tacit.cli.display import Told, tell
from tacit.cli.options import Json, argument, file


def report(
    folder: Annotated[
        Path, argument("DIR", "Folder of a sweep, of a run, of runs, of a log, or of a case.")
    ],
    out: Annotated[
        Path | None, file("Page to write (default: report.html in DIR, page.html of a log).", None)
    ] = None,
    as_json: Json = False,
) -> None:
    """Results as one self-contained HTML file.

    Curves, price of privacy, guarantees.

    Of what tacit offline --out wrote: what the policy is worth, what it says, what was guaranteed.
    Of what tacit reproduce coach --out or clinic --out wrote: values, and what they beat.

    Example: tacit report results/
    """
    from tacit.logs.files import RELEASE
    from tacit_lab.cases.outcome import FILE
    from tacit_lab.cases.page import write_study
    from tacit_lab.report.log_page import write_log_page
    from tacit_lab.report.page import write_report

    write: Callable[[Path, Path | None], Path] = write_report
    if (folder / RELEASE).exists():
        write = write_log_page
    elif (folder / FILE).exists():
        write = write_study
    target = write(folder, out)
    tell(Told({"file": str(target), "bytes": target.stat().st_size}, [], [target]), as_json=as_json)
