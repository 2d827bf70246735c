"""A device runs without numba, OpenDP, scipy and the rest of the laboratory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE

TESTS = Path(__file__).resolve().parents[1]
HEAVY = ("numba", "opendp", "scipy", "pandas", "dp_accounting", "gymnasium", "matplotlib", "typer")

PROGRAM = """
import json, sys
sys.path.insert(0, {tests!r})
class Blocked:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(name + " is not installed")
sys.meta_path.insert(0, Blocked)
from client.collector import FakeCollector, live
from tacit.kernels.raw.cells import add_hits
collector = FakeCollector("tacit-local", epsilon=1.0)
device = collector.device()
live(device)
(delivery,) = device.send()
print(json.dumps({{
    "outcome": delivery.outcome,
    "compiled": hasattr(add_hits, "py_func"),
    "loaded": [name for name in {heavy!r} if sys.modules.get(name)],
    "bytes": len(collector.bodies[0]),
}}))
"""


def run(program: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("blocked", [HEAVY, ("opendp",)])
def test_a_one_cell_report_needs_none_of_them(blocked) -> None:
    said = run(PROGRAM.format(tests=str(TESTS), blocked=blocked, heavy=HEAVY))
    assert said["outcome"] == "accepted"
    assert said["compiled"] is ("numba" not in blocked)
    assert set(said["loaded"]) <= {"numba", "scipy"} - set(blocked)


def test_importing_the_client_loads_no_laboratory() -> None:
    program = f"""
import json, sys
sys.modules["numba"] = None
import tacit.client
print(json.dumps([name for name in {HEAVY!r} if sys.modules.get(name)]))
"""
    assert run(program) == []


def test_laplace_noise_without_opendp_is_an_error_that_says_what_to_install() -> None:
    program = PROGRAM.replace(
        'FakeCollector("tacit-local", epsilon=1.0)', 'FakeCollector("ldp-obi", epsilon=1.0)'
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            program.format(tests=str(TESTS), blocked=("opendp", "numba"), heavy=HEAVY),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode != 0
    assert "pip install 'tacit[secure]'" in done.stderr
