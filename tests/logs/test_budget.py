"""The ledger of a data set: charged before noise, refused beyond the budget."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from logs.worlds import chain, mapping, uniform, write_log
from tacit.agents.offline import TacitOffline
from tacit.cli.main import app
from tacit.errors import BudgetExceeded, InvalidInput
from tacit.logs.mapping import LogMapping
from tacit.logs.offline import evaluate, offline
from tacit.logs.simulated import simulate_log
from tacit.privacy.ledger import Ledger, verify


@pytest.fixture(scope="module")
def log():
    problem = chain(4, 5)
    return simulate_log(problem, uniform(problem), 200, np.random.default_rng(0))


@pytest.fixture(scope="module")
def mapped() -> LogMapping:
    return mapping(chain(4, 5))  # a budget of epsilon 4


def spent(path) -> float:
    return float(verify(path).summary["spent"]["mu_squared"])


def test_every_release_is_charged_what_its_noise_costs(tmp_path, log, mapped) -> None:
    path = tmp_path / "made_up.ledger"
    first = offline(log, mapped, TacitOffline(1.0), ledger=path)
    assert spent(path) == pytest.approx(first.guarantee.mu**2, rel=1e-6)
    second = evaluate(log, first.policy, mapped, epsilon=0.5, ledger=path)
    assert spent(path) == pytest.approx(first.guarantee.mu**2 + second.guarantee.mu**2, rel=1e-6)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["node"] for line in lines if line["kind"] == "commit"] == [
        "1 tacit-offline",
        "2 evaluation",
    ]
    before = path.read_bytes()
    first.value_of(first.policy)
    offline(log, mapped, TacitOffline(9.0), noise="simulated")
    assert path.read_bytes() == before, "post-processing and simulation cost nothing"


def test_a_release_beyond_the_budget_is_refused_and_a_cheaper_one_is_not(
    tmp_path, log, mapped
) -> None:
    path = tmp_path / "made_up.ledger"
    with pytest.raises(BudgetExceeded, match="beyond its budget"):
        offline(log, mapped, TacitOffline(5.0), ledger=path)
    assert not path.exists()
    offline(log, mapped, TacitOffline(3.0), ledger=path)
    before = path.read_bytes()
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        offline(log, mapped, TacitOffline(3.0), ledger=path)
    assert path.read_bytes() == before
    offline(log, mapped, TacitOffline(0.5), ledger=path)
    assert path.read_bytes() != before


def test_a_mapping_that_is_no_file_needs_a_ledger(tmp_path, monkeypatch, log, mapped) -> None:
    monkeypatch.chdir(tmp_path)
    policy = offline(log, mapped, TacitOffline(1.0), noise="simulated").policy
    with pytest.raises(InvalidInput, match="say ledger=FILE"):
        offline(log, mapped, TacitOffline(1.0))
    with pytest.raises(InvalidInput, match="say ledger=FILE"):
        evaluate(log, policy, mapped, epsilon=1.0)
    assert not list(tmp_path.iterdir())


def test_a_log_that_cannot_be_read_costs_nothing(tmp_path, mapped) -> None:
    path = tmp_path / "made_up.ledger"
    with pytest.raises(InvalidInput, match="no log"):
        offline(tmp_path / "none.csv", mapped, TacitOffline(1.0), ledger=path)
    assert not path.exists()


TASK = """
data.name = "made up"
columns = {person = "person", step = "step", reward = "reward"}
state = [{column = "state", size = 4}]
action = {column = "action", size = 2}
task.horizon = 5
"""


@pytest.mark.parametrize(
    ("column", "text", "said"),
    [
        ("step", "monday", "are no whole number"),
        ("reward", "yes", "are no number"),
        ("step", "99", "no row counts"),
        ("person", "", "rows that have no person"),
    ],
)
def test_a_column_without_a_readable_value_is_charged_and_told(
    tmp_path, log, mapped, column: str, text: str, said: str
) -> None:
    """Whether it is refused would follow from one person, in a log where nobody else is."""
    file, path = tmp_path / "log.csv", tmp_path / "made_up.ledger"
    write_log(log, file)
    with file.open(newline="") as lines:
        rows = [{**row, column: text} for row in csv.DictReader(lines)]
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    found = offline(file, mapped, TacitOffline(1.0), ledger=path)
    assert spent(path) == pytest.approx(found.guarantee.mu**2, rel=1e-6)
    assert said in "\n".join(found.exact_counts.lines(mapped))


def test_a_folder_that_is_taken_is_told_before_the_charge(tmp_path, log) -> None:
    task, out = tmp_path / "task.toml", tmp_path / "out"
    task.write_text(TASK)
    words = ["offline", write_log(log, tmp_path / "log.csv"), "--task", task, "--out", out]
    words = [str(word) for word in (*words, "--epsilon", 0.1)]
    assert CliRunner().invoke(app, words).exit_code == 0
    before = (tmp_path / "made_up.ledger").read_bytes()
    with pytest.raises(InvalidInput, match="holds a result already"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert (tmp_path / "made_up.ledger").read_bytes() == before


def test_noise_is_drawn_after_the_charge(tmp_path, log, mapped, monkeypatch) -> None:
    from tacit.logs import offline as run

    path = tmp_path / "made_up.ledger"

    class Breaks(run.SecureNoise):
        def fill(self, law, out) -> None:
            assert spent(path) > 0
            raise RuntimeError("the power went")

    monkeypatch.setattr(run, "SecureNoise", Breaks)
    with pytest.raises(RuntimeError, match="power"):
        offline(log, mapped, TacitOffline(1.0), ledger=path)
    assert spent(path) > 0


def test_ledgers_of_other_data_or_with_another_budget_are_refused(tmp_path, log, mapped) -> None:
    import dataclasses

    path = tmp_path / "made_up.ledger"
    offline(log, mapped, TacitOffline(0.5), ledger=path)
    other = dataclasses.replace(mapped, name="other data")
    with pytest.raises(InvalidInput, match="another task"):
        offline(log, other, TacitOffline(0.5), ledger=path)
    richer = dataclasses.replace(mapped, budget=(40.0, 1e-5))
    with pytest.raises(InvalidInput, match="cannot be changed"):
        offline(log, richer, TacitOffline(0.5), ledger=path)
    Ledger.open(path).close()


def test_evaluation_by_weights_needs_propensities(log, mapped) -> None:
    import dataclasses

    columns = {role: name for role, name in mapped.columns.items() if role != "propensity"}
    bare = dataclasses.replace(mapped, columns=columns)
    with pytest.raises(InvalidInput, match="propensity"):
        evaluate(log, uniform(chain(4, 5)), bare, epsilon=1.0, noise="simulated")
