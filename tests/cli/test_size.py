"""``tacit size``: a problem, a deployment file, or sizes only."""

import json
from pathlib import Path

import pytest

from tacit_service.config.deployment import Deployment

QUICK = ("--runs", "2", "--most", "100", "--seconds", "600")


def test_a_problem_and_an_agent(call) -> None:
    words = ("random-mdp", "psrl", "-P", "seed=1", *QUICK, "--people", "100")
    done = call("size", *words, "--plot", "size.png")
    assert done.status == 2 and "nothing to plot" in done.err
    done = call("size", *words)
    assert done.status == 0 and "psrl: users until 50% of the gap is closed" in done.out
    assert "To close 50% of the gap with 100 users: psrl is" in done.out
    assert max(map(len, done.out.split("\n"))) <= 80
    report = json.loads(call("size", *words, "--json").out)
    assert report["users"] == 100 and report["runs"] == 2 and report["smallest_epsilon"] is None
    (answer,) = report["answers"]
    assert [size["users"] for size in answer["measured"]] == [100]
    assert len(answer["measured"][0]["per_run"]) == 2


def test_a_file_without_a_problem_is_planned_on_random_ones(call, tmp_path: Path) -> None:
    text = Deployment.example().partition("[fleet]")[0]
    text = text.replace("states = 6 ", "states = 3 ").replace("horizon = 12 ", "horizon = 2 ")
    Path("coach.toml").write_text(text.replace("users = 20000 ", "users = 50 "))
    report = json.loads(call("size", "coach.toml", *QUICK, "--epsilon", "0.1,4", "--json").out)
    assert report["simulated"] == "2 random problems of 3 states, 2 actions, 2 steps, one run each"
    assert report["agent"] == "tacit-local" and report["users"] == 50
    assert [answer["epsilon"] for answer in report["answers"]] == [4.0, 0.1]
    sizes = [size["users"] for size in report["answers"][1]["measured"]]
    assert sizes and sizes == [50, 100][: len(sizes)]  # it ends where the share is closed
    often = ("-R", "participations=3", "--epsilon", "4")
    assert "a task says itself" in call("size", "coach.toml", *QUICK, *often).err
    Path("any.toml").write_text(
        Path("coach.toml").read_text().replace("participations = 1 ", 'participations = "any" ')
    )
    assert "-R participations=5" in call("size", "any.toml", *QUICK).err
    report = json.loads(call("size", "any.toml", *QUICK, *often, "--json").out)
    assert "everybody comes 3 times" in report["simulated"]
    Path("any.toml").unlink()
    other = json.loads(call("size", "coach.toml", "optimal", *QUICK, "--json").out)
    assert other["agent"] == "optimal" and other["answers"][0]["enough"] == 50
    assert [path.name for path in tmp_path.iterdir()] == ["coach.toml"]


def test_a_file_with_a_problem_is_planned_on_it(call) -> None:
    Path("coach.toml").write_text(Deployment.example())
    report = json.loads(call("size", "coach.toml", "uniform", *QUICK, "--json").out)
    assert report["simulated"] == "river-swim, 2 runs"
    assert report["answers"][0]["never"] == "uniform does not learn"


def test_sizes_only_and_a_plot(call) -> None:
    done = call("size", "2x2x2", "tacit-joint", *QUICK, "--epsilon", "1", "--plot", "size.svg")
    assert done.status == 0 and "2 random problems of 2 states" in " ".join(done.out.split())
    assert "wrote size.svg" in done.out and Path("size.svg").stat().st_size > 1000


def test_people_who_come_back(call) -> None:
    words = (
        "size",
        "random-mdp",
        "tacit-local",
        "--epsilon",
        "4",
        "-R",
        "participations=5",
        *QUICK,
    )
    done = call(*words)
    assert done.status == 0 and "tacit-local: people until 50% of the gap" in done.out
    report = json.loads(call(*words, "--json").out)
    assert report["simulated"].endswith("everybody comes 5 times")
    sizes = ("2x2x2", "tacit-joint", "-R", "participations=3")
    found = json.loads(call("size", *sizes, *QUICK, "--epsilon", "1", "--json").out)
    assert found["simulated"].endswith("everybody comes 3 times")


MISTAKES = (
    ("size river-swim tacit-joint -R participations=any", "any number of times will not do"),
    ("size river-swim psrl -R participations=x", "'x', but it must be a whole number, or any"),
    ("size river-swim", "needs an agent"),
    ("size nothing.toml", "there is no file nothing.toml"),
    ("size 3x2 psrl", "unknown problem '3x2'"),
    ("size 3x2x4", "needs an agent"),
    ("size 3x2x4 psrl -P states=3", "sizes say all of the problem"),
    ("size river-swim psrl --epsilon 1", "psrl takes no epsilon"),
    ("size river-swim tacit-joint --epsilon 1,x", "'x', but it must be a number"),
    ("size river-swim tacit-joint --share 2", "share = 2,"),
    ("size tacit-joint river-swim", "the problem comes first and the agent second"),
    ("size river-swim tacit-control", "tacit-control"),
)


@pytest.mark.parametrize(("line", "words"), MISTAKES)
def test_mistakes_are_sentences(call, line: str, words: str) -> None:
    done = call(*line.split())
    assert done.status == 2 and words in done.err and done.err.count("\n") == 1
