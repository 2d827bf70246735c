"""The commands and their options, written into docs/reference/cli.md from the commands themselves.

    python docs/cli_reference.py

``tests/cli/test_reference.py`` compares the page with the commands, and counts their options.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from tacit.cli import main

PAGE = Path(__file__).resolve().parent / "reference" / "cli.md"
HEAD = """# Commands

`docs/cli_reference.py` writes this page. Facts are written KEY=VALUE: `-P` of the problem, `-A` of
the agent, `-R` of people who come back, `-E` of what is played. Numbers may be written 1e5 or 1/6.
Every command that has `--json` prints one object and nothing else. Status 0 is success, 1 a finding
that a script should see (a refuted guarantee, a task that failed), 2 a mistake in what was typed,
130 an interrupt.
"""


def commands() -> Iterator[tuple[str, str, Any]]:
    """Group, name and command of everything that can be called."""
    for group, names in main.COMMANDS.items():
        for name in names:
            command = main.as_command(name, main.load(name))
            inner = getattr(command, "commands", {})
            if not inner:
                yield group, name, command
            for one in inner.values():
                yield group, f"{name} {one.name}", one


def options(command: Any) -> list[tuple[str, str, str]]:
    """Group, name and sentence of its arguments and options, without --help."""
    context = typer.Context(command)
    found = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        usual = "Arguments" if parameter.param_type_name == "argument" else "Other options"
        if record is not None:
            heading = getattr(parameter, "rich_help_panel", None) or usual
            found.append((heading, record[0], " ".join(record[1].split())))
    return found


def page() -> str:
    """The whole page."""
    lines, before = [HEAD], ""
    for group, name, command in commands():
        if group != before:
            lines.append(f"## {group}\n")
            before = group
        lines.append(f"### tacit {name}\n")
        paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
        for text in paragraphs:
            if text.startswith("Example: "):
                lines.append(f"```console\n$ {text.removeprefix('Example: ')}\n```\n")
            else:
                lines.append(f"{text}\n")
        rows = [
            f"| `{what}` | {said.replace('|', chr(92) + '|')} |"
            for _, what, said in options(command)
        ]
        lines.append("\n".join(["| argument or option | meaning |", "|---|---|", *rows]) + "\n")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
