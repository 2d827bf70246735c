"""Twenty kills under load: five for each model on each database (``make soak`` does 200)."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks" / "service"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("soak", SCRIPTS / "soak.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("mode", ["local", "joint"])
def test_reports_are_counted_once_and_noise_is_drawn_once(
    script: ModuleType, tmp_path_factory: pytest.TempPathFactory, mode: str, database: str
) -> None:
    tally = script.soak(tmp_path_factory.mktemp("soak"), mode, database, kills=5, seed=1)
    assert tally.kills == 5
    assert tally.problems == []
    assert tally.reports > 5
