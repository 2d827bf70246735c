"""Kills and faults under load: five kills for each world on each database (``make soak`` does 300),
and two of the faults that ``benchmarks/service/faults.py`` tables."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks" / "service"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


KILLED = [
    *((mode, database) for mode in ("local", "joint") for database in ("sqlite", "postgres")),
    ("returning", "sqlite"),
    pytest.param("returning", "postgres", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("mode", "database"), KILLED)
def test_reports_are_counted_once_and_noise_is_drawn_once(
    tmp_path_factory: pytest.TempPathFactory, mode: str, database: str
) -> None:
    tally = script("soak").soak(tmp_path_factory.mktemp("soak"), mode, database, kills=5, seed=1)
    assert tally.kills == 5
    assert tally.problems == []
    assert tally.reports > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["file overwritten", "read-only"])
def test_a_fault_shows_loses_nothing_and_is_over_after_its_repair(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    faults = script("faults")
    (fault,) = [one for one in faults.FAULTS if one.name == name]
    row = faults.run(fault, tmp_path_factory.mktemp("fault"))
    assert row.problems == [] and (row.lost, row.twice) == (0, 0)
    assert row.unready is not None and row.ready is not None
