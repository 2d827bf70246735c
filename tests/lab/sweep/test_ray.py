"""The same tasks on a local Ray cluster, started once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.errors import MissingExtra, TacitError
from tacit_lab.sweep.ray import connected

SPEC = """
episodes = 50
seeds = 2
problems = ["random-mdp", "lq-scalar"]
agents = ["psrl", "no-luck"]
modules = ["unlucky"]
"""

UNLUCKY = """
from dataclasses import dataclass
from tacit.agents import Agent, agents

@dataclass(frozen=True)
class NoLuck(Agent):
    name = "no-luck"
    def bind(self, task):
        raise RuntimeError("as always")

agents.add("no-luck", NoLuck, "fails")
"""


def tacit(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = str(Path(sys.executable).with_name("tacit"))
    return subprocess.run([command, *words], cwd=cwd, capture_output=True, text=True)


def test_ray_gives_the_same_bytes_and_reports_what_failed(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(SPEC)
    (tmp_path / "unlucky.py").write_text(UNLUCKY)
    reports = {}
    for name, words in {"ray": ("--ray", "local"), "pool": ("--workers", "2")}.items():
        done = tacit("sweep", "study.toml", *words, "--out", name, "--json", cwd=tmp_path)
        assert done.returncode == 1 and done.stderr == "", done.stderr
        reports[name] = json.loads(done.stdout)
    for report in reports.values():
        assert report["tasks"] == {"total": 8, "kept": 0, "ran": 2, "failed": 6}
        tried = {(f["label"].split()[0], f["tries"]) for f in report["failures"]}
        assert tried == {("psrl", 1), ("no-luck", 3)}
        luckless = [f for f in report["failures"] if f["tries"] == 3]
        assert all(f["error"] == "RuntimeError: as always" for f in luckless)
        assert all('raise RuntimeError("as always")' in f["traceback"] for f in luckless)
    for name in ("curves.parquet", "curves.csv", "runs.parquet"):
        ray, pool = (tmp_path / backend / name for backend in ("ray", "pool"))
        assert ray.read_bytes() == pool.read_bytes()


def test_without_ray_the_sentence_names_the_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"tacit\[cluster\]"), connected("local", 1):
        pass


def test_a_cluster_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(TacitError, match="cannot start or reach Ray at 'nowhere'"):
        with connected("nowhere", 1):
            pass
