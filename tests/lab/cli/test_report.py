import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tacit_lab.sweep.pool import Done
from tacit_lab.sweep.run import run
from tacit_lab.sweep.spec import parse
from tacit_lab.sweep.task import SweepTask, perform

SPEC = """
episodes = [50, 100]
seeds = 3
problems = "random-mdp"
agents = ["uniform", "psrl"]
"""


def here(tasks: Iterable[SweepTask]) -> Iterator[Done]:
    for task in tasks:
        yield Done(task, perform(task.order()), 1)


def test_a_sweep_becomes_one_page(call, tmp_path: Path) -> None:
    run(parse(SPEC, Path("study.toml")), tmp_path / "swept", here, workers=1)
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
