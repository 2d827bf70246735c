"""The keys of a deployment file, from ``tacit_service.config.sections``, as a page.

    python docs/deployment_file.py

writes docs/reference/deployment_file.md; ``tests/docs/test_deployment_file.py`` compares the two.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from tacit_service.config.sections import Settings

PAGE = Path(__file__).parent / "reference" / "deployment_file.md"

HEAD = """# The deployment file

What [tacit serve](../deploy/index.md) reads, section by section. `tacit serve FILE --init` writes
an example with comments. A length of time is a number of seconds or text like `"90s"`, `"5m"`,
`"2h"`, `"1d"`, a pace is text like `"150/day"`, and `participations` may be `"any"`. Names of
files are relative to the deployment file. `TACIT_<SECTION>_<KEY>` in the environment goes before
the file.
`[agent]` holds `name` and the parameters of that agent; `[fleet]` is read by rehearsals only.

This page is written by `python docs/deployment_file.py`.
"""


def page() -> str:
    """The whole page."""
    found = [HEAD]
    for one in fields(Settings):
        kind = one.metadata["check"]
        if kind is not dict:
            found.append(_section(one.name, kind))
    return "\n".join(found)


def _section(name: str, kind: type[Any]) -> str:
    text = (inspect.getdoc(kind) or "").replace("``", "`")
    about, _, listed = text.partition("\n\nAttributes:\n")
    said = dict(re.findall(r"^    (\w+): ((?:.+\n?)(?:^ {8}.+\n?)*)", listed, re.MULTILINE))
    rows = [f"## `[{name}]`", "", about, "", "| key | default | what it says |", "|---|---|---|"]
    for one in fields(kind):
        meaning = " ".join(said[one.name].split()).rstrip(".").replace("|", "\\|")
        rows.append(f"| `{one.name}` | {_default(one.default)} | {meaning} |")
    return "\n".join((*rows, ""))


def _default(value: Any) -> str:
    if value is MISSING:
        return "must be given"
    return "" if value is None or value == () else f"`{json.dumps(value)}`"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
