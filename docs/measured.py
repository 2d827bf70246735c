"""Measured numbers: they lie in docs/results/*.json, and pages show them between two comments.

    python docs/measured.py                                      # writes them into all pages
    python benchmarks/search.py | python docs/measured.py search.wanted

Of an entry the second form replaces the table, by the Markdown table that it reads, and writes all
pages. An entry has the ``command`` that measures it (null: nobody kept one), the ``date`` and
``commit`` of the change that brought it into the repository (the code that was measured is that of
this commit or a little older), and either ``text`` or ``columns`` and ``rows``. A page shows

    <!-- measured FILE.NAME -->...<!-- end -->                   the text or the table
    <!-- measured FILE.NAME[ROW; COLUMN] -->...<!-- end -->      one cell

where ROW is one or several cells of the row, with " & " between them. Everything between the two
comments is written by this program; ``tests/docs/test_measured.py`` compares.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PLACE = re.compile(r"<!-- measured (\w+)\.(\w+)(?:\[(.+?)\])? -->(.*?)<!-- end -->", re.DOTALL)

Entry = dict[str, Any]


def files() -> dict[str, dict[str, Entry]]:
    """All entries, by file and name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def pages() -> list[Path]:
    """All pages on which numbers may be shown."""
    found = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md"), *ROOT.glob("proofs/*.md")]
    return [path for path in (*sorted(found), ROOT / "README.md") if "_build" not in path.parts]


def cells(line: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def table(entry: Entry) -> str:
    """The rows as a Markdown table."""
    lines = [entry["columns"], ["---"] * len(entry["columns"]), *entry["rows"]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(entry: Entry, place: str) -> str:
    """What stands in a row that holds these words, in this column.

    A row that begins with empty cells goes on with those of the row above.
    """
    words, _, column = place.rpartition("; ")
    above: list[str] = []
    found = []
    for row in entry["rows"]:
        empty = next(i for i, text in enumerate(row) if text)
        above = [*above[:empty], *row[empty:]]
        if all(word in above for word in words.split(" & ")):
            found.append(row[entry["columns"].index(column)])
    (text,) = found
    return text


def filled(page: str, known: dict[str, dict[str, Entry]]) -> str:
    """The page with the numbers as they are in the files."""

    def show(match: re.Match[str]) -> str:
        file, name, place, before = match.groups()
        entry = known[file][name]
        if place:
            text = cell(entry, place)
        else:
            text = "\n".join(entry["text"]) if "text" in entry else table(entry)
            if before.startswith("\n"):
                text = f"\n{text}\n"
        where = f"{file}.{name}[{place}]" if place else f"{file}.{name}"
        return f"<!-- measured {where} -->{text}<!-- end -->"

    return PLACE.sub(show, page)


def write(known: dict[str, dict[str, Entry]]) -> None:
    """Write the files as people can read them: a row, or a line of text, on a line."""

    def entry(name: str, fields: Entry) -> str:
        lines = []
        for key, item in fields.items():
            text = json.dumps(item, ensure_ascii=False)
            if key in ("rows", "text"):
                rows = (f"      {json.dumps(row, ensure_ascii=False)}" for row in item)
                text = "[\n" + ",\n".join(rows) + "\n    ]"
            lines.append(f'    "{key}": {text}')
        return f'  "{name}": {{\n' + ",\n".join(lines) + "\n  }"

    for file, entries in known.items():
        text = ",\n".join(entry(name, fields) for name, fields in entries.items())
        (RESULTS / f"{file}.json").write_text(f"{{\n{text}\n}}\n")


def replace(known: dict[str, dict[str, Entry]], name: str, lines: Iterable[str]) -> None:
    """Put the only Markdown table of these lines into an entry."""
    columns, _, *rows = [cells(line) for line in lines if line.startswith("|")]
    file, _, entry = name.partition(".")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    day = datetime.now(UTC).date().isoformat()
    new = {"date": day, "commit": commit.stdout.strip(), "columns": columns, "rows": rows}
    known[file][entry] |= new


def main() -> None:
    """Write all pages, after a new table was read if one is named."""
    known = files()
    if sys.argv[1:]:
        replace(known, sys.argv[1], sys.stdin)
        write(known)
    for path in pages():
        before = path.read_text()
        after = filled(before, known)
        if after != before:
            path.write_text(after)
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
