"""Every block of the tutorials is executed, page by page, and its output compared."""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from tacit.cli import main as cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def command(words: list[str], monkeypatch) -> str:
    """What a command prints, run in this process."""
    shown = io.StringIO()
    monkeypatch.setattr(sys, "argv", words)
    with contextlib.redirect_stdout(shown), pytest.raises(SystemExit) as leave:
        cli.main()
    assert leave.value.code == 0, words
    return shown.getvalue()


def console(block: str, monkeypatch) -> None:
    """Commands and the beginning of what they print; ``...`` stands for the rest."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, expected = part.partition("\n")
        typed, _, target = line.partition(" > ")
        words = shlex.split(typed)
        assert words[0] == "tacit", line
        shown = command(words, monkeypatch)
        if target:
            Path(target).write_text(shown)
        wanted = [text for text in expected.splitlines() if text.strip() != "..."]
        assert shown.splitlines()[: len(wanted)] == wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    shown = ""
    for language, block in BLOCK.findall(page.read_text()):
        if language == "python":
            assert not shown, "the output of a block must be shown below it"
            caught = io.StringIO()
            with contextlib.redirect_stdout(caught):
                exec(compile(block, page.name, "exec"), names)
            shown = caught.getvalue()
        elif language == "text":
            assert shown and shown == block
            shown = ""
        elif language == "console":
            console(block, monkeypatch)
        elif language == "toml":
            (name,) = re.findall(r"as\n?`([\w.]+\.toml)`", page.read_text())
            Path(name).write_text(block)
    assert not shown
