"""A stranger's first hour: the wheel in an empty environment, and only what the pages say."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = (Path(__file__).with_name("first_hour.py"), ROOT / "examples" / "own_agent.py")


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """The interpreter of an environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("stranger")
    environment = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder]
    subprocess.run([*build, ROOT], check=True, env=environment, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv")
    found = folder / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", found, "install", "--quiet", "--no-compile"]
    command = [*install, f"{wheel}[plots,tables]"]
    subprocess.run(command, check=True, env=environment, capture_output=True)
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_it_does_what_the_pages_say(python: Path, script: Path, tmp_path: Path) -> None:
    done = subprocess.run([python, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and done.stdout.strip()


def test_commands_work_and_missing_parts_are_named(python: Path, tmp_path: Path) -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        line = [python, "-m", "tacit", *words]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)

    run = call("run", "river-swim", "psrl", "--episodes", "500", "--out", "kept")
    assert run.returncode == 0, run.stderr
    shown = call("show", "kept/policy.json")
    assert shown.returncode == 0 and "state" in shown.stdout, shown.stderr
    serve = call("serve", "coach.toml", "--init")
    assert serve.returncode == 2 and "pip install" in serve.stderr and "service" in serve.stderr
