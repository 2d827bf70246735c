"""What must not move by a byte while the code behind it does: commands, files, terms, stored data.

``COMMANDS`` are run in a folder that holds ``_scratch``'s files, in this process, with pinned
arithmetic (``machine.py``); what they print as JSON is digested field by field, without times, the
version and paths. A command that is renamed is renamed here, in its argument lists, and its record
stays. ``FACTS`` are of other kinds: what deployments have stored, agreed to or sent, and which code
serves what.

    python tests/golden/record.py --frozen            # compare
    python tests/golden/record.py --frozen --write    # record anew
"""

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import shlex
import shutil
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from golden.cases import cases, problem
from golden.digests import digest, json_digest
from golden.fleet import seeded
from logs.worlds import chain, uniform, write_log
from service.devices import local_reports
from tacit.cli.main import main
from tacit.errors import InvalidInput
from tacit.experiment import Experiment
from tacit.logs.simulated import simulate_log
from tacit.simulation.runs.stepwise import StepwiseRun
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.http.app import create_app
from tacit_service.planning.loop import LEASE_SECONDS, PlannerLoop
from tacit_service.responses import ServiceRefused

TESTS = Path(__file__).resolve().parents[1]
PROJECT = TESTS.parent
EXAMPLES = {
    "health_coach": PROJECT / "examples/health_coach/coach.toml",
    "health_coach joint": PROJECT / "examples/health_coach/coach_joint.toml",
    "web_coach": PROJECT / "examples/web_coach/web.toml",
    "service": PROJECT / "src/tacit_service/config/example.toml",
}
"""Deployment files that are shipped."""

SMALL = "-P states=3 -P actions=2 -P horizon=4"
TIGHT = "-A calibration=tight"
"""As recorded: published agents had no other calibration by default."""

FEW = "--episodes 60 --runs 2 --json"
TRIALS = "--trials 300 --seconds 1000 --seed 1 --json"
LOG = "offline log.csv --task task.toml --simulated --seed 3 --epsilon 8"

COMMANDS: dict[str, tuple[str, ...]] = {
    "list agents": ("list agents --json",),
    "list problems": ("list problems --json",),
    "list attendance": ("list attendance --json",),
    "list figures": ("list figures --json",),
    "guarantee local": ("guarantee river-swim ldp-obi --epsilon 1 -A calibration=tight --json",),
    "guarantee local, returning": (
        "guarantee river-swim tacit-local --epsilon 4 -R participations=30 --json",
    ),
    "guarantee joint, any time": (
        "guarantee river-swim tacit-joint --epsilon 1 -R participations=any -R period=30d --json",
    ),
    "guarantee shuffle": (
        "guarantee river-swim shuffle-obi --epsilon 1 --delta 1e-6 --episodes 3e4 "
        "-A calibration=tight --json",
    ),
    "guarantee linear": (f"guarantee synthetic-linear dp-lsvi-ucb++ --epsilon 5 {TIGHT} --json",),
    "guarantee mixture, paper": (
        "guarantee remap-walk private-linopt-vi --epsilon 5 -A calibration=paper --json",
    ),
    "guarantee control": (f"guarantee lq-scalar private-ofu-rl --epsilon 5 {TIGHT} --json",),
    "guarantee search": ("guarantee cart-pole tacit-search --epsilon 5 --json",),
    "guarantee --diff": (
        f"run random-mdp ldp-obi {SMALL} --epsilon 9 {TIGHT} --out one {FEW}",
        f"run random-mdp tacit-local {SMALL} --epsilon 9 --out two {FEW}",
        "show one/result.json two/result.json --json",
    ),
    "run not private": (f"run random-mdp psrl {SMALL} {FEW}",),
    "run local": (f"run random-mdp tacit-local {SMALL} --epsilon 4 {FEW}",),
    "run returning": (
        f"run random-mdp tacit-joint {SMALL} --epsilon 4 -R participations=6 -R people=12 "
        f"-R law=bursts -R period=30d -R apart=20h {FEW}",
    ),
    "run mixture": (f"run remap-walk private-linopt-vi --epsilon 50 {TIGHT} {FEW}",),
    "run linear": (
        f"run synthetic-linear dp-lsvi-ucb++ --epsilon 500 {TIGHT} --reveal reward {FEW}",
    ),
    "run control": (f"run lq-scalar tacit-control --epsilon 50 {FEW}",),
    "run search": (f"run cart-pole tacit-search --epsilon 5 {FEW}",),
    "run, show and report a folder": (
        f"run random-mdp ldp-obi {SMALL} --epsilon 9 {TIGHT} --out one --seed 5 {FEW}",
        "show one/policy.json --json",
        "report one --json",
    ),
    "learn": ("run play:FrozenLake-v1 psrl --episodes 60 --runs 2 -E horizon=9 --json",),
    "learn cut observations": (
        "run play:CartPole-v1 tacit-local --epsilon 4 --episodes 40 --runs 2 -E horizon=9 "
        "-E 'bins=[1, [-0.5, 0.5], [0.0], 1]' --json",
    ),
    "learn by returns": (
        "run play:CartPole-v1 tacit-search --epsilon 4 --episodes 60 --runs 2 -E horizon=20 "
        "-E returns=0,20 --json",
    ),
    "audit local": (f"audit random-mdp ldp-obi {SMALL} --epsilon 1 {TIGHT} {TRIALS}",),
    "audit joint": (f"audit random-mdp tacit-joint {SMALL} --epsilon 1 {TRIALS}",),
    "plan": (
        f"size random-mdp tacit-joint {SMALL} --epsilon 8 --people 2000 --runs 2 --most 2000 "
        "--seconds 1000 --json",
    ),
    "plan by sizes": (
        "size 3x2x3 tacit-local --epsilon 8 --people 2000 --runs 2 "
        "--most 2000 --seconds 1000 --json",
    ),
    "offline": (f"{LOG} --json",),
    "offline dp-apvi": (f"{LOG} --agent dp-apvi --json",),
    "offline dp-vapvi": (f"{LOG} --agent dp-vapvi --json",),
    "evaluate": (
        f"{LOG} --out made",
        "offline made --policy made/policy.json --task task.toml --json",
        "offline log.csv --policy made/policy.json --task task.toml --simulated --epsilon 8 --json",
    ),
    "run with a log": (
        f"{LOG} --out made",
        f"run random-mdp tacit-joint {SMALL.replace('3', '8').replace('4', '12')} --epsilon 4 "
        f"--prior made {FEW}",
    ),
    "sweep": ("sweep sweep.toml --workers 1 --out swept --json",),
    "serve --check": ("admin check coach.toml --json",),
    "serve --check joint": ("admin check coach_joint.toml --json",),
    "serve --check web": ("admin check web.toml --json",),
    "serve --consent": (
        "admin consent coach.toml",
        "admin consent coach_joint.toml",
        "admin consent web.toml",
    ),
    "serve --init": ("serve new.toml --init", "admin check new.toml --json"),
    "tokens and tasks": (
        "serve new.toml --init",
        "admin tokens new.toml issue --count 3 --label two --out tokens.txt --json",
        "admin tokens new.toml revoke 2 --json",
        "admin tokens new.toml list --json",
        "admin state new.toml pause --json",
        "admin state new.toml resume --json",
    ),
    "back up": (
        "admin tokens local.toml list --json",
        "admin backup local.toml copy.db --drill --json",
    ),
    "fleet": ("admin rehearse paced.toml --virtual --users 400 --json",),
    "study of the coach": (
        "reproduce coach -O people=60 -O epsilon=8 -O runs=1 "
        "-O agents=tacit-joint,tacit-local --json",
    ),
    "reproduce": ("reproduce tabular-ldp/figure-9 --size quick --workers 1 --out figures --json",),
    "reproduce counters": (
        "reproduce mixture-jdp/counters --size quick --workers 1 --out figures --json",
    ),
    "demo": ("demo --json",),
}
"""What is run one after the other in a folder of its own, by name."""

PASSING = {
    *("tacit", "version", "seconds", "episodes_per_second", "timing"),
    *("quick", "full", "paper_size", "issued_at", "revoked_at", "bytes"),
}
"""Fields that are other ones whenever a command is run, whenever one is timed, or by version; a
page's bytes hold such times."""

PACED = '[population]\nusers = 400\npace = "50/day"'
SWEEP = """
episodes = [60]
seeds = 2
epsilon = [1, 9]
[[problems]]
name = "random-mdp"
states = 3
actions = 2
horizon = 4
[[agents]]
name = "psrl"
[[agents]]
name = "tacit-local"
"""
MAPPING = """
[data]
name = "made up"
people = 4000
[budget]
epsilon = 8.0
delta = 1e-4
[columns]
person = "person"
step = "step"
reward = "reward"
propensity = "propensity"
[[state]]
column = "state"
size = 8
[action]
column = "action"
size = 2
[task]
horizon = 12
"""


def _scratch(folder: Path) -> None:
    """What the commands read."""
    for file in (*EXAMPLES.values(), *EXAMPLES["health_coach"].parent.glob("*.py")):
        shutil.copy(file, folder)
    with zipfile.ZipFile(TESTS / "service" / "first_series.zip") as packed:
        packed.extractall(folder)
    joint = EXAMPLES["health_coach joint"].read_text()
    (folder / "paced.toml").write_text(joint.replace("[population]\nusers = 10000", PACED))
    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "task.toml").write_text(MAPPING)
    log = simulate_log(chain(), uniform(chain()), 3000, np.random.default_rng(0))
    write_log(log, folder / "log.csv")


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder for one case, in which the process stands meanwhile."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="tacit-frozen-") as name:
        folder = Path(name)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def printed(words: str) -> str:
    """What one command prints; its words are those after ``tacit``."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["tacit", *shlex.split(words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as left:
            if left.code:
                raise AssertionError(
                    f"tacit {words}: status {left.code}\n{err.getvalue()}"
                ) from None
    return out.getvalue()


def lasting(value: Any, folder: Path) -> Any:
    """A JSON value without what passes: times, the version, where the folder is."""
    if isinstance(value, dict):
        return {k: lasting(v, folder) for k, v in value.items() if k not in PASSING}
    if isinstance(value, list):
        return [lasting(one, folder) for one in value]
    return value.replace(str(folder), ".") if isinstance(value, str) else value


def run_commands(name: str) -> dict[str, str]:
    """Digests of every field that the commands of a case print as JSON, and of what people read."""
    found: dict[str, str] = {}
    with _folder() as folder, seeded():
        _scratch(folder)
        for number, words in enumerate(COMMANDS[name], 1):
            text = printed(words)
            if words.startswith("admin consent "):
                fields = {"text": text}
            elif "--json" in words:
                fields = json.loads(text, parse_constant=str)
            else:  # it is run for what the next one reads
                continue
            digests = {key: json_digest(value) for key, value in lasting(fields, folder).items()}
            found |= {f"{number} {key}": value for key, value in digests.items()}
    return found


def terms() -> dict[str, str]:
    """Task ids, and what is stored as terms, of every deployment file that is shipped."""
    found = {}
    for name, file in EXAMPLES.items():
        deployment = Deployment.load(file)
        found[f"{name}: terms"] = digest([json.dumps(deployment.fixed, sort_keys=True).encode()])
        found[f"{name}: task id"] = deployment.task_id[:16]
    return found


def offline_files() -> dict[str, str]:
    """The files of a simulated offline run; of the compressed one what it holds."""
    found = {}
    with _folder() as folder:
        _scratch(folder)
        printed(f"{LOG} --out made")
        for file in ("policy.json", "values.json"):
            found[file] = digest([(folder / "made" / file).read_bytes()])
        with zipfile.ZipFile(folder / "made" / "release.npz") as packed:
            parts = [(name.encode(), packed.read(name)) for name in packed.namelist()]
            found["release.npz"] = digest(part for pair in parts for part in pair)
    return found


def first_series() -> dict[str, str]:
    """What databases of the first series yield: one is refused, the other goes on to its end."""
    found = {}
    with _folder() as folder, seeded():
        _scratch(folder)
        (folder / "joint.key").chmod(0o600)
        with (folder / "joint.toml").open("a") as file:
            file.write("[storage]\nwitness_on_same_disk = true\n")
        try:
            Collector.open(Deployment.load(folder / "joint.toml"))
        except ServiceRefused as refused:
            found["joint"] = f"refused as {refused.reason}"
        now = 1.8e9
        with Collector.open(Deployment.load(folder / "local.toml"), clock=lambda: now) as collector:
            loop, rng = PlannerLoop(collector), np.random.default_rng(0)
            loop.step()
            now += LEASE_SECONDS  # the old lease is nobody's
            loop.step()
            while not collector.status().finished:
                count = collector.status().next_batch
                reports = local_reports(collector, rng, count)
                for token, report in zip(
                    collector.tokens.issue("device", count, "more"), reports, strict=True
                ):
                    sender = collector.tokens.authenticate(token)
                    collector.upload(collector.deployment.task_id, [report], sender)
                now += LEASE_SECONDS
                loop.step()
        for what in (
            "version, users, body, release FROM publications ORDER BY version",
            "line FROM ledger ORDER BY sequence",
            "name, value FROM meta ORDER BY name",
        ):
            found[what.partition(" FROM ")[2].split()[0]] = _rows(folder / "local.db", what)
    return found


def _rows(file: Path, what: str) -> str:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return digest([repr(connection.execute(f"SELECT {what}").fetchall()).encode()])


def addresses() -> dict[str, str]:
    """The OpenAPI document of the service, by address."""
    with _folder() as folder:
        _scratch(folder)
        with Collector.open(Deployment.load(folder / "coach.toml")) as collector:
            document = create_app(collector).openapi()
    paths = {name: json_digest(said) for name, said in document["paths"].items()}
    return {**paths, "components": json_digest(document["components"])}


def vectors() -> dict[str, str]:
    """The vectors that all clients replay."""
    files = sorted((PROJECT / "vectors").glob("*.json"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in files}


def runs() -> dict[str, str]:
    """Which kind of run is taken for every case of ``cases.py``, by the name of its class."""
    found = {}
    for name, case in cases().items():
        truth = problem(case.problem)
        with contextlib.suppress(InvalidInput):
            told = {"reveal": frozenset(case.reveal), "checkpoints": 1}
            (run,) = Experiment(problem=truth, agent=case.make_agent(), episodes=60, **told).start()
            found[name] = "stepwise" if type(run) is StepwiseRun else type(run).__name__
    return found


def device_wheel() -> dict[str, str]:
    """The modules that the device's own distribution holds."""
    place = PROJECT / "clients" / "python" / "shared.py"
    spec = importlib.util.spec_from_file_location("golden_shared", place)
    assert spec is not None and spec.loader is not None
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    return {"modules": " ".join(sorted(shared.closure()))}


FACTS: dict[str, Callable[[], dict[str, str]]] = {
    "terms": terms,
    "offline files": offline_files,
    "first series": first_series,
    "addresses": addresses,
    "vectors": vectors,
    "runs": runs,
    "device wheel": device_wheel,
}


def measure_frozen(name: str) -> dict[str, str]:
    """The digests of one of ``COMMANDS`` or ``FACTS``."""
    return FACTS[name]() if name in FACTS else run_commands(name)
