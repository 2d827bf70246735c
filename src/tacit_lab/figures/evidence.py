"""What was computed for a figure, as drawings and claims read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import UnknownName
from tacit.privacy.guarantee import Guarantee
from tacit.simulation.result import Result
from tacit_lab.figures.figure import Curve, Measurement, Size

LEAST = 1e-3
"""Regret below this counts as this much where ratios are taken, so that they exist."""


def exponent(episodes: IntArray, regret: Array) -> float:
    """Exponent x of regret ~ k^x over the last decade."""
    first = int(np.searchsorted(episodes, 0.1 * episodes[-1]))
    if first + 1 >= len(episodes):
        return float("nan")
    rise = max(regret[-1], LEAST) / max(regret[first], LEAST)
    return float(np.log(rise) / np.log(episodes[-1] / episodes[first]))


@dataclass(frozen=True, eq=False)
class Runs:
    """A finished curve: one result per problem, on the same checkpoints."""

    curve: Curve
    results: tuple[Result, ...]

    @property
    def guarantee(self) -> Guarantee:
        """What each user was guaranteed; the weakest, where problems differ."""
        return max((r.guarantee for r in self.results), key=lambda g: (g.epsilon, g.delta))

    @property
    def label(self) -> str:
        """What the legend says: the name and the true guarantee."""
        return f"{self.curve.label}: {self.guarantee.brief()}"

    @property
    def episodes(self) -> IntArray:
        """Checkpoints."""
        return self.results[0].episodes

    @property
    def runs(self) -> Array:
        """Cumulative regret of every run [problems x runs, checkpoints]."""
        return np.concatenate([result.regret for result in self.results])

    @property
    def by_problem(self) -> Array:
        """Cumulative regret, mean over the runs of each problem [problems, checkpoints]."""
        return np.array([result.regret.mean(axis=0) for result in self.results])

    @property
    def mean(self) -> Array:
        """Mean over problems."""
        mean: Array = self.by_problem.mean(axis=0)
        return mean

    @property
    def final(self) -> Array:
        """Regret at the end, by problem."""
        return self.by_problem[:, -1]

    def at(self, episode: int) -> float:
        """Mean regret at the last checkpoint that is not after ``episode``."""
        return float(self.mean[np.searchsorted(self.episodes, episode, side="right") - 1])

    @property
    def samples(self) -> Array:
        """What means are taken over: problems, or the runs of a single one [n, checkpoints]."""
        return self.by_problem if len(self.results) > 1 else self.runs

    def growth(self) -> float:
        """Exponent x of regret ~ k^x over the last decade."""
        return exponent(self.episodes, self.mean)

    def to_json(self) -> dict[str, Any]:
        """The curve in numbers, problem by problem."""
        return {
            "curve": self.curve.key,
            "label": self.label,
            "agent": dict(self.results[0].agent),
            "episodes": self.curve.episodes,
            "regret": float(self.final.mean()),
            "by_problem": [
                {
                    "problem": {"name": r.problem["name"], "parameters": r.problem["parameters"]},
                    "optimal_value": r.problem["optimal_value"],
                    "seed": r.seed,
                    "regret": r.regret[:, -1].tolist(),
                }
                for r in self.results
            ],
            "guarantee": self.guarantee.to_json(),
            "seconds": sum(r.seconds for r in self.results),
        }


@dataclass(frozen=True, eq=False)
class Measured:
    """A finished measurement."""

    measurement: Measurement
    arrays: Mapping[str, Array]
    seconds: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """All finished parts of a figure, by key."""

    size: Size
    curves: dict[str, Runs]
    measurements: dict[str, Measured]

    def curve(self, key: str) -> Runs:
        """A curve."""
        if key not in self.curves:
            raise UnknownName("curve", key, self.curves)
        return self.curves[key]

    def ending(self, end: str) -> list[Runs]:
        """All curves whose keys end so."""
        return [runs for key, runs in self.curves.items() if key.endswith(end)]

    def arrays(self, key: str) -> Mapping[str, Array]:
        """What a measurement returned."""
        if key not in self.measurements:
            raise UnknownName("measurement", key, self.measurements)
        return self.measurements[key].arrays
