"""An experiment in names and numbers: its twin for files, command lines and other processes.

A folder in which a run goes on holds one (``progress/experiment.json``), a sweep is many of them,
and a worker is sent one. What it makes depends on nothing else.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tacit.agents.catalogue import make_agent
from tacit.errors import InvalidInput, suggestion
from tacit.experiment import Checkpoints, Experiment, Noise
from tacit.problems.base import Problem
from tacit.problems.catalogue import make_problem
from tacit.problems.environment import FILE, SIZES, Environment, can_only_be_played, environment
from tacit.problems.gymnasium.tables import make_environment
from tacit.simulation.attendance import Attendance
from tacit.simulation.result import prepare
from tacit.simulation.resume import forget
from tacit.task.participation import ANY, Participation
from tacit.util.files import read_json, require_folder, write_json

PROGRESS, EXPERIMENT = "progress", "experiment.json"
"""In the folder of a result, as long as it is not complete."""

ENVIRONMENT = ("rewards", "returns", "horizon", *SIZES, "homogeneous", "bins")
"""What may be said of something that is played."""


SAME = ("episodes", "runs", "seed", "participation", "attendance", "checkpoints", "noise")
"""Fields that are those of an :class:`tacit.Experiment` as they are."""


@dataclass(frozen=True)
class Named:
    """A registered problem or agent, and the parameters that make it."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Modules:
    """A person's own modules that register agents and problems.

    Attributes:
        folder: put on the import path, if it is there.
        sources: hash of each module's file, by name.
    """

    folder: str = ""
    sources: Mapping[str, str] | None = None

    @classmethod
    def find(cls, folder: Path, names: tuple[str, ...]) -> Modules:
        """Import them, and note what they are."""
        modules = cls(str(folder), dict.fromkeys(names, ""))
        return replace(modules, sources=modules.load())

    def load(self) -> dict[str, str]:
        """Import them here; returns the hash of each one's file."""
        names = list(self.sources or {})
        if names and self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        return {name: _import(name) for name in names}


def _import(name: str) -> str:
    try:
        file = importlib.import_module(name).__file__
    except ImportError as error:
        raise InvalidInput(f"cannot import the module {name!r} of the sweep: {error}") from None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""


def returning(data: Mapping[str, Any]) -> tuple[Participation, Attendance]:
    """How people come back, from plain values; where they take part once, the rest is left out."""
    rule = Participation(
        data.get("participations", 1),
        data.get("teaches"),
        data.get("apart", 0.0),
        data.get("period", 0.0),
        "private" if data.get("private") else "public",
    )
    if rule.times == 1 and not rule.period:
        return Participation(), Attendance()
    return rule, Attendance(data.get("attendance"), data.get("people"))


@dataclass(frozen=True, kw_only=True)
class ExperimentSpec:
    """An :class:`tacit.Experiment` in names and numbers.

    Attributes:
        problem: a registered name, gym:ID, play:ID or FILE.py:NAME, and parameters.
        agent: likewise, with epsilon, delta and calibration among its parameters.
        environment: what is said of something that is played, by the names of ``ENVIRONMENT``.
        prior: folder that ``tacit offline --out`` wrote.
        modules: a person's own modules.

    All others are as in :class:`tacit.Experiment`.
    """

    problem: Named
    agent: Named
    episodes: int
    runs: int = 1
    seed: int = 0
    reveal: tuple[str, ...] = ()
    participation: Participation = Participation()
    attendance: Attendance = Attendance()
    environment: Mapping[str, Any] = field(default_factory=dict)
    prior: str | None = None
    checkpoints: Checkpoints = "log"
    noise: Noise = "simulated"
    modules: Modules = Modules()

    def at(self, seed: int) -> ExperimentSpec:
        """The same under another root seed."""
        return replace(self, seed=seed)

    def coming(self) -> dict[str, Any]:
        """How people come back, as plain values; empty where they take part once."""
        rule, how = self.participation, self.attendance
        if rule == Participation():
            return {}
        facts = {
            "participations": ANY if rule.times is None else rule.times,
            "teaches": rule.teaches,
            "apart": rule.apart,
            "period": rule.period,
            "people": how.people,
            "attendance": how.law,
            "private": True if rule.attendance == "private" else None,
        }
        return {name: value for name, value in facts.items() if value not in (None, 0.0)}

    def facts(self) -> dict[str, Any]:
        """What determines its results, as plain values."""
        own: dict[str, Any] = {
            "problem": [self.problem.name, dict(self.problem.parameters)],
            "agent": [self.agent.name, dict(self.agent.parameters)],
            "episodes": self.episodes,
            "checkpoints": self.checkpoints,
            "reveal": list(self.reveal),
            "modules": dict(self.modules.sources or {}),
            "runs": self.runs,
            "seed": self.seed,
        }
        more = {
            "coming": self.coming(),
            "environment": dict(self.environment),
            "prior": self.prior,
            "noise": self.noise if self.noise != "simulated" else None,
        }
        return own | {name: value for name, value in more.items() if value}

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, with the folder that its own modules are found in."""
        return {**self.facts(), "folder": self.modules.folder}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ExperimentSpec:
        """From plain values."""
        rule, how = returning(data.get("coming", {}))
        points = data["checkpoints"]
        return cls(
            problem=Named(*data["problem"]),
            agent=Named(*data["agent"]),
            episodes=data["episodes"],
            runs=data["runs"],
            seed=data["seed"],
            reveal=tuple(data["reveal"]),
            participation=rule,
            attendance=how,
            environment=data.get("environment", {}),
            prior=data.get("prior"),
            checkpoints=tuple(points) if isinstance(points, list) else points,
            noise=data.get("noise", "simulated"),
            modules=Modules(data["folder"], data["modules"] or None),
        )

    @functools.cached_property
    def key(self) -> str:
        """A text that two of them share only if they differ in the seed at most."""
        return json.dumps({**self.facts(), "seed": None}, sort_keys=True, allow_nan=False)

    @property
    def label(self) -> str:
        """In words."""
        learner = label_of(self.agent.name, self.agent.parameters)
        revealed = f", told {', '.join(self.reveal)}" if self.reveal else ""
        where = label_of(self.problem.name, self.problem.parameters)
        back = label_of("", self.coming())
        return f"{learner}{back} on {where}, {self.episodes:,} episodes{revealed}"

    def make(self) -> Experiment:
        """The experiment."""
        self.modules.load()
        return Experiment(
            problem=self._problem(),  # type: ignore[arg-type]
            agent=make_agent(self.agent.name, **self.agent.parameters),
            reveal=frozenset(self.reveal),
            prior=None if self.prior is None else _prior(self.prior),
            **{name: getattr(self, name) for name in SAME},
        )

    def _problem(self) -> Problem | Environment:
        name, declared = self.problem.name, self.environment
        parameters = dict(self.problem.parameters)
        if not can_only_be_played(name):
            if declared:
                raise InvalidInput(
                    f"{', '.join(declared)}: only of what is played, and {name} has a known truth "
                    "(play:ID plays what gym:ID reads)"
                )
            return _known(json.dumps([name, parameters]))
        if name.startswith("gym:") and "horizon" in parameters:  # as one says it of a table
            declared = {"horizon": parameters.pop("horizon"), **declared}
        for key in declared:
            if key not in ENVIRONMENT:
                raise InvalidInput(
                    f"of what is played there is no {key!r}{suggestion(key, ENVIRONMENT)}"
                )
        sizes = {key: declared[key] for key in SIZES if key in declared}
        more = {key: value for key, value in declared.items() if key not in SIZES}
        source: Any = name
        if parameters and FILE in name:
            raise InvalidInput("-P is for gym:ID; what a file makes is made there")
        if parameters:
            source = make_environment(name.partition(":")[2], parameters)
        return environment(source, sizes=sizes or None, **more)


def label_of(name: str, parameters: Mapping[str, Any]) -> str:
    """A name and its parameters.

    >>> label_of("ldp-obi", {"epsilon": 1.0, "randomizer": "laplace"})
    'ldp-obi (epsilon=1 randomizer=laplace)'
    """
    values = " ".join(
        f"{key}={value:.10g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in parameters.items()
    )
    return f"{name} ({values})" if values else name


@functools.lru_cache(maxsize=4)
def _known(text: str) -> Problem:
    """Tasks that follow each other often share a problem, and its optimum."""
    name, parameters = json.loads(text)
    return make_problem(name, **parameters)


def _prior(folder: str) -> Any:
    from tacit.logs.prior import LogPrior

    return LogPrior.of(folder)


def begin(folder: Path, spec: ExperimentSpec, *, overwrite: bool) -> Path:
    """Make a folder ready for a new run, and note what it is; returns where it keeps its progress.

    A result or an unfinished run that is there is not lost by mistake.
    """
    progress = folder / PROGRESS
    if progress.exists() and not overwrite:
        raise InvalidInput(
            f"{folder} holds an unfinished run: go on with tacit run --resume {folder}, or begin "
            "anew with --overwrite"
        )
    prepare(folder, overwrite=overwrite)
    forget(progress)
    require_folder(progress)
    write_json(progress / EXPERIMENT, spec.to_json())
    return progress


def recall(folder: Path) -> ExperimentSpec:
    """What the unfinished run in a folder is."""
    missing = (
        f"{folder} holds no unfinished run: --resume goes on with what tacit run --out DIR began "
        "and did not finish"
    )
    return ExperimentSpec.from_json(read_json(folder / PROGRESS / EXPERIMENT, missing))
