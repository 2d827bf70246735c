"""Problems and agents that other packages add by entry points."""

import json
import sys
from pathlib import Path

import pytest

import tacit
from client.collector import FakeCollector
from tacit.agents.catalogue import agents
from tacit.client import Declined
from tacit.client.terms import read_terms
from tacit.errors import InvalidInput, UnknownName
from tacit.problems.catalogue import problems
from tacit.util.registry import Registry

CODE = '''
from dataclasses import dataclass
from tacit.agents.psrl import PSRL
from tacit.agents.tacit_local import TacitLocal
from tacit.problems.tabular_benchmarks import river_swim

@dataclass(frozen=True)
class Mine(PSRL):
    """Posterior sampling, from elsewhere.

    More about it.
    """

    name = "mine"

def lake(states: int = 4):
    """A short river."""
    return river_swim(states=states, horizon=5)

def fails(x: int = 1):
    raise RuntimeError("out of order")
'''
POINTS = """
[tacit.agents]
mine = tacit_fake_plugin:Mine
psrl = tacit_fake_plugin:Mine
gone = tacit_fake_plugin:Gone
absent = tacit_fake_absent:Agent
local-elsewhere = tacit_fake_plugin:TacitLocal

[tacit.problems]
lake = tacit_fake_plugin:lake
fails = tacit_fake_plugin:fails
"""


def install(folder: Path, name: str, points: str) -> None:
    """Lay out a distribution as an installer does."""
    info = folder / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def plugin(monkeypatch, tmp_path: Path):
    """A package with good and broken entry points, for one test."""
    folder = tmp_path / "site"
    install(folder, "fake-plugin", POINTS)
    (folder / "tacit_fake_plugin.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(folder))
    forget()
    yield folder
    forget()
    sys.modules.pop("tacit_fake_plugin", None)


def forget() -> None:
    for registry in (agents, problems):
        registry.__dict__.pop("installed", None)


def test_they_are_made_by_name_and_imported_when_used(plugin) -> None:
    assert [one.name for one in agents.installed if one.name == "mine"] == ["mine"]
    assert "tacit_fake_plugin" not in sys.modules
    agent, problem = tacit.agent("mine", alpha0=0.5), tacit.problem("lake", states=3)
    assert agent.alpha0 == 0.5 and problem.states == 3
    result = tacit.simulate(problem, agent, 20, 1)
    assert result.completed == 20
    with pytest.raises(InvalidInput, match="mine has no parameter 'alpha'; did you mean 'alpha0'"):
        tacit.agent("mine", alpha=1)
    with pytest.raises(UnknownName, match="unknown agent 'minne'; did you mean 'mine'"):
        tacit.agent("minne")


def test_ours_are_never_replaced(plugin) -> None:
    assert agents.entry("psrl").package == ""
    assert type(tacit.agent("psrl")).__module__ == "tacit.agents.psrl"
    assert all(not entry.package for entry in agents)


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (tacit.agent, "gone", "gone of the package fake-plugin 1.2 cannot be loaded .Attribute"),
        (tacit.agent, "absent", "cannot be loaded .ModuleNotFoundError: No module named"),
        (tacit.problem, "fails", "could not be made .RuntimeError: out of order.; mend"),
    ],
)
def test_a_broken_one_is_a_sentence_that_names_the_package(plugin, make, name, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        make(name)


def test_the_command_lists_them_with_their_package(plugin, monkeypatch, capsys) -> None:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tacit", *words])
        from tacit.cli.main import main

        with pytest.raises(SystemExit) as leave:
            main()
        return leave.value.code, *capsys.readouterr()

    status, out, err = call("list", "agents")
    assert status == 0 and err == ""
    lines = out.splitlines()
    place = lines.index(
        "mine  Posterior sampling, from elsewhere. (from the package fake-plugin 1.2)"
    )
    assert lines[place + 2].startswith("    alpha0: number, default")
    assert "psrl  not used: the name is tacit's (from the package fake-plugin 1.2)" in lines
    assert any(line.startswith("absent  not usable: absent of the package") for line in lines)
    rows = {
        row["name"]: row for row in json.loads(call("list", "problems", "--json")[1])["problems"]
    }
    assert rows["lake"]["package"] == "fake-plugin 1.2" and rows["river-swim"]["package"] == "tacit"
    assert rows["lake"]["summary"] == "A short river."
    status, out, err = call("run", "lake", "mine", "--episodes", "20", "--seeds", "1")
    assert status == 0 and "mine on" in out
    status, out, err = call("run", "lake", "gone")
    assert status == 2 and out == "" and err.count("\n") == 1 and "fake-plugin 1.2" in err


def test_two_packages_with_one_name_are_told_apart(plugin, tmp_path: Path) -> None:
    install(tmp_path / "site", "another", "[tacit.agents]\nmine = somewhere:Else\n")
    forget()
    assert [one.package for one in agents.installed if one.name == "mine"] == [
        "another 1.2",
        "fake-plugin 1.2",
    ]
    assert agents.entry("mine").package == "another 1.2"


def test_a_device_runs_only_our_own_agents(plugin) -> None:
    description = FakeCollector(epsilon=1.0).api().task()
    read_terms(description)
    from tacit.wire import documents

    named = {**description, "agent": {**description["agent"], "name": "local-elsewhere"}}
    named["task_id"] = documents.task_id(named)
    with pytest.raises(Declined, match="not one of tacit's own"):
        read_terms(named)
    assert "tacit_fake_plugin" not in sys.modules


def test_a_name_is_taken_once() -> None:
    registry: Registry[object] = Registry("thing")
    registry.add("one", object, "a thing")
    with pytest.raises(InvalidInput, match="'one' is taken"):
        registry.add("one", object, "another")
