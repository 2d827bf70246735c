"""Measured numbers lie in docs/results/*.json; no page shows another number than its file."""

import importlib.util
import re
from pathlib import Path

import pytest

from tacit.cli import main

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("measured", ROOT / "docs" / "measured.py")
measured = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(measured)

KNOWN = measured.files()
ENTRIES = {f"{file}.{name}": one for file, some in KNOWN.items() for name, one in some.items()}
SHOWN = [
    (path, match)
    for path in measured.pages()
    for match in measured.PLACE.finditer(path.read_text())
]
BY_PROGRAMS = ("figures.md", "audits.md")
"""Pages of results whose tables another program writes."""


def test_pages_show_what_the_files_say() -> None:
    for path in measured.pages():
        text = path.read_text()
        assert text.count("<!-- measured ") == len(measured.PLACE.findall(text)), path
        assert measured.filled(text, KNOWN) == text, f"{path}: run python docs/measured.py"


def test_a_stale_number_is_found_wherever_it_stands() -> None:
    assert len(SHOWN) > 100
    for path, match in SHOWN:
        text = path.read_text()
        start, end = match.span(4)
        stale = text[:start] + text[start:end].replace(match[4].strip(), "0.123") + text[end:]
        assert stale != text and measured.filled(stale, KNOWN) == text


def test_every_entry_is_shown_and_says_how_it_was_measured() -> None:
    assert set(ENTRIES) == {f"{match[1]}.{match[2]}" for _, match in SHOWN}
    for name, entry in ENTRIES.items():
        content = {"text"} if "text" in entry else {"columns", "rows"}
        assert set(entry) == {"command", "date", "commit"} | content, name
        rows = entry.get("rows", [])
        assert all(len(row) == len(entry["columns"]) for row in rows), name


def test_commands_name_what_there_is() -> None:
    known = {name for names in main.COMMANDS.values() for name in names}
    for name, entry in ENTRIES.items():
        command = entry["command"] or ""
        assert set(re.findall(r"\btacit (\w+)", command)) <= known, name
        assert all((ROOT / path).exists() for path in re.findall(r"[\w/]+\.py", command)), name


def test_tables_of_results_come_from_the_files() -> None:
    for path in (ROOT / "docs" / "results").glob("*.md"):
        if path.name not in BY_PROGRAMS:
            assert "\n|" not in measured.PLACE.sub("", path.read_text()), path.name


def test_a_comment_does_not_begin_a_line_of_a_paragraph() -> None:
    """There it would begin a block of HTML, and Markdown would end."""
    for path in measured.pages():
        for line in path.read_text().splitlines():
            if line.startswith(("<!-- measured", "<!-- end")):
                assert line.endswith("-->") and line.count("-->") == 1, (path, line)


@pytest.mark.parametrize("place", ["nobody; regret", "tacit-linear; nothing"])
def test_a_place_that_is_not_there_is_an_error(place: str) -> None:
    with pytest.raises(ValueError):
        measured.cell(KNOWN["benchmarks"]["linear_1"], place)


def test_a_new_table_replaces_the_old_one(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measured, "RESULTS", tmp_path)
    known = {"some": {"table": {"command": "python x.py", "columns": [], "rows": []}}}
    lines = ["| a | b |\n", "|---|---|\n", "| 1 | `x \\| y` |\n", "<!-- 3 s -->\n", "| | 2 |\n"]
    measured.replace(known, "some.table", lines)
    measured.write(known)
    entry = measured.files()["some"]["table"]
    assert entry["rows"] == [["1", "`x \\| y`"], ["", "2"]] and entry["date"]
    page = "<!-- measured some.table -->\n<!-- end -->\n"
    page += "b is <!-- measured some.table[1 & 2; b] --><!-- end -->"
    shown = measured.filled(page, measured.files())
    assert "| 1 | `x \\| y` |\n|  | 2 |\n<!-- end -->" in shown and "-->2<!--" in shown
