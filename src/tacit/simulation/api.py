"""``tacit.simulate``: many seeded runs of one agent on one problem."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit._version import __version__
from tacit.agents.base import Agent
from tacit.arrays import IntArray
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.folders import made_with
from tacit.forecast import bind, pair
from tacit.kernels.compiler import working_time
from tacit.learned import LearnedPolicy
from tacit.privacy.guarantee import Guarantee
from tacit.problems.base import Problem
from tacit.simulation import saving
from tacit.simulation.checkpoints import checkpoints as checkpoint_grid
from tacit.simulation.compiled import compiled_run
from tacit.simulation.result import Result
from tacit.simulation.runs import Run, StepwiseRun
from tacit.simulation.scheduler import Keep, Progress, advance_all
from tacit.validate import integer

MOST_EPISODES = 10**15
MOST_SEEDS = 10_000


def simulate(
    problem: Problem | str,
    agent: Agent | str,
    episodes: int,
    seeds: int = 1,
    *,
    seed: int = 0,
    workers: int | None = None,
    checkpoints: int | str = "log",
    reveal: Iterable[str] = (),
    participations: int = 1,
    progress: Progress | None = None,
    compiled: bool = True,
    stop: threading.Event | None = None,
    resume: str | Path | None = None,
) -> Result:
    """Run ``agent`` on ``problem`` and score every policy exactly against the optimum.

    Results are identical on repetition and for any number of workers. Ctrl-C ends the runs early
    and returns what was done (``result.interrupted``). After its last user every run plans once
    more: ``result.policies``, and ``result.policy`` for one of them.

    Args:
        problem: the truth the simulated users live in, or its name.
        agent: who learns, or its name.
        episodes: number of users K, one episode each.
        seeds: number of independent runs.
        seed: root of all random streams.
        workers: threads; by default one per core, at most one per run.
        checkpoints: "log", or a number n to record every n-th episode.
        reveal: facts of the problem told to the learner, for example ``["reward"]``.
        participations: how often one person may take part; the guarantee covers all of them.
        progress: called now and then with (episodes done, cumulative regret), means over runs.
        compiled: False runs the stepwise driver even where there is a faster run, for the same
            results, or in some cases the same law (docs/architecture.md#way).
        stop: set it from another thread to end the runs early, as Ctrl-C does in the main one.
        resume: a folder in which the runs keep where they stand. What it holds already is not done
            again: the result is that of runs which were never interrupted, bit for bit, timing
            apart. Another configuration is refused.

    Returns:
        Curves, guarantee and everything needed to report them.
    """
    problem, agent = pair(problem, agent)
    K = integer(episodes, "episodes", low=1, high=MOST_EPISODES)
    count = integer(seeds, "seeds", low=1, high=MOST_SEEDS)
    root = integer(seed, "seed", low=0)
    threads = integer(workers, "workers", low=1) if workers is not None else os.cpu_count() or 1
    bound = bind(problem, agent, K, reveal, participations)
    grid = checkpoint_grid(K, checkpoints)
    stop = stop or threading.Event()
    runs = [new_run(problem, bound, root, run, grid, stop, compiled) for run in range(count)]
    keep = None
    if resume is not None:
        points = checkpoints if isinstance(checkpoints, str) else int(checkpoints)
        how = {"seeds": count, "seed": root, "checkpoints": points, "compiled": compiled}
        keep = _keeper(Path(resume), runs, {**_what(problem, agent, bound), **how})
    before = sum(int(run.score.at[0]) for run in runs)
    began = working_time()
    finished = advance_all(runs, K, threads, stop, progress, keep)
    seconds = working_time() - began
    guarantee = bound.guarantee.as_simulated()
    done = sum(int(run.score.at[0]) for run in runs) - before
    found = outcome(problem, agent, bound, guarantee, root, runs, grid, seconds, finished)
    return Result(**{**found, "episodes_per_second": done / max(seconds, 1e-9)})


def outcome(
    problem: Problem,
    agent: Agent,
    bound: BoundAgent,
    guarantee: Guarantee,
    root: int,
    runs: Sequence[Run],
    grid: IntArray,
    seconds: float,
    finished: bool,
) -> dict[str, Any]:
    """What every result holds, of runs that were advanced together."""
    about = {"problem": problem.name, "agent": agent.name, "seed": root}
    recorded = min(int(run.score.at[1]) for run in runs)
    return {
        "problem": problem.describe(),
        "agent": {
            "name": agent.name,
            "parameters": agent.parameters(),
            "notes": list(agent.notes(bound.task)),
        },
        "guarantee": guarantee,
        "seed": root,
        "seeds": tuple(range(len(runs))),
        "requested_episodes": bound.task.users,
        "episodes": grid[:recorded],
        "regret": np.array([run.score.regret[:recorded] for run in runs]),
        "reward": np.array([run.score.reward[:recorded] for run in runs]),
        "interrupted": not finished,
        "seconds": seconds,
        "episodes_per_second": sum(int(run.score.at[0]) for run in runs) / max(seconds, 1e-9),
        "policies": _policies(runs, bound, guarantee, about) if finished else (),
    }


def _what(problem: Problem, agent: Agent, bound: BoundAgent) -> dict[str, Any]:
    """What is run, and with which programs: digits depend on them."""
    return {
        "problem": problem.describe(),
        "agent": {"name": agent.name, "parameters": agent.parameters()},
        "episodes": bound.task.users,
        "revealed": list(bound.task.revealed),
        "participations": bound.task.participations,
        "task": bound.task.digest(),
        "guarantee": bound.guarantee.digest(),
        "versions": {"tacit": __version__, **made_with()["versions"]},
    }


def _keeper(folder: Path, runs: Sequence[Run], configuration: dict[str, Any]) -> Keep:
    """Bring runs to where the folder says they stood, and keep it up to date.

    A run whose mechanism has no form to be stored in is not kept, and begins anew.
    """
    kept = saving.Progress(folder, configuration)
    for number, run in enumerate(runs):
        arrays = kept.load(number)
        if arrays is not None:
            saving.restore(run, arrays)
    numbers = {id(run): number for number, run in enumerate(runs)}

    def keep(run: Run) -> None:
        with suppress(InvalidInput):
            kept.save(numbers[id(run)], saving.state(run))

    return keep


def _policies(
    runs: Sequence[Run], bound: BoundAgent, guarantee: Guarantee, about: dict[str, Any]
) -> tuple[LearnedPolicy, ...]:
    """What every run planned after its last user, without what only later users would need."""
    finals = [run.final for run in runs if run.final is not None]
    return tuple(
        LearnedPolicy.of(
            replace(publication, context={}), bound.task, guarantee, users, about=about | {"run": i}
        )
        for i, (publication, users) in enumerate(finals)
    )


def new_run(
    problem: Problem,
    agent: BoundAgent,
    root: int,
    run: int,
    grid: IntArray,
    stop: threading.Event,
    compiled: bool = True,
) -> Run:
    """One run before its first user: the fastest there is for this agent, or the driver itself."""
    fast = compiled_run(problem, agent, root, run, grid) if compiled else None
    return fast or StepwiseRun(problem, agent, root, run, grid, stop)
