"""Choose a parameter on seeds that are never reported, and say that it was chosen.

A value picked by its regret and reported on the same seeds would look better than it is. Choosing
also uses a simulator that knows the true problem: in front of real people it would cost privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.agents.catalogue import agents
from tacit.arrays import Array
from tacit.sweep.grid import Planned
from tacit.sweep.spec import Choose
from tacit.sweep.store import Finished
from tacit.sweep.tasks import Configuration, Task


@dataclass(frozen=True)
class Chosen:
    """The outcome of a choice for one configuration.

    Attributes:
        configuration: with the value that was chosen.
        parameter: which parameter.
        values: its candidates, in the order of the spec.
        regret: final regret [candidates, choosing seeds].
        seeds: root seeds of the choice.
    """

    configuration: Configuration
    parameter: str
    values: tuple[Any, ...]
    regret: Array
    seeds: tuple[int, ...]

    @property
    def value(self) -> Any:
        """What was chosen."""
        return self.configuration.agent.parameters[self.parameter]

    def to_json(self) -> dict[str, Any]:
        """Plain values for the manifest."""
        default = agents.entry(self.configuration.agent.name).parameters[self.parameter].default
        return {
            "parameter": self.parameter,
            "value": self.value,
            "default": default,
            "seeds": list(self.seeds),
            "candidates": [
                {"value": value, "mean": float(row.mean()), "per_seed": row.tolist()}
                for value, row in zip(self.values, self.regret, strict=True)
            ],
            "brief": self._brief(),
            "deviation": self._deviation(),
        }

    def _brief(self) -> str:
        tried = ", ".join(f"{value}" for value in self.values)
        return (
            f"{self.parameter} = {self.value} was chosen among {tried} by mean regret on "
            f"{len(self.seeds)} root seeds that are not reported"
        )

    def _deviation(self) -> str:
        """What a reader must know; the bonus scale does not touch the noise."""
        theory = ""
        if self.parameter == "bonus_scale":
            theory = (
                "a bonus scale other than the theorem's deviates from the theory: its regret bound "
                "does not hold for it; the privacy guarantee does not depend on it. "
            )
        return (
            f"{theory}{self.parameter} was chosen by a scorer that knows the true problem; a "
            "choice on real people's data would have to be paid for from the privacy budget"
        )


def tasks_of(planned: Planned, choose: Choose | None) -> list[Task]:
    """What must be run before a value can be chosen."""
    seeds = choose.seeds if choose is not None else ()
    return [Task(c, seed) for seed in seeds for c in planned.candidates]


def pick(planned: Planned, choose: Choose, finished: Finished) -> Chosen:
    """The candidate of least mean final regret; of equal ones the first."""
    regret = np.array(
        [_finals(candidate, choose.seeds, finished) for candidate in planned.candidates]
    )
    values = [c.agent.parameters[choose.parameter] for c in planned.candidates]
    best = planned.candidates[int(regret.mean(axis=1).argmin())]
    return Chosen(best, choose.parameter, tuple(values), regret, choose.seeds)


def _finals(candidate: Configuration, seeds: Sequence[int], finished: Finished) -> list[float]:
    return [finished.outcome(Task(candidate, seed))["regret"][-1] for seed in seeds]
