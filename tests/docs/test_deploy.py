"""The deployment guide keeps its word: its commands run, and its names are the real ones."""

import contextlib
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from patience import PATIENCE
from service.devices import trajectories
from service.http.running import small_collector
from tacit.cli.main import app
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.http.errors import CODES
from tacit_service.http.metrics import Metrics
from tacit_service.planning.loop import LEASE_SECONDS, PlannerLoop
from tacit_service.responses import ServiceRefused
from tacit_service.storage import schema

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("index", "run", "returning_people", "backup_and_erasing", "monitoring", "upgrading")
GUIDE = "\n".join((ROOT / "docs" / "deploy" / f"{page}.md").read_text() for page in PAGES)
JOINT = """
[task]
name = "coach"
states = 2
actions = 2
horizon = 2
[agent]
name = "tacit-joint"
epsilon = 1.0
delta = 1e-5
[population]
users = 60
tokens = "shared"
[updates]
minimum_batch = 10
[storage]
witness_on_same_disk = true
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


def run(folder: Path, script: str) -> None:
    """Lines of tacit in this process, all others in a shell."""
    ours = [line for line in script.splitlines() if line.startswith("tacit ")]
    others = [line for line in script.splitlines() if not line.startswith("tacit ")]
    with contextlib.chdir(folder):
        for line in ours:
            done = CliRunner().invoke(app, shlex.split(line)[1:])
            assert done.exit_code == 0, (line, done.output)
        subprocess.run(["bash", "-euc", "\n".join(others)], check=True, timeout=PATIENCE)


def test_every_command_runs_as_it_is_written(tmp_path: Path) -> None:
    scripts = blocks("sh")
    assert len(scripts) == 5
    begin, moving, copying, tokens, keys = scripts
    run(tmp_path, begin)
    with Collector.open(Deployment.load(tmp_path / "coach.toml")):
        pass  # makes the database
    for script in (tokens, moving, copying):
        run(tmp_path, script)
    assert len((tmp_path / "tokens.txt").read_text().split()) == 100
    for copy in ("moved/coach.toml", "coach.toml"):
        with Collector.open(Deployment.load(tmp_path / copy)) as collector:
            assert len(collector.tokens.list()) == 101
    (tmp_path / "coach.db").unlink()
    (tmp_path / "coach-copy.db").rename(tmp_path / "coach.db")
    with Collector.open(Deployment.load(tmp_path / "coach.toml")) as collector:
        assert collector.tokens.list()[0].revoked_at is not None
    run(tmp_path, f"printf '%s\\n' {'A' * 43}= > coach.key\n{keys}")
    assert len((tmp_path / "coach.key").read_text().split()) == 2
    assert (tmp_path / "coach.key").stat().st_mode & 0o077 == 0


def test_consent_texts_are_what_the_command_prints(tmp_path: Path) -> None:
    shown = [block for block in blocks("console") if "admin consent" in block.split("\n")[0]]
    assert len(shown) == 2
    run(tmp_path, "tacit serve coach.toml --init")
    for block, folder in zip(shown, (tmp_path, ROOT), strict=True):
        command, _, expected = block.partition("\n")
        with contextlib.chdir(folder):
            done = CliRunner().invoke(app, shlex.split(command)[2:])
        assert done.exit_code == 0 and done.output == expected


def serve(collector: Collector, count: int) -> None:
    planner = PlannerLoop(collector)
    reports = trajectories(collector, np.random.default_rng(collector.status().accepted), count)
    collector.upload(collector.deployment.task_id, reports, None)
    while planner.step():
        pass
    planner.stop()


def test_keys_are_rotated_and_old_copies_refused_as_the_guide_says(tmp_path: Path) -> None:
    path = tmp_path / "coach.toml"
    path.write_text(JOINT)
    with Collector.open(Deployment.load(path)) as collector:
        serve(collector, collector.status().next_batch)
        run(tmp_path, blocks("sh")[2])
    run(tmp_path, blocks("sh")[4])
    with Collector.open(Deployment.load(path)) as collector:  # opens with the older key
        serve(collector, collector.status().next_batch)
        assert collector.status().version == 2
    (tmp_path / "coach-copy.db").replace(tmp_path / "coach.db")
    with Collector.open(Deployment.load(path)) as collector:
        other = trajectories(collector, np.random.default_rng(7), collector.status().next_batch)
        collector.upload(collector.deployment.task_id, other, None)
        with pytest.raises(ServiceRefused, match="restored from before release 2"):
            PlannerLoop(collector).step()


def test_refusals_are_quoted_as_they_are_said() -> None:
    source = Path(schema.__file__).parent
    said = " ".join(
        re.sub(r'"\s+f?"', "", (source / f).read_text()) for f in ("witness.py", "vault.py")
    )
    for words in (
        "restored from before release",
        "is missing, so nobody can tell whether this database is the newest one",
        "is an old copy",
        "the encrypted table does not open",
    ):
        assert words in said


def test_metrics_are_named_as_they_are(tmp_path: Path) -> None:
    with small_collector(tmp_path) as collector:
        metrics = Metrics("small", "local")
        metrics.count_reports(["accepted"])
        metrics.count_request("/", 200, 0.0)
        text = metrics.text(collector.status()).decode()
    real = set(re.findall(r"^# TYPE (tacit_\w+)", text, re.MULTILINE))
    assert set(re.findall(r"`(tacit_\w+)`", GUIDE)) == real


def test_tables_times_and_options_are_the_real_ones() -> None:
    tables = set(re.findall(r"table `(\w+)`", GUIDE))
    assert tables == {"secrets", "ledger", "tokens"} and tables <= set(schema.metadata.tables)
    assert f"within {LEASE_SECONDS:g} seconds" in GUIDE
    assert CODES["unavailable"] == 503
    admin = ("check", "verify", "consent", "tokens", "state", "erase", "backup", "rehearse")
    commands = [["serve"], *(["admin", name] for name in admin)]
    help_texts = "".join(CliRunner().invoke(app, [*name, "--help"]).output for name in commands)
    used = re.findall(r"^(?:\$ )?tacit (?:serve|admin).*$", GUIDE, re.MULTILINE)
    assert set(re.findall(r"tacit admin (\w+)", "\n".join(used))) <= set(admin)
    options = {word for line in used for word in re.findall(r"--[a-z]+", line)}
    assert options and {option for option in options if option not in help_texts} == set()
