"""Commands and lists of other packages: found by entry points, and missed by nobody."""

import tomllib
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path

import pytest

from tacit.cli import main

GROUPS = ("tacit.commands", "tacit.lists")


@pytest.fixture
def installed(monkeypatch):
    """Let the command believe that these entry points are all there are."""

    def pretend(*points: EntryPoint) -> None:
        monkeypatch.setattr(
            "importlib.metadata.entry_points",
            lambda group: EntryPoints(points).select(group=group),
        )
        own = [c for c in main.app.registered_commands if c.name not in ("bench", "reproduce")]
        monkeypatch.setattr(main.app, "registered_commands", own)
        main.add_commands.cache_clear()

    yield pretend
    main.add_commands.cache_clear()


def greet(name: str = "you") -> None:
    """Say hello."""
    print(f"hello {name}")


def listed(*, as_json: bool) -> None:
    print(f"as_json={as_json}")


def test_a_command_of_another_package(call, installed, monkeypatch) -> None:
    monkeypatch.setattr(main, "greet", greet, raising=False)
    monkeypatch.setattr(main, "listed", listed, raising=False)
    installed(
        EntryPoint("greet", "tacit.cli.main:greet", "tacit.commands"),
        EntryPoint("things", "tacit.cli.main:listed", "tacit.lists"),
    )
    assert call("greet", "--name", "me").out == "hello me\n"
    assert "Say hello" in call("--help").out
    assert call("list", "things", "--json").out == "as_json=True\n"
    wrong = call("list", "thing")
    assert wrong.status == 2 and "did you mean 'things'" in wrong.err


def test_without_any_the_library_and_its_command_work(call, installed) -> None:
    installed()
    shown = call("--help")
    assert shown.status == 0 and "audit" in shown.out and "reproduce" not in shown.out
    assert "psrl" in call("list", "agents").out
    assert call("reproduce", "x").status == call("list", "figures").status == 2


def test_what_is_left_of_a_removed_package_stops_nobody(call, installed) -> None:
    installed(EntryPoint("gone", "no_such_package:command", "tacit.commands"))
    shown = call("list", "problems")
    assert shown.status == 0 and "river-swim" in shown.out and not shown.err
    shown = call("--help")
    assert shown.status == 0 and "audit" in shown.out
    assert shown.err == "tacit: no command gone: No module named 'no_such_package'\n"


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_installed_is_what_the_project_declares(group: str) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    found = {point.name: point.value for point in entry_points(group=group)}
    declared = project["entry-points"][group]
    assert declared.items() <= found.items(), "install the package again: make test does"
