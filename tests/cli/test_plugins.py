"""Commands and lists of other packages: found by entry points, and missed by nobody."""

import importlib.util
import tomllib
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path

import pytest

from tacit.cli import main

GROUPS = ("tacit.commands", "tacit.lists", "tacit.experiments")


@pytest.fixture
def installed(monkeypatch):
    """Let the command believe that these entry points are all there are."""

    def pretend(*points: EntryPoint) -> None:
        monkeypatch.setattr(
            "importlib.metadata.entry_points",
            lambda group: EntryPoints(points).select(group=group),
        )

    return pretend


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


def test_without_lab_and_service_the_library_works_and_they_are_listed(call, installed) -> None:
    installed()
    shown = call("--help")
    assert shown.status == 0 and "audit" in shown.out and "reproduce" in shown.out
    assert "psrl" in call("list", "agents").out
    assert call("list", "figures").status == 2
    missing = call("reproduce", "x")
    assert missing.status == 2 and missing.err.count("\n") == 1
    assert "there is no command 'reproduce' here" in missing.err and "pip install" in missing.err


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [
        ("serve", "fastapi", "service"),
        ("admin", "pydantic", "service"),
        ("report", "jinja2", "report"),
    ],
)
def test_a_command_without_its_extra_is_listed_and_says_what_to_install(
    call, monkeypatch, command: str, module: str, extra: str
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == module else found(name)
    )
    assert f"  {command} " in call("--help").out
    done = call(command, "x")
    assert done.status == 2 and done.err.count("\n") == 1
    assert module in done.err and f"pip install 'tacit[{extra}]'" in done.err


def test_what_is_left_of_a_removed_package_stops_nobody(call, installed) -> None:
    installed(EntryPoint("gone", "no_such_package:command", "tacit.commands"))
    shown = call("list", "problems")
    assert shown.status == 0 and "river-swim" in shown.out and not shown.err
    shown = call("--help")
    assert shown.status == 0 and "audit" in shown.out
    assert shown.err == "tacit: no command gone: No module named 'no_such_package'\n"
    used = call("gone")
    assert used.status == 2 and "no_such_package" in used.err and used.err.count("\n") == 1


def test_a_package_does_not_replace_a_command_of_ours(call, installed, monkeypatch) -> None:
    monkeypatch.setattr(main, "greet", greet, raising=False)
    installed(EntryPoint("run", "tacit.cli.main:greet", "tacit.commands"))
    assert "hello" not in call("run").out and "Other packages" not in call("--help").out


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_installed_is_what_the_project_declares(group: str) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    found = {point.name: point.value for point in entry_points(group=group)}
    declared = project["entry-points"][group]
    assert declared.items() <= found.items(), "install the package again: make test does"
