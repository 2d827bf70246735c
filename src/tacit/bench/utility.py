"""Utility side by side: every agent that fits, on one problem per family, at one (epsilon, delta).

Regret is given as a share of what the baseline policy loses (uniform actions, or no input): 0 is
the optimum, 1 learns nothing that the baseline does not know, more than 1 is worse than not trying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from tacit.agents.catalogue import agents, make_agent
from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.privacy.guarantee import Guarantee
from tacit.simulation.naming import Named
from tacit.sweep.pool import Done, run_on_processes
from tacit.sweep.tasks import Configuration, Task

EPSILON, DELTA = 3.0, 1e-5


@dataclass(frozen=True)
class Arena:
    """A problem that stands for a family, and how many users it has."""

    family: str
    problem: Named
    episodes: int
    quick_episodes: int


ARENAS = (
    Arena("tables", Named("random-mdp", {"seed": 1}), 10_000, 1_000),
    Arena("linear mixtures", Named("remap-walk"), 5_000, 500),
    Arena("linear MDPs", Named("synthetic-linear", {"actions": 20, "horizon": 5}), 5_000, 500),
    Arena("linear control", Named("lq-scalar"), 2_000, 200),
)


@dataclass(frozen=True)
class Outcome:
    """An arena after the runs.

    Attributes:
        scored: agents that fit, best first.
        does_not_fit: why the others do not.
        failed: agents that broke down, and how; nobody should be here.
    """

    scored: list[Scored]
    does_not_fit: dict[str, str]
    failed: dict[str, str]


@dataclass(frozen=True)
class Scored:
    """One agent in one arena.

    Attributes:
        agent: its name.
        guarantee: what it guaranteed.
        share: regret over the baseline's, one number per seed.
        seconds: processor-bound time per run, on average.
    """

    agent: str
    guarantee: Guarantee
    share: Array
    seconds: float

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% Student t interval of the mean share."""
        n = len(self.share)
        if n < 2:
            return None
        half = float(stdtrit(n - 1, 0.975)) * float(self.share.std(ddof=1)) / n**0.5
        return float(self.share.mean()) - half, float(self.share.mean()) + half


def measure(
    arena: Arena, seeds: int, quick: bool, workers: int, watch: Callable[[str], None]
) -> Outcome:
    """Run every agent, and score those that fit."""
    episodes = arena.quick_episodes if quick else arena.episodes
    tasks = [
        Task(Configuration(arena.problem, agent, episodes), seed)
        for agent in _contenders()
        for seed in range(seeds)
    ]
    runs: dict[str, list[Done]] = {}
    for done in _watched(run_on_processes(tasks, workers), arena, watch):
        runs.setdefault(done.task.configuration.agent.name, []).append(done)
    result = Outcome([], {}, {})
    for name, done_runs in runs.items():
        bad = [done.outcome for done in done_runs if done.failed]
        if bad:
            where = result.failed if bad[0]["again"] else result.does_not_fit
            where[name] = bad[0]["error"]
        else:
            result.scored.append(_score(name, [done.outcome for done in done_runs]))
    result.scored.sort(key=lambda one: float(one.share.mean()))
    return result


def _contenders() -> list[Named]:
    """All registered agents; private ones at the same epsilon, and delta where they take one."""
    found = []
    for entry in agents:
        asked = {"epsilon": EPSILON, "delta": DELTA}
        given = {key: value for key, value in asked.items() if key in entry.parameters}
        try:
            make_agent(entry.name, **given)
        except InvalidInput:  # purely epsilon-private: stronger than any delta
            given.pop("delta", None)
        found.append(Named(entry.name, given))
    return found


def _watched(done: Iterable[Done], arena: Arena, watch: Callable[[str], None]) -> Iterable[Done]:
    for number, one in enumerate(done):
        watch(f"{arena.family}: {number + 1} runs")
        yield one


def _score(name: str, outcomes: list[dict[str, Any]]) -> Scored:
    facts = outcomes[0]["problem"]
    users = outcomes[0]["episode"][-1]
    lost = users * (facts["optimal_value"] - facts["baseline"]["value"])
    return Scored(
        agent=name,
        guarantee=Guarantee.from_json(outcomes[0]["guarantee"]),
        share=np.sort([outcome["regret"][-1] / lost for outcome in outcomes]),
        seconds=float(np.mean([outcome["timing"]["run"] for outcome in outcomes])),
    )
