"""What a report is made from: the results in a folder, whichever command wrote them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.agents.catalogue import agents
from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.privacy.sentences import over
from tacit.problems.catalogue import problems
from tacit.simulation.result import MANIFEST, Result
from tacit.task.participation import Participation
from tacit.util.durations import in_words
from tacit.util.files import read_json
from tacit.util.intervals import Interval, mean_interval
from tacit.util.registry import Registry
from tacit_lab.sweep.tables import SPEC, load

Pair = tuple[int, int]
"""Root seed and run: runs of different agents with the same pair met the same users."""


@dataclass(frozen=True, eq=False)
class Arm:
    """One configuration: an agent on a problem for K users, over seeds.

    Attributes:
        result: its curves and guarantee.
        pairs: what each run shares with runs of other configurations.
        chosen: how a parameter was chosen on other seeds, where one was.
    """

    result: Result
    pairs: tuple[Pair, ...]
    chosen: Mapping[str, Any] | None = None

    @functools.cached_property
    def problem(self) -> str:
        """Which problem, in words; the same for arms that may be compared."""
        return _named(self.result.problem, problems)

    @functools.cached_property
    def learner(self) -> str:
        """The agent with its parameters that are not the defaults, epsilon left out.

        And how people come back, where they do: that is another learner.
        """
        back = f"; {self.back}" if self.rule is not None else ""
        return _named(self.result.agent, agents) + back

    @property
    def rule(self) -> Participation | None:
        """By which people came back; None where everybody took part once."""
        if self.result.returning is None:
            return None
        stated = self.result.guarantee
        return stated.rule or Participation(stated.participations, "every")

    @property
    def back(self) -> str:
        """How people came back, in a few words; empty where nobody did."""
        rule, who = self.rule, self.result.returning
        if rule is None or who is None:
            return ""
        times = "any number" if rule.times is None else f"{rule.times:,}"
        words = f"{rule.teaches or 'every'} of {times}"
        words += f" in {in_words(rule.period)}" if rule.period else ""
        words += f", {in_words(rule.apart)} apart" if rule.apart else ""
        return f"{words}, {who.people:,} people, {who.law}"

    @property
    def epsilon(self) -> float | None:
        """The epsilon that was asked for; None for agents that take none."""
        return self.result.guarantee.requested_epsilon

    @property
    def level(self) -> float:
        """The same as a number to sort by: 0 for agents that take none."""
        return float(self.epsilon or 0.0)

    @property
    def label(self) -> str:
        """Learner and epsilon, with what that is over."""
        if self.epsilon is None:
            return self.learner
        return f"{self.learner}, ε = {self.epsilon:g}{over(self.result.guarantee)}"

    @property
    def users(self) -> int:
        """K, as it was planned for."""
        return self.result.requested_episodes

    @property
    def private(self) -> bool:
        """Whether the agent takes an epsilon: references that collect nothing do not count."""
        return "epsilon" in self.result.agent["parameters"]

    @property
    def final(self) -> Array:
        """Regret at the end, by run."""
        return self.result.regret[:, -1]

    @property
    def interval(self) -> Interval:
        """Its mean over runs, with an interval."""
        return mean_interval(self.final, least=0.0)

    @property
    def baseline(self) -> str:
        """What that policy is called."""
        return str(self.result.problem["baseline"]["name"])


@functools.cache
def _parameters(name: str, known: Registry[Any]) -> Mapping[str, inspect.Parameter]:
    """Of a registered name; of one's own problems and agents nothing is known."""
    return next((entry.parameters for entry in known if entry.name == name), {})


def _named(facts: Mapping[str, Any], known: Registry[Any]) -> str:
    """A name and what differs from its defaults."""
    usual = _parameters(str(facts["name"]), known)
    changed = {
        key: value
        for key, value in facts["parameters"].items()
        if key != "epsilon" and (key not in usual or value != usual[key].default)
    }
    return label_of(str(facts["name"]), changed)


def label_of(name: str, parameters: Mapping[str, Any]) -> str:
    """A name and its parameters in brackets."""
    values = ", ".join(
        f"{key} = {value:g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in parameters.items()
        if not isinstance(value, list | dict) and value is not None
    )
    return f"{name} ({values})" if values else name


def paired(*arms: Arm) -> Array:
    """Final regrets of the runs that all arms have, in one order [arms, common runs]."""
    common = sorted(set.intersection(*(set(arm.pairs) for arm in arms)))
    return np.array([arm.final[[arm.pairs.index(pair) for pair in common]] for arm in arms])


@dataclass(frozen=True, eq=False)
class ResultSet:
    """All arms of a folder, and how they were made.

    Attributes:
        name: of the sweep, or of the folder.
        arms: what finished.
        failures: tasks that did not: label, seed, error.
        made_with: versions and machines, one entry for each combination.
        versions: of tacit itself.
        spec: the text of the sweep's file, empty where there was none.
    """

    name: str
    arms: tuple[Arm, ...]
    failures: tuple[Mapping[str, Any], ...]
    made_with: tuple[Mapping[str, Any], ...]
    versions: tuple[str, ...]
    spec: str = ""


def read_results(folder: Path) -> ResultSet:
    """Read the folder of a sweep, of a run, or one whose subfolders hold runs."""
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder; give one that tacit sweep or run --out made")
    if (folder / MANIFEST).exists():
        results = _sweep(folder) if _is_sweep(folder) else _runs(folder, [folder])
    else:
        inside = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
        results = _runs(folder, [path for path in inside if not _is_sweep(path)])
    if not results.arms:
        raise InvalidInput(
            f"{folder} holds no results: neither a finished sweep, nor a run, nor folders of runs"
        )
    return results


def _manifest(folder: Path) -> dict[str, Any]:
    return read_json(folder / MANIFEST, f"{folder} holds no results: it has no {MANIFEST}")


def _is_sweep(folder: Path) -> bool:
    return "configurations" in _manifest(folder)


def _runs(folder: Path, paths: list[Path]) -> ResultSet:
    arms, made_with, versions = [], [], set()
    for path in paths:
        result, manifest = Result.load(path), _manifest(path)
        if result.completed:
            arms.append(Arm(result, tuple((result.seed, run) for run in result.seeds)))
        made = {str(key): manifest[key] for key in ("versions", "machine") if key in manifest}
        if made not in made_with:
            made_with.append(made)
        versions.add(str(manifest["tacit"]))
    name = folder.resolve().name
    return ResultSet(name, tuple(arms), (), tuple(made_with), tuple(sorted(versions)))


def _sweep(folder: Path) -> ResultSet:
    sweep, spec = load(folder), folder / SPEC
    curves = dict(list(sweep.curves.groupby("configuration", sort=False)))
    seconds = sweep.timings.groupby("configuration")["run_seconds"].sum()
    arms = []
    for facts in sweep.configurations:
        number, seeds, users = facts["configuration"], facts["seeds"], int(facts["episodes"])
        if seeds:
            took = float(seconds[number])
            timing = {"seconds": took, "episodes_per_second": len(seeds) * users / max(took, 1e-9)}
            more = {"seed": seeds[0], "requested_episodes": users, "interrupted": False}
            result = Result.from_json({**facts, **more, "timing": timing}, curves[number])
            arms.append(Arm(result, tuple((seed, 0) for seed in result.seeds), facts["chosen"]))
    return ResultSet(
        name=str(sweep.manifest["name"]),
        arms=tuple(arms),
        failures=tuple(sweep.manifest["failures"]),
        made_with=tuple(sweep.manifest["made_with"]),
        versions=(str(sweep.manifest["tacit"]),),
        spec=spec.read_text() if spec.exists() else "",
    )
