"""Studies of the clinic and the coach, in small."""

import json

import pytest
from typer.testing import CliRunner

from tacit.agents.catalogue import make_agent
from tacit.cli.main import app
from tacit.policies.tabular import TabularPolicy
from tacit_lab.cases.coach import habituation_bias, references
from tacit_lab.cases.coach_world import coach
from tacit_lab.cases.outcome import CaseOutcome, CaseSize, needed, online
from tacit_lab.cases.page import write_study


def test_people_needed_are_those_from_which_nine_of_ten_runs_win() -> None:
    won, lost = (2.0,) * 9 + (0.0,), (2.0,) * 8 + (0.0,) * 2
    outcomes = [
        CaseOutcome("a", 10, 1.0, won),
        CaseOutcome("a", 100, 1.0, lost),
        CaseOutcome("a", 1000, 1.0, won),
        CaseOutcome("a", 10_000, 1.0, won),
        CaseOutcome("a", 10, 2.0, won),
        CaseOutcome("b", 10, 1.0, lost),
    ]
    assert needed(outcomes, 1.0) == {("a", 1.0): 1000, ("a", 2.0): 10, ("b", 1.0): None}


def test_a_mean_is_surely_above_when_its_interval_is() -> None:
    near = CaseOutcome("a", 10, 1.0, (1.1, 1.2, 0.9))
    clear = CaseOutcome("a", 100, 1.0, (1.1, 1.2, 1.15))
    assert needed([near, clear], 1.0, "surely") == {("a", 1.0): 100}
    assert needed([near], 1.0, "surely") == {("a", 1.0): None}


def test_first_visits_that_leave_out_habituation_promise_too_much() -> None:
    bias = habituation_bias(people=20_000)["any"]
    assert bias.inside.low <= bias.truth <= bias.inside.high
    assert bias.outside.low > 1.3 * bias.truth


def chosen(**options: object) -> list[str]:
    """Options as they are typed."""
    return [word for name, value in options.items() for word in ("-O", f"{name}={value}")]


def run(*words) -> str:
    result = CliRunner().invoke(app, ["reproduce", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_coach_command_writes_numbers_and_a_page(tmp_path) -> None:
    few = chosen(people=300, epsilon=8, runs=2, returns=2, agents="tacit-joint,tacit-local")
    shown = run("coach", *few, "--out", str(tmp_path / "out"), "--json")
    found = json.loads(shown)
    kept = json.loads((tmp_path / "out" / "study.json").read_text())
    assert {name: kept[name] for name in kept if name not in ("notes", "tables")} == found
    assert {one["agent"] for one in found["outcomes"]} == {
        "tacit-joint (joint)",
        "tacit-local (local)",
    }
    assert found["references"]["not private, 300 people"] > found["references"]["no message"]
    (start,) = found["head_start"]
    assert start["users"] == 30 and start["regret_per_user"]["value"] > 0.0
    result = CliRunner().invoke(app, ["report", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "out" / "report.html").read_text()
    assert "when they come back" in page and "begins with a log" in page
    assert "best fixed message" in page and "promise too much" in page and "simulated" in page


def test_one_run_has_no_interval_in_words_and_null_in_json(tmp_path) -> None:
    few = ("coach", *chosen(people=300, epsilon=8, runs=1, agents="tacit-joint"))
    (found,) = json.loads(run(*few, "--json"), parse_constant=pytest.fail)["outcomes"]
    assert found["value"]["ci95"] == [None, None]
    out = tmp_path / "out"
    assert "one run, no interval" in run(*few, "--out", str(out))
    page = write_study(out).read_text()
    assert "0 of 1" in page or "1 of 1" in page


def test_agents_and_returns_are_checked() -> None:
    wrong = ["reproduce", "coach", *chosen(agents="tacit-jiont")]
    refused = CliRunner().invoke(app, wrong)
    assert "the coach has no 'tacit-jiont'" in str(refused.exception)
    refused = CliRunner().invoke(app, ["reproduce", "clinic", *chosen(returns=3)])
    assert "clinic has no option -O returns" in str(refused.exception)


def test_a_search_is_scored_by_the_table_that_its_policy_is() -> None:
    problem, one_run = coach(), CaseSize(people=(), epsilons=(), runs=1)
    found = online(problem, make_agent("tacit-search", epsilon=8.0, model="joint"), 10, one_run)
    assert isinstance(found.policy, TabularPolicy)
    assert found.values == (problem.value(found.policy),)


@pytest.mark.parametrize("model", ["joint", "local", "shuffle"])
def test_a_search_that_sees_what_the_app_sees_beats_every_fixed_message(model: str) -> None:
    agent = make_agent("tacit-search", epsilon=8.0, model=model)
    found = online(coach(), agent, 3000, CaseSize(people=(), epsilons=(), runs=2))
    assert found.beats(references(coach())["best fixed message"]) == 2


def test_the_clinic_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr("tacit.errors._installed", lambda module: module != "icu_sepsis")
    refused = CliRunner().invoke(app, ["reproduce", "clinic", *chosen(people=300)])
    assert "pip install 'tacit[sepsis]'" in str(refused.exception)


def test_the_clinic_command_needs_few_patients_to_run(tmp_path) -> None:
    pytest.importorskip("icu_sepsis")
    shown = run("clinic", *chosen(people=3000, epsilon=4, runs=2), "--json")
    found = json.loads(shown)
    assert found["references"] == pytest.approx(
        {"uniform": 0.685, "clinicians": 0.692, "best": 0.792}, abs=1e-3
    )
    assert [one["epsilon"] for one in found["outcomes"]] == [4.0, 1000.0, 4.0]
    for one in found["outcomes"]:
        assert 0.6 < one["value"]["mean"] < found["references"]["best"]
