"""``tacit sweep`` as a person types it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from patience import PATIENCE
from tacit_lab.sweep import pool
from tacit_lab.sweep.pool import Done

TEXT = """
episodes = 5e4
seeds = 4
epsilon = [1, 2]
problems = "random-mdp"
agents = ["psrl", "ldp-obi"]
"""


def test_from_init_to_tables(call, tmp_path: Path) -> None:
    done = call("sweep", "study.toml", "--init")
    assert done.status == 0 and "tacit sweep study.toml" in done.out
    again = call("sweep", "study.toml", "--init")
    assert again.status == 2 and "left alone" in again.err
    Path("small.toml").write_text('episodes = 30\nproblems = "random-mdp"\nagents = "psrl"\n')
    done = call("sweep", "small.toml", "--workers", "1")
    assert done.status == 0 and done.err == ""
    for words in ("random-mdp, 30 episodes", "not private", "4 tasks ran", "curves.parquet"):
        assert words in done.out
    report = json.loads(call("sweep", "small.toml", "--resume", "--json").out)
    assert report["tasks"] == {"total": 4, "kept": 4, "ran": 0, "failed": 0}
    low, high = report["configurations"][0]["regret"]["ci95"]
    assert low < report["configurations"][0]["regret"]["mean"] < high


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("missing.toml",), "cannot read missing.toml"),
        (("small.toml", "--workers", "0"), "--workers = 0, but"),
        (("small.toml", "--workers", "2", "--ray", "local"), "give one"),
        (("small.toml", "--out", "small.toml"), "is a file, but results need a folder"),
    ],
)
def test_mistakes_are_one_line(call, words: tuple[str, ...], message: str) -> None:
    Path("small.toml").write_text('episodes = 30\nproblems = "random-mdp"\nagents = "psrl"\n')
    done = call("sweep", *words)
    assert done.status == 2 and message in done.err and done.err.count("\n") == 1


def test_kill_minus_nine_leaves_no_process_and_loses_no_finished_task(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TEXT)
    command = [
        str(Path(sys.executable).with_name("tacit")),
        "sweep",
        "study.toml",
        "--workers",
        "2",
    ]
    running = subprocess.Popen([*command, "--out", "killed"], cwd=tmp_path)
    tasks = tmp_path / "killed" / "tasks"
    until = time.monotonic() + PATIENCE
    while len(list(tasks.glob("*.json"))) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    children = psutil.Process(running.pid).children(recursive=True)
    running.kill()
    running.wait()
    finished = len(list(tasks.glob("*.json")))
    assert 3 <= finished < 12 and len(children) >= 2
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert not alive
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "check": True}
    done = subprocess.run([*command, "--out", "killed", "--resume", "--json"], **options)
    counts = json.loads(done.stdout)["tasks"]
    assert counts["kept"] >= finished and counts["kept"] + counts["ran"] == counts["total"] == 12
    subprocess.run([*command, "--out", "whole"], **options)
    for name in ("curves.parquet", "curves.csv", "runs.parquet", "manifest.json"):
        killed, whole = (tmp_path / folder / name for folder in ("killed", "whole"))
        assert killed.read_bytes() == whole.read_bytes(), name


def test_ctrl_c_says_how_to_go_on(call, monkeypatch) -> None:
    Path("small.toml").write_text('episodes = 30\nproblems = "random-mdp"\nagents = "psrl"\n')

    def interrupted(tasks: object, workers: int) -> Iterator[Done]:
        raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patch:
        patch.setattr(pool, "run_on_processes", interrupted)
        done = call("sweep", "small.toml")
    assert done.status == 130 and done.out == ""
    assert "finished tasks are kept in tacit-sweeps/small" in done.err and "--resume" in done.err
    refused = call("sweep", "small.toml")
    assert refused.status == 2 and "unfinished sweep: --resume goes on" in refused.err
