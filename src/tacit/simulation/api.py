"""``tacit.simulate``: many seeded runs of one agent on one problem."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit._version import __version__
from tacit.agents.base import Agent
from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.forecast import bind, pair
from tacit.kernels.compiler import working_time
from tacit.learned_policy import LearnedPolicy
from tacit.learner import BoundAgent
from tacit.privacy.guarantee import Guarantee
from tacit.problems.base import Problem
from tacit.simulation import resume as saving
from tacit.simulation.attendance import Attendance, attend
from tacit.simulation.checkpoints import checkpoints as checkpoint_grid
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.result import Result, Returning
from tacit.simulation.runs.base import Run
from tacit.simulation.runs.stepwise import StepwiseRun
from tacit.simulation.runs.uncounted import FreeRiderRun
from tacit.simulation.scheduler import Keep, Progress, advance_all
from tacit.streams import stream
from tacit.task.participation import Participation
from tacit.util.files import made_with
from tacit.validate import integer

if TYPE_CHECKING:
    from tacit.logs.offline import OfflineResult
    from tacit.logs.prior import Prior

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
    participations: int | Participation = 1,
    people: int | None = None,
    attendance: str | None = None,
    progress: Progress | None = None,
    compiled: bool = True,
    stop: threading.Event | None = None,
    resume: str | Path | None = None,
    prior: OfflineResult | str | Path | None = None,
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
        participations: how often one person may take part, or the whole rule
            (``tacit.Participation``); the guarantee covers all that one person does.
        people: how many different people take part, where they may come back; by default as few as
            the rule allows.
        attendance: the law by which they come back: rounds (everybody once a day, the default),
            anytime, bursts (on consecutive days) or few-often (some all the time, most hardly
            ever).
        progress: called now and then with (episodes done, cumulative regret), means over runs.
        compiled: False runs the stepwise driver even where there is a faster run, for the same
            results, or in some cases the same law (docs/architecture.md#way).
        stop: set it from another thread to end the runs early, as Ctrl-C does in the main one.
        resume: a folder in which the runs keep where they stand. What it holds already is not done
            again: the result is that of runs which were never interrupted, bit for bit, timing
            apart. Another configuration is refused.
        prior: what :func:`tacit.offline` returned, or the folder that ``tacit offline --out``
            wrote, for tacit-joint on tables: planning begins with what a log shows. Rewards must
            mean the same in both. The guarantee also says what holds for people who are in both.

    Returns:
        Curves, guarantee and everything needed to report them.
    """
    problem, agent = pair(problem, agent)
    K = integer(episodes, "episodes", low=1, high=MOST_EPISODES)
    count = integer(seeds, "seeds", low=1, high=MOST_SEEDS)
    root = integer(seed, "seed", low=0)
    threads = integer(workers, "workers", low=1) if workers is not None else os.cpu_count() or 1
    rule, came = Participation.of(participations), None
    if rule != Participation():
        rule.decided(agent.teaches(problem.task(users=K)))  # refuses before people are asked for
        rng = stream(root, 0, "attendance")
        came = attend(rule, K, people, attendance or "rounds", rng)
    elif people is not None or attendance is not None:
        raise InvalidInput(
            "people and attendance are about people who come back: say how often one person may "
            "take part with participations, or leave them out"
        )
    bound = bind_to(problem, agent, came, K, reveal, rule)
    start = None if prior is None else begin_with(prior)
    if start is not None:
        bound = start.begin(bound, agent.name)
    grid = checkpoint_grid(K, checkpoints)
    stop = stop or threading.Event()
    runs = [new_run(problem, bound, root, run, grid, stop, compiled, came) for run in range(count)]
    keep = None
    if resume is not None:
        points = checkpoints if isinstance(checkpoints, str) else int(checkpoints)
        how: dict[str, Any] = {
            "seeds": count,
            "seed": root,
            "checkpoints": points,
            "compiled": compiled,
        }
        if came is not None:
            how |= {"people": came.people, "attendance": came.law}
        if start is not None:
            how["prior"] = start.digest()
        keep = keeper(Path(resume), runs, {**what_runs(problem, agent, bound), **how})
    before = sum(int(run.score.at[0]) for run in runs)
    began = working_time()
    finished = advance_all(runs, K, threads, stop, progress, keep)
    seconds = working_time() - began
    guarantee = bound.guarantee.as_simulated()
    if start is not None:
        guarantee = start.stated(guarantee)
    done = sum(int(run.score.at[0]) for run in runs) - before
    found = outcome(problem, agent, bound, guarantee, root, runs, grid, seconds, done, finished)
    if came is not None:
        found |= {"requested_episodes": K, "returning": Returning.of(came, found["episodes"])}
    return Result(**found, prior=None if start is None else start.to_json())


def begin_with(prior: OfflineResult | str | Path) -> Prior:
    """What was learned from a log, checked; the package for logs is read only here."""
    from tacit.logs.prior import Prior

    return Prior.of(prior)


def bind_to(
    problem: Problem,
    agent: Agent,
    came: Attendance | None,
    episodes: int,
    reveal: Iterable[str],
    rule: Participation,
) -> BoundAgent:
    """The agent, fitted for the participations that are counted."""
    bound = bind(problem, agent, episodes, reveal, rule)
    if came is None or bound.task.rule is None or bound.task.rule.teaches != "first":
        return bound
    return bind(problem, agent, int(came.first.sum()), reveal, rule)


def outcome(
    problem: Problem,
    agent: Agent,
    bound: BoundAgent,
    guarantee: Guarantee,
    root: int,
    runs: Sequence[Run],
    grid: IntArray,
    seconds: float,
    done: int,
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
        "episodes_per_second": done / max(seconds, 1e-9),
        "policies": _policies(runs, bound, guarantee, about) if finished else (),
    }


def what_runs(problem: Problem, agent: Agent, bound: BoundAgent) -> dict[str, Any]:
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


def keeper(folder: Path, runs: Sequence[Run], configuration: dict[str, Any]) -> Keep:
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
    """What every run planned after its last user, without what only later users would need.

    The learning curve of a search, which was released with it, stays.
    """
    finals = [run.final for run in runs if run.final is not None]
    found = []
    for i, (publication, users) in enumerate(finals):
        curve = {name: array for name, array in publication.context.items() if name == "curve"}
        bare = replace(publication, context=curve)
        found.append(LearnedPolicy.of(bare, bound.task, guarantee, users, about=about | {"run": i}))
    return tuple(found)


def new_run(
    problem: Problem,
    agent: BoundAgent,
    root: int,
    run: int,
    grid: IntArray,
    stop: threading.Event,
    compiled: bool = True,
    came: Attendance | None = None,
) -> Run:
    """One run before its first user: the fastest there is for this agent, or the driver itself.

    ``came`` says who takes part when, where people come back.
    """
    rule = agent.task.rule
    if came is not None and rule is not None and rule.teaches == "first":
        each = np.arange(1, agent.task.users + 1)
        counted = new_run(problem, agent, root, run, each, stop, compiled)
        return FreeRiderRun(problem, counted, came, grid)
    fast = compiled_run(problem, agent, root, run, grid) if compiled else None
    found = fast or StepwiseRun(problem, agent, root, run, grid, stop)
    if came is not None:
        found.come_back(came)
    return found
