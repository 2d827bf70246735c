"""Utility side by side: every agent that fits, on a few problems, at one (epsilon, delta).

Regret is given as a share of what the baseline policy loses (uniform actions, or no input): 0 is
the optimum, 1 learns nothing that the baseline does not know, more than 1 is worse than not trying.
Every agent with a bonus scale has it chosen from one grid, on seeds that are not reported; an
agent's own default, which for some is the theorem's constant, is always among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tacit.agents.catalogue import agents, from_people
from tacit.arrays import Array
from tacit.experiment_spec import Named
from tacit.policies.tabular import StochasticPolicy
from tacit.privacy.guarantee import Guarantee
from tacit.problems.catalogue import make_problem
from tacit.problems.tabular import TabularMDP
from tacit.util.intervals import Interval, mean_interval
from tacit_lab.sweep.pool import Done, run_on_processes
from tacit_lab.sweep.run import SweepProgress, run_all
from tacit_lab.sweep.spec import CHOOSING_SEEDS_FROM, Choose, Planned, Spec, SweepCase, plan
from tacit_lab.sweep.store import ResultStore
from tacit_lab.sweep.task import SweepTask

EPSILON, DELTA = 3.0, 1e-5
SCALE = "bonus_scale"
SCALES = (1.0, 0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Arena:
    """A problem that stands for a family, and how many users it has."""

    family: str
    problem: Named
    episodes: int
    quick_episodes: int


_RANDOM = {"states": 4, "actions": 2, "horizon": 5, "seed": 0}
ARENAS = (
    Arena("tables", Named("random-mdp", _RANDOM), 5_000, 200),
    Arena("tables, far goal", Named("river-swim", {"states": 4, "horizon": 10}), 5_000, 200),
    Arena("linear mixtures", Named("remap-walk"), 5_000, 200),
    Arena("linear MDPs", Named("synthetic-linear", {"actions": 20, "horizon": 5}), 5_000, 200),
    Arena("linear control", Named("lq-scalar"), 2_000, 100),
)


@dataclass(frozen=True)
class Seeds:
    """Root seeds: of the choice of scales, and of the report."""

    choosing: tuple[int, ...]
    reported: tuple[int, ...]

    @classmethod
    def of(cls, quick: bool) -> Seeds:
        """One and two, or two and five."""
        choosing, reported = (1, 2) if quick else (2, 5)
        begin = CHOOSING_SEEDS_FROM
        return cls(tuple(range(begin, begin + choosing)), tuple(range(reported)))


@dataclass(frozen=True)
class Scored:
    """One agent in one arena.

    Attributes:
        agent: its name.
        guarantee: what it guaranteed.
        share: regret over the baseline's, one number per reported seed, in order.
        seconds: processor-bound time per run, on average.
        chosen: the choice of its bonus scale; None if it has none.
    """

    agent: str
    guarantee: Guarantee
    share: Array
    seconds: float
    chosen: Mapping[str, Any] | None

    @property
    def mean(self) -> Interval:
        """Mean share with its 95% interval."""
        return mean_interval(self.share, least=0.0)

    @property
    def scale(self) -> str:
        """The chosen bonus scale in words."""
        if self.chosen is None:
            return ""
        first, *others = [candidate["per_seed"] for candidate in self.chosen["candidates"]]
        if all(other == first for other in others):
            return "no effect"
        value = self.chosen["value"]
        return "default" if value is None else f"{value:g}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        mean = self.mean
        return {
            "agent": self.agent,
            "model": self.guarantee.model,
            "guarantee": self.guarantee.brief(),
            "told": list(self.guarantee.revealed),
            "scale": self.scale,
            "chosen": self.chosen,
            "regret_over_baseline": mean.value,
            "ci95": [mean.low, mean.high],
            "per_seed": self.share.tolist(),
            "seconds_per_run": self.seconds,
        }


@dataclass(frozen=True)
class ArenaOutcome:
    """An arena after the runs.

    Attributes:
        scored: agents that fit, best first.
        myopic: share lost by acting on the immediate reward alone; None where that means nothing.
        does_not_fit: why the others do not.
        failed: agents that broke down, and how; nobody should be here.
    """

    scored: list[Scored]
    myopic: float | None
    does_not_fit: dict[str, str]
    failed: dict[str, str]


def report(arena: Arena, quick: bool, workers: int, watch: Callable[[str], None]) -> dict[str, Any]:
    """An arena in plain values, as ``tacit reproduce bench --json`` prints it."""
    seeds, outcome = Seeds.of(quick), measure(arena, quick, workers, watch)
    return {
        "family": arena.family,
        "problem": asdict(arena.problem),
        "episodes": arena.quick_episodes if quick else arena.episodes,
        "seeds": asdict(seeds),
        "asked": {"epsilon": EPSILON, "delta": DELTA},
        "myopic": outcome.myopic,
        "agents": [one.to_json() for one in outcome.scored],
        "does_not_fit": outcome.does_not_fit,
        "failed": outcome.failed,
    }


def measure(arena: Arena, quick: bool, workers: int, watch: Callable[[str], None]) -> ArenaOutcome:
    """Choose scales, run every agent, and score those that fit."""
    seeds = Seeds.of(quick)
    choose = Choose(SCALE, SCALES, seeds.choosing, None)
    planned = _planned(arena, arena.quick_episodes if quick else arena.episodes, seeds, choose)
    result = ArenaOutcome([], myopic_share(arena.problem), {}, {})

    def run(tasks: Sequence[SweepTask]) -> Generator[Done[SweepTask], None, None]:
        for done in run_on_processes(tasks, workers):
            if done.failed:
                bad = result.failed if done.outcome["again"] else result.does_not_fit
                bad[done.task.spec.agent.name] = done.outcome["error"]
            yield done

    def tell(now: SweepProgress) -> None:
        watch(f"{arena.family}: {now.done + len(now.failures):,} of {now.total:,} runs")

    with TemporaryDirectory() as folder:
        finished = ResultStore(Path(folder))
        work = SweepProgress(finished, run, tell)
        for item in run_all(planned, choose, work):
            tasks = [SweepTask(item.configuration.at(seed)) for seed in item.seeds]
            if all(task in finished for task in tasks):
                outcomes = [finished.outcome(task) for task in tasks]
                result.scored.append(_score(outcomes, item.chosen))
    result.scored.sort(key=lambda one: one.mean.value)
    return result


def myopic_share(named: Named) -> float | None:
    """Regret share of the policy that knows all mean rewards and looks one step ahead.

    Near 0 says that nobody needs to plan on this problem, and that it says little. Ties are broken
    uniformly.
    """
    problem = make_problem(named.name, **named.parameters)
    if not isinstance(problem, TabularMDP):
        return None
    best = problem.R == problem.R.max(axis=2, keepdims=True)
    greedy = best / best.sum(axis=2, keepdims=True)
    shape = (problem.horizon, problem.states, problem.actions)
    value = problem.value(StochasticPolicy(np.ascontiguousarray(np.broadcast_to(greedy, shape))))
    optimum = problem.optimal_value()
    return round((optimum - value) / (optimum - problem.baseline()[1]), 9) + 0.0  # no -0


def _contenders() -> list[Named]:
    return [Named(entry.name) for entry in from_people()]


def _planned(arena: Arena, episodes: int, seeds: Seeds, choose: Choose) -> list[Planned]:
    """All registered agents at one (epsilon, delta), with candidates where they have a scale."""
    case = SweepCase(
        problems=(arena.problem,),
        agents=tuple(_contenders()),
        epsilon=(EPSILON,),
        delta=(DELTA,),
        episodes=(episodes,),
        seeds=seeds.reported,
    )
    spec = Spec(arena.family, "", Path(), (), "log", (case,), choose)
    return [_with_default(item) for item in plan(spec)]


def _with_default(item: Planned) -> Planned:
    """The agent's own scale as the last candidate, if the grid does not have it."""
    agent = item.configuration.agent
    if not item.candidates:
        return item
    default = agents.entry(agent.name).parameters[SCALE].default
    if default in SCALES:
        return item
    own = Named(agent.name, {**agent.parameters, SCALE: default})
    return replace(item, candidates=(*item.candidates, replace(item.configuration, agent=own)))


def _score(outcomes: Sequence[dict[str, Any]], chosen: Mapping[str, Any] | None) -> Scored:
    facts, users = outcomes[0]["problem"], outcomes[0]["episode"][-1]
    lost = users * (facts["optimal_value"] - facts["baseline"]["value"])
    return Scored(
        agent=outcomes[0]["agent"]["name"],
        guarantee=Guarantee.from_json(outcomes[0]["guarantee"]),
        share=np.array([outcome["regret"][-1] / lost for outcome in outcomes]),
        seconds=float(np.mean([outcome["timing"]["seconds"] for outcome in outcomes])),
        chosen=chosen,
    )
