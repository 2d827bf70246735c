import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from logs.worlds import chain, mapping, uniform
from tacit.agents.offline import TacitOffline
from tacit.logs.files import save
from tacit.logs.offline import offline
from tacit.logs.simulated import simulate_log
from tacit_lab.report.log_page import render_page
from tacit_lab.sweep.pool import Done
from tacit_lab.sweep.run import run
from tacit_lab.sweep.spec import parse
from tacit_lab.sweep.task import SweepTask, run_task

SPEC = """
episodes = [50, 100]
seeds = 3
problems = "random-mdp"
agents = ["uniform", "psrl"]
"""


def here(tasks: Iterable[SweepTask]) -> Iterator[Done]:
    for task in tasks:
        yield Done(task, run_task(task.payload()), 1)


def test_a_sweep_becomes_one_page(call, tmp_path: Path) -> None:
    run(parse(SPEC, Path("study.toml")), tmp_path / "swept", here)
    done = call("report", "swept", "--out", "page.html", "--json")
    assert done.status == 0 and done.err == ""
    assert json.loads(done.out)["file"] == "page.html"
    text = (tmp_path / "page.html").read_text()
    assert "study: regret and privacy" in text and "NO PRIVACY" in text
    assert "The sweep&#39;s file" in text or "The sweep's file" in text
    assert call("report", "swept").out == "wrote swept/report.html\n"


def test_other_folders_are_refused_in_one_line(call) -> None:
    done = call("report", "nowhere")
    assert done.status == 2 and done.out == "" and done.err.count("\n") == 1


def test_the_page_of_a_log_is_made_of_its_folder(call, tmp_path) -> None:
    problem = chain(4, 5)
    log = simulate_log(problem, uniform(problem), 300, np.random.default_rng(0))
    made = offline(log, mapping(problem), TacitOffline(1.0), noise="simulated")
    save(made, tmp_path / "result")
    assert call("report", "result").out == "wrote result/page.html\n"
    assert (tmp_path / "result" / "page.html").read_text() == render_page(made)
    assert call("report", "result", "--out", "deep/other.html").status == 0
    assert (tmp_path / "deep" / "other.html").exists()
