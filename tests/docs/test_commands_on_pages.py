"""Commands and options that pages name are those that there are."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *ROOT.glob("proofs/*.md"),
    *ROOT.glob("examples/*/README.md"),
    *(path for path in ROOT.glob("docs/**/*.md") if path.parent.name not in ("_build", "proofs")),
]
OF_SCRIPTS = ("CONTRIBUTING.md", "docs/results/", "docs/reference/wire.md")
"""Pages that name options of scripts, too."""


def options() -> dict[str, set[str]]:
    """By command, its options."""
    found = {}

    def add(name: str, command: Any) -> None:
        found[name] = {word for p in command.params for word in (*p.opts, *p.secondary_opts)}
        for one in getattr(command, "commands", {}).values():
            add(f"{name} {one.name}", one)

    for names in main.COMMANDS.values():
        for name in names:
            add(name, main.as_command(name, main.load(name)))
    return found


OPTIONS = options()
ALL = set().union(*OPTIONS.values()) | {"--help", "--version"}


def typed(text: str) -> Iterator[str]:
    """Every command as a page has it, in a block or between backticks."""
    for block in re.findall(
        r"^```(?:console|sh|text)?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    ):
        yield from re.findall(r"^(?:\$ )?(tacit [a-z].*?)(?: +#.*)?$", block, re.MULTILINE)
    yield from (" ".join(one.split()) for one in re.findall(r"`(tacit [a-z][^`]*)`", text))


def command_of(line: str) -> str | None:
    """The longest command that a line begins with."""
    words = line.split()[1:]
    names = (" ".join(words[:n]) for n in (3, 2, 1))
    return next((name for name in names if name in OPTIONS), None)


def test_every_command_exists_and_takes_its_options() -> None:
    wrong = []
    for page in PAGES:
        for line in typed(page.read_text()):
            name = command_of(line)
            words = re.findall(r"(?<=\s)--?[a-zA-Z][\w-]*", line.partition(" > ")[0])
            known = OPTIONS.get(name or "", set()) | {"--help"}
            if name is None or set(words) - known:
                wrong.append((page.name, line, sorted(set(words) - known)))
    assert wrong == []


def test_options_that_stand_alone_exist() -> None:
    wrong = []
    for page in PAGES:
        if not page.relative_to(ROOT).as_posix().startswith(OF_SCRIPTS):
            found = re.findall(r"`(--[a-z][\w-]*)", page.read_text())
            wrong += [(page.name, one) for one in found if one not in ALL]
    assert wrong == []
