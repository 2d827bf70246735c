"""The page about people who come back, and its benchmark at tiny sizes, do what they say."""

import importlib.util
import sys
from pathlib import Path

import pytest

from docs.test_tutorials import test_the_page_does_what_it_says as executed

ROOT = Path(__file__).resolve().parents[2]


def test_the_examples_are_executed(tmp_path: Path, monkeypatch) -> None:
    executed(ROOT / "docs" / "guides" / "returning.md", tmp_path, monkeypatch)


@pytest.fixture
def benchmark():
    path = ROOT / "benchmarks" / "returning.py"
    spec = importlib.util.spec_from_file_location("returning", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["returning"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["returning"]


@pytest.mark.parametrize(("part", "rows"), [("local", 6), ("joint", 4), ("speed", 2)])
def test_the_benchmark_writes_its_table(
    part: str, rows: int, benchmark, tmp_path: Path, monkeypatch
) -> None:
    if part == "joint":  # the lake itself is looked at once, in the end
        problem = benchmark.tacit.problem
        monkeypatch.setattr(
            benchmark.tacit, "problem", lambda name, **how: problem("river-swim", horizon=5)
        )
    out = tmp_path / "table.md"
    benchmark.main([part, "--people", "20", "--returns", "3", "--runs", "1", "--out", str(out)])
    lines = [line for line in out.read_text().split("\n") if line.startswith("| ")]
    assert len(lines) == 1 + rows
