"""``tacit size``: how many users it takes, before anybody is asked."""

from __future__ import annotations

import dataclasses
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tacit.cli import options
from tacit.cli.display import Line, Told, bar, one_interrupt, tell
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.agents.base import Agent
    from tacit.experiment import Experiment
    from tacit.sample_size.search import Watch
    from tacit.task.participation import Participation
    from tacit.task.task import Task

    Asked = tuple[Sequence[Experiment], int]
    Reader = Callable[[Path, Participation, Agent | None, int, int], Asked]

SIZES = re.compile(r"(\d+)x(\d+)x(\d+)")
"""States x actions x steps, in place of a problem."""


_WHAT = "A problem, a deployment file, or states x actions x steps as in 12x4x7."
_EPSILONS = "To try, as in 1,2,4 (default: 0.5 to 8)."


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """What ``tacit size`` takes."""

    what: str = options.argument("WHAT", _WHAT)
    agent: str | None = options.argument("[AGENT]", "Left out: the file's.", None)
    problem_facts: options.ProblemFacts = None
    agent_facts: options.AgentFacts = None
    epsilon: str | None = options.option(_EPSILONS, "Facts", "NUMBERS", None, None)
    delta: options.Delta = None
    return_facts: options.RuleFacts = None
    reveal: options.Reveal = None
    share: float = options.number("Of the gap from the baseline to the best policy.", "Size", 0.5)
    people: int | None = options.count("A population to judge.", "Size", None)
    runs: int = options.count("Simulations of each kind.", "Size", 8)
    seed: options.Seed = 0
    most: int | None = options.count("Largest number of users simulated.", "Size", None)
    seconds: float = options.number("About how long, compiling apart.", "Size", 60.0)
    plot: options.Plot = None
    as_json: options.Json = False
    workers: options.Workers = None


@options.command(SizeOptions)
def size(request: SizeOptions) -> None:
    """How many users until learning pays, and at which epsilon.

    By simulation; of a deployment file that names no problem, or of sizes only, on random problems
    of that size.

    Example: tacit size river-swim tacit-joint --people 1e4 --plot size.png

    Example: tacit size coach.toml

    Example: tacit size 12x4x7 tacit-local

    Example: tacit size river-swim tacit-local -R participations=30
    """
    from tacit.experiment import Experiment
    from tacit.sample_size import Limits, random_experiments, sample_size
    from tacit.simulation.plot import check_target
    from tacit.task.task import Task

    what, agent, levels = request.what, request.agent, None
    runs, seed, people = request.runs, request.seed, request.people
    if request.plot is not None:
        check_target(request.plot)
    rule, _ = options.coming(request.return_facts, options.RULE)
    if request.epsilon is not None:
        levels = options.several(request.epsilon, "--epsilon", options.real)
    asked: Sequence[Experiment]
    if what.endswith(".toml"):
        if request.problem_facts:
            raise InvalidInput(f"{what} says the sizes itself: leave -P out")
        if agent is None and (request.agent_facts or request.delta is not None):
            raise InvalidInput(f"{what} says the agent itself: change it there, or name an agent")
        other = None if agent is None else _learner(agent, request, levels)
        asked, expected = _reader()(Path(what), rule, other, runs, seed)
        people = expected if people is None else people
    elif agent is None:
        raise InvalidInput(
            f"tacit size {what} needs an agent, as in tacit size river-swim tacit-joint; "
            "a deployment file (.toml) names its own"
        )
    elif sizes := SIZES.fullmatch(what):
        if request.problem_facts:
            raise InvalidInput("sizes say all of the problem: leave -P out")
        learner = _learner(agent, request, levels)
        states, actions, steps = map(int, sizes.groups())
        tables = {"states": states, "actions": actions}
        task = _ruled(Task("tabular", steps, tables, homogeneous=True, users=1), rule, learner)
        asked = random_experiments(task, learner, runs, seed)
    else:
        problem = options.chosen_problem(what, agent, request.problem_facts)
        learner = _learner(agent, request, levels)
        one = Experiment(problem=problem, agent=learner, episodes=1, runs=runs, seed=seed)
        asked = [one.with_(participation=rule)]
    experiments = [each.with_(reveal=frozenset(request.reveal or ())) for each in asked]
    if not request.as_json:
        _say_rule_of_thumb(experiments[0], levels)
    with one_interrupt(), _bar(request.seconds, quiet=request.as_json) as progress:
        result = sample_size(
            experiments,
            share=request.share,
            people=people,
            epsilons=levels,
            limits=Limits(request.most, request.seconds),
            workers=request.workers,
            progress=progress,
        )
    files = [] if request.plot is None else [result.plot(request.plot)]
    lines = (Line(line, wrap=True) for line in result.lines())
    tell(Told(result.to_json(), lines, files), as_json=request.as_json)
    if result.interrupted:
        raise typer.Exit(130)


def _say_rule_of_thumb(study: Experiment, levels: list[float] | None) -> None:
    """Say on stderr what the agent's own rule asks for, at each epsilon, before anything is run."""
    agent, rules = study.agent, []
    task = study.task or _ruled(study.problem.task(users=1), study.participation, agent)
    for epsilon in levels or [agent.parameters().get("epsilon", 1.0)]:
        tried = dataclasses.replace(agent, epsilon=epsilon) if levels else agent  # type: ignore[type-var]
        needed = tried.users_needed(task) if task.family == "tabular" else None
        if needed is not None:
            rules.append(f"{needed:,} users at epsilon {epsilon:g}")
    if rules:
        begins = f"begins to learn at about {', '.join(rules)}."
        print(f"By its rule of thumb {agent.name} {begins}", file=sys.stderr)


def _ruled(task: Task, rule: Participation, agent: Agent) -> Task:
    """A task with the rule by which people come back, where there is one."""
    from tacit.task.participation import Participation

    if rule == Participation():
        return task
    return dataclasses.replace(task, rule=rule.decided(agent.teaches(task)))


def _learner(name: str, request: SizeOptions, levels: list[float] | None) -> Agent:
    """The agent at the first of the epsilons, where it takes one."""
    from tacit.agents.catalogue import agents

    private = "epsilon" in agents.entry(name).parameters
    if levels is not None and not private:
        raise InvalidInput(f"{name} takes no epsilon: leave it out")
    in_pairs = any(pair.startswith("epsilon=") for pair in request.agent_facts or ())
    level = (levels or [1.0])[0] if private and not in_pairs else None
    return options.chosen_agent(name, request.agent_facts, level, request.delta)


def _reader() -> Reader:
    """What reads a deployment file: the service's, found by its entry point."""
    from importlib.metadata import entry_points

    for point in entry_points(group="tacit.experiments", name="deployment"):
        read: Reader = point.load()
        return read
    raise InvalidInput("a deployment file is read by the service, which is not installed")


@contextmanager
def _bar(seconds: float, *, quiet: bool) -> Iterator[Watch]:
    """What is simulated, and the time that is left."""
    from rich.progress import BarColumn, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24))
    with bar(*columns, quiet=quiet) as drawn:
        line = drawn.add_task("compiling, once", total=seconds)
        began: list[float] = []

        def watch(epsilon: float | None, users: int, done: int) -> None:
            began[:] = began or [time.perf_counter()]
            level = "" if epsilon is None else f"epsilon {epsilon:g}, "
            title, seconds = f"{level}{done:,} of {users:,} users", time.perf_counter() - began[0]
            drawn.update(line, description=title, completed=seconds)

        yield watch
