"""``tacit plan``: a problem, a deployment file, or sizes only."""

import json
from pathlib import Path

import pytest

from tacit_service.config.deployment import Deployment

QUICK = ("--runs", "2", "--most", "100", "--seconds", "600")


def test_a_problem_and_an_agent(call) -> None:
    words = ("random-mdp", "psrl", "-P", "seed=1", *QUICK, "--users", "100")
    done = call("plan", *words, "--plot", "plan.png")
    assert done.status == 2 and "nothing to plot" in done.err
    done = call("plan", *words)
    assert done.status == 0 and "psrl: users until 50% of the gap is closed" in done.out
    assert "To close 50% of the gap with 100 users: psrl is" in done.out
    assert max(map(len, done.out.split("\n"))) <= 80
    report = json.loads(call("plan", *words, "--json").out)
    assert report["users"] == 100 and report["runs"] == 2 and report["smallest_epsilon"] is None
    (answer,) = report["answers"]
    assert [size["users"] for size in answer["measured"]] == [100]
    assert len(answer["measured"][0]["per_run"]) == 2


def test_a_file_without_a_problem_is_planned_on_random_ones(call, tmp_path: Path) -> None:
    text = Deployment.example().partition("[fleet]")[0]
    text = text.replace("states = 6 ", "states = 3 ").replace("horizon = 12 ", "horizon = 2 ")
    Path("coach.toml").write_text(text.replace("users = 20000 ", "users = 50 "))
    report = json.loads(call("plan", "coach.toml", *QUICK, "--epsilon", "0.1,4", "--json").out)
    assert report["simulated"] == "2 random problems of 3 states, 2 actions, 2 steps, one run each"
    assert report["agent"] == "tacit-local" and report["users"] == 50
    assert [answer["epsilon"] for answer in report["answers"]] == [4.0, 0.1]
    sizes = [size["users"] for size in report["answers"][1]["measured"]]
    assert sizes and sizes == [50, 100][: len(sizes)]  # it ends where the share is closed
    often = ("--participations", "3", "--epsilon", "4")
    assert "a task says itself" in call("plan", "coach.toml", *QUICK, *often).err
    Path("any.toml").write_text(
        Path("coach.toml").read_text().replace("participations = 1 ", 'participations = "any" ')
    )
    assert "--participations 5" in call("plan", "any.toml", *QUICK).err
    report = json.loads(call("plan", "any.toml", *QUICK, *often, "--json").out)
    assert "everybody comes 3 times" in report["simulated"]
    Path("any.toml").unlink()
    other = json.loads(call("plan", "coach.toml", "optimal", *QUICK, "--json").out)
    assert other["agent"] == "optimal" and other["answers"][0]["enough"] == 50
    assert [path.name for path in tmp_path.iterdir()] == ["coach.toml"]


def test_a_file_with_a_problem_is_planned_on_it(call) -> None:
    Path("coach.toml").write_text(Deployment.example())
    report = json.loads(call("plan", "coach.toml", "uniform", *QUICK, "--json").out)
    assert report["simulated"] == "river-swim, 2 runs"
    assert report["answers"][0]["never"] == "uniform does not learn"


def test_sizes_only_and_a_plot(call) -> None:
    sizes = ("--states", "2", "--actions", "2", "--horizon", "2")
    done = call("plan", "tacit-joint", *sizes, *QUICK, "--epsilon", "1", "--plot", "plan.svg")
    assert done.status == 0 and "2 random problems of 2 states" in " ".join(done.out.split())
    assert "wrote plan.svg" in done.out and Path("plan.svg").stat().st_size > 1000


def test_people_who_come_back(call) -> None:
    words = ("plan", "random-mdp", "tacit-local", "--epsilon", "4", "--participations", "5", *QUICK)
    done = call(*words)
    assert done.status == 0 and "tacit-local: people until 50% of the gap" in done.out
    assert "Ways to count 100 people who come 5 times each, epsilon 4 per person:" in done.out
    report = json.loads(call(*words, "--json").out)["ways"]
    assert [way["teaches"] for way in report["ways"]] == ["first", "every"]
    every = call(*words, "--teaches", "every").out
    assert every.index("every  ") < every.index("first  ")
    sizes = ("--states", "2", "--actions", "2", "--horizon", "2", "--participations", "3")
    found = json.loads(call("plan", "tacit-joint", *sizes, *QUICK, "--epsilon", "1", "--json").out)
    assert found["ways"]["times"] == 3 and found["ways"]["ways"][0]["teaches"] == "lifetime"


MISTAKES = (
    ("plan river-swim tacit-joint --participations any", "any number of times will not do"),
    ("plan river-swim psrl --participations x", "'x', but it must be a whole number, or any"),
    ("plan river-swim", "needs an agent"),
    ("plan nothing.toml", "there is no file nothing.toml"),
    ("plan river-swim psrl --states 3", "sizes go without a problem"),
    ("plan psrl --states 3", "sizes need --actions, --horizon too"),
    ("plan river-swim psrl --epsilon 1", "psrl takes no epsilon"),
    ("plan river-swim tacit-joint --epsilon 1,x", "'x', but it must be a number"),
    ("plan river-swim tacit-joint --share 2", "share = 2,"),
    ("plan tacit-joint river-swim", "river-swim"),
    ("plan river-swim tacit-control", "tacit-control"),
)


@pytest.mark.parametrize(("line", "words"), MISTAKES)
def test_mistakes_are_sentences(call, line: str, words: str) -> None:
    done = call(*line.split())
    assert done.status == 2 and words in done.err and done.err.count("\n") == 1
