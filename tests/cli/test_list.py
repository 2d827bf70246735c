"""``tacit list``, and whether what it says of the agents is true."""

import json
import subprocess
import sys

import pytest

import tacit
from tacit.agents.catalogue import FROM_A_LOG, from_people
from tacit.cli.list import entries, type_words
from tacit.errors import InvalidInput
from tacit.problems.classic_control import cart_pole

FITTING = {"tabular": "random-mdp", "linear": "synthetic-linear", "control": "lq-scalar"}
FITTING["episodic"] = cart_pole()


def test_agents_say_what_they_learn_what_they_promise_and_what_they_take(call) -> None:
    done = call("list", "agents")
    assert done.status == 0 and max(map(len, done.out.splitlines())) <= 80
    for line in (
        "    tabular, mixture problems; joint or local privacy; must be told: nothing",
        "    control problems; joint privacy; must be told: start",
        "    tabular problems; collects nothing; must be told: reward, transitions",
        "    bonus_scale: number, default 1.0",
        "    first: whole number | none, default none",
    ):
        assert line in done.out.splitlines()


def test_problems_as_json(call) -> None:
    rows = json.loads(call("list", "problems", "--json").out)["problems"]
    names = [row["name"] for row in rows]
    assert names[:3] == ["random-mdp", "river-swim", "hard-tree"] and names[-1] == "gym:ID"
    kernel = rows[1]["parameters"][2]
    assert kernel["name"] == "kernel" and kernel["type"] == "classic | vtr"


def test_laws_of_attendance_have_a_line_each(call) -> None:
    done = call("list", "attendance")
    assert done.status == 0 and "rounds  Everybody once a day" in done.out
    names = [
        row["name"] for row in json.loads(call("list", "attendance", "--json").out)["attendance"]
    ]
    assert names == ["rounds", "anytime", "bursts", "few-often"]


def test_without_a_word_it_lists_every_name(call) -> None:
    done = call("list")
    named = {line.split()[0] for line in done.out.splitlines() if line.startswith("  ")}
    own = {entry.name for what in ("agents", "problems") for entry in entries(what)}
    assert done.status == 0 and own <= named and max(map(len, done.out.splitlines())) <= 80
    assert set(json.loads(call("list", "--json").out)) == {"agents", "problems"}


def test_agents_that_learn_from_a_log_stand_apart(call) -> None:
    lines = call("list", "agents").out.splitlines()
    where = lines.index("agents that learn from a log")
    named = [line.split()[0] for line in lines[where:] if line[:1] not in ("", " ")][1:]
    found = {
        row["name"]: row["source"]
        for row in json.loads(call("list", "agents", "--json").out)["agents"]
    }
    assert named[: len(FROM_A_LOG)] == list(FROM_A_LOG)
    assert {name for name, source in found.items() if source == "log"} == set(FROM_A_LOG)


def test_types_are_written_as_people_write_them() -> None:
    assert type_words(int | None) == "whole number | none"
    assert type_words(bool) == "true | false" and type_words(str) == "text"


@pytest.mark.parametrize("entry", from_people(), ids=lambda entry: entry.name)
def test_families_and_models_are_true(entry) -> None:
    agent = entry.factory(**({"epsilon": 1.0} if "epsilon" in entry.parameters else {}))
    mixture = "linear-bandit" if entry.name == "ldp-bandit" else "remap-walk"
    for family in agent.families:
        problem = mixture if family == "mixture" else FITTING[family]
        said = tacit.guarantee(problem, agent, episodes=10)
        assert said.model in agent.models or (not agent.models and said.epsilon == 0)
    if "control" not in agent.families:
        with pytest.raises(InvalidInput, match="problem is lq|has no fact 'reward'"):
            tacit.guarantee("lq-scalar", agent, episodes=10)


def test_python_can_run_the_package() -> None:
    words = [sys.executable, "-m", "tacit", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"tacit {tacit.__version__}\n"
