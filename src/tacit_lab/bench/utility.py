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
from typing import Any, NamedTuple

import numpy as np

from tacit.agents.catalogue import agents, from_people
from tacit.experiment_spec import Named
from tacit.policies.tabular import StochasticPolicy
from tacit.privacy.guarantee import Guarantee
from tacit.problems.catalogue import make_problem
from tacit.problems.tabular import TabularMDP
from tacit.util.intervals import mean_interval
from tacit_lab.sweep.pool import Done, run_on_processes
from tacit_lab.sweep.run import SweepProgress, run_all
from tacit_lab.sweep.spec import CHOOSING_SEEDS_FROM, Choose, Planned, Spec, SweepCase, plan
from tacit_lab.sweep.task import ResultStore, SweepTask

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


class Seeds(NamedTuple):
    """Root seeds: of the choice of scales, and of the report."""

    choosing: tuple[int, ...]
    reported: tuple[int, ...]


QUICK = Seeds((CHOOSING_SEEDS_FROM,), (0, 1))
FULL = Seeds((CHOOSING_SEEDS_FROM, CHOOSING_SEEDS_FROM + 1), (0, 1, 2, 3, 4))


def report(arena: Arena, quick: bool, workers: int, watch: Callable[[str], None]) -> dict[str, Any]:
    """Choose scales, run every agent, score those that fit; ``tacit reproduce bench --json``.

    Of those that do not fit it says why, and of those that broke down (nobody should) how.
    """
    seeds, episodes = (QUICK, arena.quick_episodes) if quick else (FULL, arena.episodes)
    scored: list[dict[str, Any]] = []
    does_not_fit: dict[str, str] = {}
    failed: dict[str, str] = {}

    def run(tasks: Sequence[SweepTask]) -> Generator[Done, None, None]:
        for done in run_on_processes(tasks, workers):
            if done.failed:
                bad = failed if done.outcome["again"] else does_not_fit
                bad[done.task.spec.agent.name] = done.outcome["error"]
            yield done

    def tell(now: SweepProgress) -> None:
        watch(f"{arena.family}: {now.done + len(now.failures):,} of {now.total:,} runs")

    with TemporaryDirectory() as folder:
        finished = ResultStore(Path(folder))
        work = SweepProgress(finished, run, tell)
        for item in run_all(_planned(arena, episodes, seeds), work):
            tasks = item.tasks()
            if all(task in finished for task in tasks):
                scored.append(_score([finished.outcome(task) for task in tasks], item.chosen))
    return {
        "family": arena.family,
        "problem": asdict(arena.problem),
        "episodes": episodes,
        "seeds": seeds._asdict(),
        "asked": {"epsilon": EPSILON, "delta": DELTA},
        "myopic": myopic_share(arena.problem),
        "agents": sorted(scored, key=lambda one: float(one["regret_over_baseline"])),
        "does_not_fit": does_not_fit,
        "failed": failed,
    }


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


def _planned(arena: Arena, episodes: int, seeds: Seeds) -> list[Planned]:
    """All registered agents at one (epsilon, delta), with candidates where they have a scale.

    Published ones in the calibration with the least noise.
    """
    case = SweepCase(
        problems=(arena.problem,),
        agents=tuple(Named(entry.name) for entry in from_people()),
        epsilon=(EPSILON,),
        delta=(DELTA,),
        calibration=("tight",),
        episodes=(episodes,),
        seeds=seeds.reported,
    )
    choose = Choose(SCALE, SCALES, seeds.choosing, None)
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


def _score(outcomes: Sequence[dict[str, Any]], chosen: Mapping[str, Any] | None) -> dict[str, Any]:
    """One agent: regret over the baseline's, a number per reported seed, and what it promised."""
    facts, users = outcomes[0]["problem"], outcomes[0]["episode"][-1]
    lost = users * (facts["optimal_value"] - facts["baseline"]["value"])
    guarantee = Guarantee.from_json(outcomes[0]["guarantee"])
    share = np.array([outcome["regret"][-1] / lost for outcome in outcomes])
    mean = mean_interval(share, least=0.0)
    return {
        "agent": outcomes[0]["agent"]["name"],
        "model": guarantee.model,
        "guarantee": guarantee.brief(),
        "told": list(guarantee.revealed),
        "scale": _scale(chosen),
        "chosen": chosen,
        "regret_over_baseline": mean.value,
        "ci95": [mean.low, mean.high],
        "per_seed": share.tolist(),
        "seconds_per_run": float(np.mean([outcome["timing"]["seconds"] for outcome in outcomes])),
    }


def _scale(chosen: Mapping[str, Any] | None) -> str:
    """The chosen bonus scale in words; empty for an agent that has none."""
    if chosen is None:
        return ""
    first, *others = [candidate["per_seed"] for candidate in chosen["candidates"]]
    if all(other == first for other in others):
        return "no effect"
    return "default" if chosen["value"] is None else f"{chosen['value']:g}"
