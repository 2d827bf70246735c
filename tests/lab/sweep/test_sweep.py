"""A sweep from file to tables, in this process's children."""

import hashlib
import json
import os
import signal
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

import tacit
from tacit.errors import InvalidInput
from tacit_lab.sweep import load
from tacit_lab.sweep.pool import Done, run_on_processes
from tacit_lab.sweep.run import SweepProgress, run
from tacit_lab.sweep.spec import parse
from tacit_lab.sweep.task import SweepTask, run_task

SPEC = """
episodes = [60, 120]
seeds = 2
epsilon = [1, 4]
delta = 1e-5
problems = [{name = "random-mdp", seed = [1, 2]}]
agents = ["psrl", "ldp-obi", "ucb-vi"]

[choose]
parameter = "bonus_scale"
candidates = [0.01, 1]
seeds = 2
"""
SAME = ("curves.parquet", "curves.csv", "runs.parquet", "manifest.json")


def here(tasks: Iterable[SweepTask]) -> Iterator[Done]:
    """A backend without processes."""
    for task in tasks:
        yield Done(task, run_task(task.payload()), 1)


def digests(folder: Path) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in SAME}


def spec(text: str = SPEC):
    return parse(text, Path("study.toml"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    run(spec(), folder, here)
    return folder


def test_every_run_is_what_tacit_run_gives(whole: Path) -> None:
    sweep = load(whole)
    # problems 2 x episodes 2 x (psrl, ldp-obi at two epsilons, ucb-vi)
    assert len(sweep.configurations) == 16 and len(sweep.runs) == 32
    ldp = sweep.curves.query("agent == 'ldp-obi' and epsilon == 4 and episodes == 120")
    ldp = ldp.query("problem_seed == 2 and seed == 1")
    alone = tacit.simulate(
        tacit.problem("random-mdp", seed=2), tacit.agent("ldp-obi", epsilon=4.0), 120, seed=1
    )
    assert ldp["regret"].tolist() == alone.regret[0].tolist()
    assert ldp["reward"].tolist() == alone.reward[0].tolist()
    assert ldp["episode"].tolist() == alone.episodes.tolist()
    number = int(ldp["configuration"].iloc[0])
    described = sweep.configurations[number]
    assert described["guarantee"] == alone.guarantee.to_json()
    true = 4.0 * 10 / 12  # noise of scale 6H / epsilon, where 6H - 2 is enough
    assert set(ldp["model"]) == {"local"}
    assert ldp["true_epsilon"].unique().tolist() == pytest.approx([true])


def test_agents_that_are_not_private_run_once(whole: Path) -> None:
    runs = load(whole).runs
    assert runs.query("agent == 'psrl'")["epsilon"].isna().all()
    assert len(runs.query("agent == 'psrl'")) == 2 * 2 * 2
    assert len(runs.query("agent == 'ldp-obi'")) == 2 * 2 * 2 * 2


def test_the_bonus_is_chosen_on_other_seeds_and_said_to_deviate(whole: Path) -> None:
    sweep = load(whole)
    for described in sweep.configurations:
        chosen = described["chosen"]
        assert (chosen is None) == (described["agent"]["name"] != "ucb-vi")
        if chosen:
            assert not set(chosen["seeds"]) & set(sweep.manifest["seeds"])
            best = min(chosen["candidates"], key=lambda candidate: candidate["mean"])
            assert chosen["value"] == best["value"] == described["given"]["agent"]["bonus_scale"]
            assert "deviates from the theory" in chosen["deviation"]
            agent = tacit.agent("ucb-vi", bonus_scale=best["value"])
            parameters = described["given"]["problem"]
            problem = tacit.problem("random-mdp", **parameters)
            again = tacit.simulate(problem, agent, described["episodes"], seed=chosen["seeds"][1])
            assert best["per_seed"][1] == again.regret[0, -1]


def test_three_readers_agree(whole: Path) -> None:
    import duckdb
    import pandas as pd
    import polars as pl

    file = whole / "curves.parquet"
    frame = pd.read_parquet(file)
    assert len(frame) == len(pd.read_csv(whole / "curves.csv"))
    assert pd.read_csv(whole / "curves.csv")["regret"].tolist() == frame["regret"].tolist()
    total = frame.groupby("agent")["regret"].sum().to_dict()
    question = f"select agent, sum(regret) from '{file}' group by agent"
    assert dict(duckdb.sql(question).fetchall()) == pytest.approx(total)
    polars = pl.read_parquet(file).group_by("agent").agg(pl.col("regret").sum())
    assert dict(polars.iter_rows()) == pytest.approx(total)


class Killed(BaseException):
    pass


def test_a_sweep_that_stops_anywhere_goes_on_to_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    def dies(after: int, tasks: Iterable[SweepTask]) -> Iterator[Done]:
        for count, done in enumerate(here(tasks)):
            if count == after:
                raise Killed
            yield done

    steps: list[int] = []

    def watch(now: SweepProgress) -> None:
        steps.append(now.done)
        assert now.total == 32 + 4 * 2 * 2

    folder = tmp_path / "resumed"
    for after in (3, 0, 7, 20):
        with pytest.raises(Killed):
            run(spec(), folder, partial(dies, after), resume=True, watch=watch)
    with pytest.raises(InvalidInput, match="unfinished sweep: --resume"):
        run(spec(), folder, here)
    done = run(spec(), folder, here, resume=True, watch=watch)
    assert done.progress.kept == 30 and done.progress.ran == 18 and steps[-1] == 48
    assert digests(folder) == digests(whole)
    again = run(spec(), folder, here, resume=True)
    assert again.progress.ran == 0 and digests(folder) == digests(whole)


def test_processes_give_the_same_and_one_that_dies_costs_nothing(
    whole: Path, tmp_path: Path
) -> None:
    victims = []

    def with_an_accident(tasks: Iterable[SweepTask]) -> Iterator[Done]:
        import multiprocessing as mp

        for done in run_on_processes(tasks, 2):
            if not victims and mp.active_children():
                victims.append(mp.active_children()[0].pid)
                os.kill(victims[0], signal.SIGKILL)
            yield done

    done = run(spec(), tmp_path / "pool", with_an_accident)
    assert victims and not done.progress.failures
    assert digests(tmp_path / "pool") == digests(whole)


FAILING = """
episodes = 50
seeds = 2
problems = ["random-mdp", "lq-scalar"]
agents = ["psrl"]
"""


def test_failures_are_reported_and_do_not_stop_the_others(tmp_path: Path) -> None:
    done = run(spec(FAILING), tmp_path, here)
    found = done.progress
    assert found.ran == 2 and len(found.failures) == 2
    assert {failure["seed"] for failure in found.failures} == {0, 1}
    assert "psrl learns tabular problems" in found.failures[0]["error"]
    described = done.sweep.configurations[1]
    assert described["unfinished_seeds"] == [0, 1] and described["guarantee"] is None
    assert len(done.sweep.runs) == 2
    assert json.loads((tmp_path / "manifest.json").read_text())["failures"]
