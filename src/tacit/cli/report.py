"""``tacit report``: results as one page."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from tacit.report.page import write_report


def report_and_print(folder: Path, out: Path | None, *, as_json: bool) -> None:
    """Write the page and say where it is."""
    target = write_report(folder, out)
    if as_json:
        print(json.dumps({"file": str(target), "bytes": target.stat().st_size}))
        return
    Console(highlight=False).print(f"wrote {target}", soft_wrap=True, markup=False)
