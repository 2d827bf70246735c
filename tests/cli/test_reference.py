"""What is written about the commands is what they are: the table of --help, and the reference."""

import importlib.util
import re
from pathlib import Path

import pytest

from tacit.cli import main

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("cli_reference", ROOT / "docs" / "cli_reference.py")
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

MOST_OPTIONS = 142
"""Arguments and options of all commands together; raising it needs a line in CHANGELOG.md."""


def test_the_page_is_that_of_the_commands() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), (
        "run python docs/cli_reference.py"
    )


def test_there_are_thirteen_commands_and_few_options() -> None:
    assert len(main.NAMES) == len(set(main.NAMES)) == 13
    counted = sum(len(command.params) for _, _, command in reference.commands())
    assert counted <= MOST_OPTIONS


@pytest.mark.parametrize("name", main.NAMES)
def test_a_sentence_of_the_table_is_the_first_of_the_command(name: str) -> None:
    (said,) = (group[name] for group in main.COMMANDS.values() if name in group)
    command = main.as_command(name, main.load(name))
    assert (command.help or "").partition("\n")[0] == said


def test_no_summary_is_cut_or_broken(call) -> None:
    shown = call("--help").out
    for group, names in main.COMMANDS.items():
        assert f"{group}:\n" in shown
        for name, said in names.items():
            assert re.search(rf"^  {name} +{re.escape(said)}$", shown, re.MULTILINE), name
    assert max(map(len, shown.splitlines())) <= 80
    assert "..." not in call("admin", "--help").out.partition("Commands:")[2]


def test_help_shows_options_in_groups(call) -> None:
    shown = call("run", "--help").out
    headings = re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE)
    assert headings == ["Arguments", "Facts", "Size", "Output", "Other options"]
