"""What a figure is: what is computed, how it is drawn, and which claims it must bear out."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput, UnknownName
from tacit.experiment_spec import ExperimentSpec, Named
from tacit.privacy.guarantee import Guarantee
from tacit.simulation.result import Result
from tacit.validate import choice
from tacit_lab.sweep.task import SweepTask, digest

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

__all__ = ["Claim", "Curve", "Figure", "Judge", "Measurement", "Named", "Part", "Size"]


@dataclass(frozen=True)
class Size:
    """How much of a figure is computed.

    Attributes:
        episodes: users per run.
        instances: problems that a curve is averaged over.
        runs: independent runs on each problem, or draws of a measurement.
        takes: how long it takes in a figure, and how that is known.
    """

    episodes: int
    instances: int
    runs: int
    takes: str = field(default="", compare=False)

    def to_json(self) -> dict[str, int]:
        """The numbers."""
        return {"episodes": self.episodes, "instances": self.instances, "runs": self.runs}

    def taking(self, time: str) -> Size:
        """The same, with the time it takes in another figure."""
        return replace(self, takes=time)


SCALES = ("quick", "full", "paper")
"""Sizes that have a name."""


@dataclass(frozen=True)
class Curve:
    """Runs of one agent, averaged over several problems.

    Attributes:
        key: how claims refer to it; unique in its figure.
        label: what the legend calls it; the true guarantee is added to it.
        agent: who learns.
        problems: on what; problem i has the root seed ``seed + i``, whoever learns.
        size: users per run and runs on each problem.
        seed: root of the random streams of the first problem.
    """

    key: str
    label: str
    agent: Named
    problems: tuple[Named, ...]
    size: Size
    seed: int = 0

    @property
    def episodes(self) -> int:
        """Users per run."""
        return self.size.episodes

    def tasks(self) -> list[SweepTask]:
        """What is run for it, one task per problem."""
        first = ExperimentSpec(
            problem=self.problems[0], agent=self.agent, episodes=self.episodes, runs=self.size.runs
        )
        return [
            SweepTask(replace(first, problem=problem, seed=self.seed + place))
            for place, problem in enumerate(self.problems)
        ]


@dataclass(frozen=True)
class Measurement:
    """Numbers that are not regret: a seeded function of JSON parameters that returns arrays.

    Attributes:
        key: how claims refer to it; unique in its figure.
        label: what the progress line calls it.
        measure: a function of a module, called with the parameters.
        parameters: its keyword arguments, plain JSON values.
    """

    key: str
    label: str
    measure: Callable[..., Mapping[str, Array]]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def payload(self) -> dict[str, Any]:
        """What determines its outcome; the code of its own module is part of that."""
        module = inspect.getmodule(self.measure)
        return {
            "measure": f"{self.measure.__module__}.{self.measure.__qualname__}",
            "code": inspect.getsource(module) if module else "",
            "parameters": dict(self.parameters),
        }

    @property
    def digest(self) -> str:
        """Its name on disk."""
        return digest(self.payload())

    def run(self) -> dict[str, Any]:
        """Its outcome as plain values."""
        began = time.perf_counter()
        arrays = self.measure(**self.parameters)
        return {
            "arrays": {name: np.asarray(array).tolist() for name, array in arrays.items()},
            "seconds": time.perf_counter() - began,
        }


Part: TypeAlias = Curve | Measurement


LEAST = 1e-3
"""Regret below this counts as this much where ratios are taken, so that they exist."""


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
    def rates(self) -> Array:
        """Regret per episode of every run, at the end."""
        return self.runs[:, -1] / self.curve.episodes

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

    def matching(self, pattern: str = "*") -> list[Runs]:
        """All curves whose keys are like that, as names of files are."""
        return [runs for key, runs in self.curves.items() if fnmatchcase(key, pattern)]

    def arrays(self, key: str) -> Mapping[str, Array]:
        """What a measurement returned."""
        if key not in self.measurements:
            raise UnknownName("measurement", key, self.measurements)
        return self.measurements[key].arrays


@dataclass(frozen=True)
class Claim:
    """One statement of a paper beside what was measured.

    Attributes:
        claim: the statement, in our words.
        expected: what the measurement must show for it to hold.
        measured: the numbers it is judged by.
        holds: None where this size cannot decide.
        why: the reason, wherever it does not plainly hold.
    """

    claim: str
    expected: str
    measured: Mapping[str, float]
    holds: bool | None
    why: str = ""

    def __post_init__(self) -> None:
        if self.holds is not True and not self.why:
            raise InvalidInput(f"the claim {self.claim!r} does not hold, and must say why")


Judge: TypeAlias = Callable[[Evidence], Claim]


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    Attributes:
        id: what people type, "paper/figure-n".
        title: what it shows, in one sentence.
        full: the largest size whose claims are decided in about twenty minutes on two cores.
        quick: a size that takes less than two minutes on two cores.
        parts: what is computed at a size.
        draw: the picture.
        claims: what must show up, one function each.
        notes: facts a reader of the result should know, or a function that tells them at a size.
        paper_size: the size of the paper, where the full one is smaller.
    """

    id: str
    title: str
    full: Size
    quick: Size
    parts: Callable[[Size], Sequence[Part]]
    draw: Callable[[Evidence], Picture]
    claims: Sequence[Judge]
    notes: Sequence[str] | Callable[[Size], Sequence[str]] = ()
    paper_size: Size | None = None

    @property
    def paper(self) -> str:
        """Which paper it is from."""
        return self.id.partition("/")[0]

    def noted(self, size: Size) -> list[str]:
        """The notes at a size."""
        return list(self.notes(size) if callable(self.notes) else self.notes)

    def at(self, scale: str) -> Size:
        """How much is computed at a scale, with the time that takes."""
        named = {"quick": self.quick, "full": self.full, "paper": self.paper_size or self.full}
        return named[choice(scale, "size", SCALES)]
