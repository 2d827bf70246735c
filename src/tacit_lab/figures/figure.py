"""What a figure is: what is computed, how it is drawn, and which claims it must bear out."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.validate import choice
from tacit_lab.sweep.task import Configuration, Named, SweepTask, digest

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from tacit_lab.figures.evidence import Evidence

__all__ = ["Claim", "Curve", "Figure", "Judge", "Measurement", "Named", "Part", "Size"]


@dataclass(frozen=True)
class Size:
    """How much of a figure is computed.

    Attributes:
        episodes: users per run.
        instances: problems that a curve is averaged over.
        runs: independent runs on each problem, or draws of a measurement.
    """

    episodes: int
    instances: int
    runs: int


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
        return [
            SweepTask(
                Configuration(problem, self.agent, self.episodes, runs=self.size.runs),
                self.seed + place,
            )
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

    def order(self) -> dict[str, Any]:
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
        return digest(self.order())

    def run(self) -> dict[str, Any]:
        """Its outcome as plain values."""
        began = time.perf_counter()
        arrays = self.measure(**self.parameters)
        return {
            "arrays": {name: np.asarray(array).tolist() for name, array in arrays.items()},
            "seconds": time.perf_counter() - began,
        }


Part: TypeAlias = Curve | Measurement


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


Judge: TypeAlias = Callable[["Evidence"], Claim]


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    Attributes:
        id: what people type, "paper/figure-n".
        title: what it shows, in one sentence.
        full: the largest size whose claims are decided in about twenty minutes on two cores.
        quick: a size that takes less than two minutes on two cores.
        full_time: how long the full size takes, and how that is known.
        quick_time: likewise.
        parts: what is computed at a size.
        draw: the picture.
        claims: what must show up, one function each.
        notes: facts a reader of the result should know, at a size.
        paper_size: the size of the paper, where the full one is smaller.
        paper_time: how long that takes, and how that is known.
    """

    id: str
    title: str
    full: Size
    quick: Size
    full_time: str
    quick_time: str
    parts: Callable[[Size], Sequence[Part]]
    draw: Callable[[Evidence], Picture]
    claims: Sequence[Judge]
    notes: Callable[[Size], Sequence[str]] = lambda size: ()
    paper_size: Size | None = None
    paper_time: str = ""

    @property
    def paper(self) -> str:
        """Which paper it is from."""
        return self.id.partition("/")[0]

    def at(self, scale: str) -> tuple[Size, str]:
        """How much is computed at a scale, and how long that takes."""
        scale = choice(scale, "size", SCALES)
        if scale == "quick":
            return self.quick, self.quick_time
        if scale == "full" or self.paper_size is None:
            return self.full, self.full_time
        return self.paper_size, self.paper_time
