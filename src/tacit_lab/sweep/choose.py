"""Choose a parameter on seeds that are never reported, and say that it was chosen.

A value picked by its regret and reported on the same seeds would look better than it is. Choosing
also uses a simulator that knows the true problem: in front of real people it would cost privacy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tacit.agents.catalogue import agents
from tacit_lab.sweep.spec import Choose, Planned
from tacit_lab.sweep.store import ResultStore
from tacit_lab.sweep.task import SweepTask


def tasks_of(planned: Planned, choose: Choose | None) -> list[SweepTask]:
    """What must be run before a value can be chosen."""
    seeds = choose.seeds if choose is not None else ()
    return [SweepTask(c.at(seed)) for seed in seeds for c in planned.candidates]


def pick(planned: Planned, choose: Choose, finished: ResultStore) -> Planned:
    """The candidate of least mean final regret, of equal ones the first; and how it was chosen."""
    regret = np.array(
        [
            [finished.outcome(SweepTask(candidate.at(seed)))["regret"][-1] for seed in choose.seeds]
            for candidate in planned.candidates
        ]
    )
    best = planned.candidates[int(regret.mean(axis=1).argmin())]
    values = [c.agent.parameters[choose.parameter] for c in planned.candidates]
    value = best.agent.parameters[choose.parameter]
    tried = ", ".join(f"{value}" for value in values)
    chosen: dict[str, Any] = {
        "parameter": choose.parameter,
        "value": value,
        "default": agents.entry(best.agent.name).parameters[choose.parameter].default,
        "seeds": list(choose.seeds),
        "candidates": [
            {"value": each, "mean": float(row.mean()), "per_seed": row.tolist()}
            for each, row in zip(values, regret, strict=True)
        ],
        "brief": f"{choose.parameter} = {value} was chosen among {tried} by mean regret on "
        f"{len(choose.seeds)} root seeds that are not reported",
        "deviation": _deviation(choose.parameter),
    }
    return replace(planned, configuration=best, chosen=chosen)


def _deviation(parameter: str) -> str:
    """What a reader must know; the bonus scale does not touch the noise."""
    theory = ""
    if parameter == "bonus_scale":
        theory = (
            "a bonus scale other than the theorem's deviates from the theory: its regret bound "
            "does not hold for it; the privacy guarantee does not depend on it. "
        )
    return (
        f"{theory}{parameter} was chosen by a scorer that knows the true problem; a choice on real "
        "people's data would have to be paid for from the privacy budget"
    )
