"""One task: one agent on one problem under one root seed, named by all that determines it.

The same function runs it here, in a local process and on a cluster. What it returns are plain JSON
values, so nothing but numbers and words crosses between processes and machines.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tacit.agents.catalogue import make_agent
from tacit.errors import InvalidInput, TacitError
from tacit.kernels.compiler import source_hash
from tacit.problems.base import Problem
from tacit.problems.catalogue import make_problem
from tacit.simulation import simulate
from tacit.simulation.attendance import LAWS
from tacit.simulation.result import FACTS
from tacit.task.participation import ANY, Participation
from tacit.util.files import made_with
from tacit.validate import choice, integer

sources = functools.cache(source_hash)
"""Digest of the code that determines a run: an edit there makes stored runs unknown."""


def digest(facts: dict[str, Any]) -> str:
    """Names what is determined by these facts (plain JSON values) and by our sources."""
    text = json.dumps({**facts, "sources": sources()}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


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
        found = cls(str(folder), dict.fromkeys(names, ""))
        return replace(found, sources=found.load())

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


@dataclass(frozen=True)
class Coming:
    """How people come back.

    Attributes:
        rule: how often one person may take part, and what that teaches.
        people: how many different ones there are; None for as few as the rule allows.
        attendance: by which law they come; None for the usual one.
    """

    rule: Participation = Participation()
    people: int | None = None
    attendance: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Coming:
        """From what a spec says; where people take part once, the rest is left out."""
        rule = Participation(
            given.get("participations", 1),
            given.get("teaches"),
            given.get("apart", 0.0),
            given.get("period", 0.0),
        )
        if rule.times == 1 and not rule.period:
            return cls()
        people, law = given.get("people"), given.get("attendance")
        return cls(
            rule,
            None if people is None else integer(people, "people", low=1),
            None if law is None else choice(law, "attendance", LAWS),
        )

    def facts(self) -> dict[str, Any]:
        """What a spec would say, as plain values; empty where people take part once."""
        if self.rule == Participation():
            return {}
        times = ANY if self.rule.times is None else self.rule.times
        found = {"participations": times, "teaches": self.rule.teaches, "apart": self.rule.apart}
        found |= {"period": self.rule.period, "people": self.people, "attendance": self.attendance}
        return {name: value for name, value in found.items() if value not in (None, 0.0)}


@dataclass(frozen=True)
class Configuration:
    """Everything about a run but its seed.

    Attributes:
        problem: name and parameters as given.
        agent: likewise, with epsilon, delta and calibration among its parameters.
        episodes: number of users.
        checkpoints: which episodes are recorded.
        reveal: facts told to the learner.
        modules: a person's own modules.
        runs: independent runs under each root seed.
        coming: how people come back.
    """

    problem: Named
    agent: Named
    episodes: int
    checkpoints: int | str = "log"
    reveal: tuple[str, ...] = ()
    modules: Modules = Modules()
    runs: int = 1
    coming: Coming = Coming()

    def facts(self) -> dict[str, Any]:
        """What determines its runs, as plain values."""
        return {
            "problem": [self.problem.name, dict(self.problem.parameters)],
            "agent": [self.agent.name, dict(self.agent.parameters)],
            "episodes": self.episodes,
            "checkpoints": self.checkpoints,
            "reveal": list(self.reveal),
            "modules": dict(self.modules.sources or {}),
            "runs": self.runs,
            **({"coming": self.coming.facts()} if self.coming != Coming() else {}),
        }

    @functools.cached_property
    def key(self) -> str:
        """A text that two configurations share only if they are the same."""
        return json.dumps(self.facts(), sort_keys=True, allow_nan=False)

    @property
    def label(self) -> str:
        """In words."""
        learner = said(self.agent.name, self.agent.parameters)
        told = f", told {', '.join(self.reveal)}" if self.reveal else ""
        where = said(self.problem.name, self.problem.parameters)
        back = said("", self.coming.facts())
        return f"{learner}{back} on {where}, {self.episodes:,} episodes{told}"


def said(name: str, parameters: Mapping[str, Any]) -> str:
    """A name and its parameters.

    >>> said("ldp-obi", {"epsilon": 1.0, "randomizer": "laplace"})
    'ldp-obi (epsilon=1 randomizer=laplace)'
    """
    values = " ".join(
        f"{key}={value:.10g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in parameters.items()
    )
    return f"{name} ({values})" if values else name


@dataclass(frozen=True)
class SweepTask:
    """A configuration and a root seed."""

    configuration: Configuration
    seed: int

    @functools.cached_property
    def digest(self) -> str:
        """Its name on disk."""
        return digest({**self.configuration.facts(), "seed": self.seed})

    def order(self) -> dict[str, Any]:
        """What :func:`perform` is given."""
        return {
            **self.configuration.facts(),
            "seed": self.seed,
            "folder": self.configuration.modules.folder,
            "sources": sources(),
        }

    def run(
        self,
        workers: int = 1,
        progress: Callable[[int, float], None] | None = None,
        stop: threading.Event | None = None,
    ) -> dict[str, Any]:
        """Its outcome: what :meth:`tacit.simulation.result.Result.from_json` reads, and times."""
        began = time.perf_counter()
        what = self.configuration
        result = simulate(
            _problem(json.dumps([what.problem.name, dict(what.problem.parameters)])),
            make_agent(what.agent.name, **what.agent.parameters),
            what.episodes,
            what.runs,
            seed=self.seed,
            workers=workers,
            checkpoints=what.checkpoints,
            reveal=what.reveal,
            participations=what.coming.rule,
            people=what.coming.people,
            attendance=what.coming.attendance,
            progress=progress,
            stop=stop,
        )
        report = result.to_json()
        return {
            **{key: report[key] for key in FACTS if key in report},
            "episode": result.episodes.tolist(),
            "regret": result.regret.ravel().tolist(),
            "reward": result.reward.ravel().tolist(),
            "made_with": _made_with(),
            "timing": {**report["timing"], "task": time.perf_counter() - began},
        }


def perform(order: Mapping[str, Any]) -> dict[str, Any]:
    """Run a task; returns its outcome, or ``{"error", "again", "traceback"}``.

    A mistake of a person (``again`` false) fails again whenever it is tried; anything else may be
    the machine's fault.
    """
    try:
        return _task(order).run()
    except TacitError as error:
        return {"error": " ".join(str(error).split()), "again": False, "traceback": ""}
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        return {"error": words, "again": True, "traceback": traceback.format_exc()}


def _task(order: Mapping[str, Any]) -> SweepTask:
    """The task that was ordered, if this machine has the same code as the one that sent it."""
    modules = Modules(order["folder"], order["modules"])
    if sources() != order["sources"] or modules.load() != order["modules"]:
        raise InvalidInput(
            "this worker has another version of tacit, or of the sweep's own modules, than the "
            "machine that sent the task; install the same on all of them"
        )
    names = Named(*order["problem"]), Named(*order["agent"])
    how = {key: order[key] for key in ("episodes", "checkpoints", "reveal", "runs")}
    how["coming"] = Coming.of(order.get("coming", {}))
    return SweepTask(Configuration(*names, **how, modules=modules), order["seed"])


_made_with = functools.cache(made_with)


@functools.lru_cache(maxsize=4)
def _problem(text: str) -> Problem:
    """Tasks that follow each other often share a problem, and its optimum."""
    name, parameters = json.loads(text)
    return make_problem(name, **parameters)
