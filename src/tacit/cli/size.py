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
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import options as given
from tacit.cli.display import Line, Told, bar, one_interrupt, tell
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.agents.base import Agent
    from tacit.sample_size.question import Question
    from tacit.sample_size.search import Watch
    from tacit.task.participation import Participation
    from tacit.task.task import Task

SIZES = re.compile(r"(\d+)x(\d+)x(\d+)")
"""States x actions x steps, in place of a problem."""


def size(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A problem, a deployment file, or states x actions x steps as in 12x4x7.",
        ),
    ],
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="Left out: the file's.")
    ] = None,
    problem_facts: given.ProblemFacts = None,
    agent_facts: given.AgentFacts = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="To try, as in 1,2,4 (default: 0.5 to 8).",
            rich_help_panel="Facts",
        ),
    ] = None,
    delta: given.Delta = None,
    return_facts: given.RuleFacts = None,
    reveal: given.Reveal = None,
    share: Annotated[
        float, given.number("Of the gap from the baseline to the best policy.", "Size")
    ] = 0.5,
    people: Annotated[int | None, given.count("A population to judge.", "Size")] = None,
    runs: Annotated[int, given.count("Simulations of each kind.", "Size")] = 8,
    seed: given.Seed = 0,
    most: Annotated[int | None, given.count("Largest number of users simulated.", "Size")] = None,
    seconds: Annotated[float, given.number("About how long, compiling apart.", "Size")] = 60.0,
    plot: given.Plot = None,
    as_json: given.Json = False,
    workers: given.Workers = None,
) -> None:
    """How many users until learning pays, and at which epsilon.

    By simulation; of a deployment file that names no problem, or of sizes only, on random problems
    of that size.

    Example: tacit size river-swim tacit-joint --people 1e4 --plot size.png

    Example: tacit size coach.toml

    Example: tacit size 12x4x7 tacit-local

    Example: tacit size river-swim tacit-local -R participations=30
    """
    from tacit.sample_size import Limits, sample_size
    from tacit.simulation.plot import check_target

    if plot is not None:
        check_target(plot)
    rule = given.rule_of(return_facts)
    asker = _Asker(problem_facts, agent_facts, _levels(epsilon), delta, rule)
    asked = asker.question(what, agent)
    if not as_json:
        _say_rule_of_thumb(asked, asker)
    with one_interrupt(), _bar(seconds, quiet=as_json) as progress:
        found = sample_size(
            asked.experiments(runs, seed, reveal or ()),
            share=share,
            people=people if people is not None else asked.users,
            epsilons=asker.levels,
            limits=Limits(most, seconds),
            workers=workers,
            progress=progress,
        )
    files = [] if plot is None else [found.plot(plot)]
    lines = (Line(line, wrap=True) for line in found.lines())
    tell(Told(found.to_json, lines, files), as_json=as_json)
    if found.interrupted:
        raise typer.Exit(130)


def _levels(epsilon: str | None) -> list[float] | None:
    """The epsilons to try."""
    return None if epsilon is None else given.several(epsilon, "--epsilon", given.real)


def _say_rule_of_thumb(asked: Question, asker: _Asker) -> None:
    """Say on stderr what the agent's own rule asks for, at each epsilon, before anything is run."""
    from tacit.task.task import Task

    agent, task = asked.agent, asked.task or asked.problem
    public = task if isinstance(task, Task) else asker.told(task.task(users=1), agent)
    levels, found = asker.levels, []
    for epsilon in levels or [agent.parameters().get("epsilon", 1.0)]:
        tried = dataclasses.replace(agent, epsilon=epsilon) if levels else agent  # type: ignore[type-var]
        needed = tried.users_needed(public) if public.family == "tabular" else None
        if needed is not None:
            found.append(f"{needed:,} users at epsilon {epsilon:g}")
    if found:
        said = f"By its rule of thumb {agent.name} begins to learn at about {', '.join(found)}."
        print(said, file=sys.stderr)


@dataclass(frozen=True)
class _Asker:
    """What the options say of the question."""

    problem_facts: given.Pairs
    agent_facts: given.Pairs
    levels: list[float] | None
    delta: float | None
    rule: Participation

    def told(self, task: Task, agent: Agent) -> Task:
        """A task with the rule by which people come back, where there is one."""
        from tacit.task.participation import Participation

        if self.rule == Participation():
            return task
        return dataclasses.replace(task, rule=self.rule.decided(agent.teaches(task)))

    def question(self, what: str, agent: str | None) -> Question:
        """Of a file, of sizes, or of a problem."""
        from tacit.sample_size.question import Question

        if what.endswith(".toml"):
            return self._of_file(Path(what), agent)
        if agent is None:
            raise InvalidInput(
                f"tacit size {what} needs an agent, as in tacit size river-swim tacit-joint; "
                "a deployment file (.toml) names its own"
            )
        if sizes := SIZES.fullmatch(what):
            return self._of_sizes([int(n) for n in sizes.groups()], agent)
        problem = given.chosen_problem(what, agent, self.problem_facts)
        return Question(problem, self._agent(agent), rule=self.rule)

    def _agent(self, name: str) -> Agent:
        from tacit.agents.catalogue import agents

        private = "epsilon" in agents.entry(name).parameters
        if self.levels is not None and not private:
            raise InvalidInput(f"{name} takes no epsilon: leave it out")
        in_pairs = any(pair.startswith("epsilon=") for pair in self.agent_facts or ())
        level = (self.levels or [1.0])[0] if private and not in_pairs else None
        return given.chosen_agent(name, self.agent_facts, level, self.delta)

    def _of_sizes(self, sizes: Sequence[int], agent: str) -> Question:
        from tacit.sample_size.question import Question
        from tacit.task.task import Task

        if self.problem_facts:
            raise InvalidInput("sizes say all of the problem: leave -P out")
        states, actions, steps = sizes
        tables = {"states": states, "actions": actions}
        task = Task("tabular", steps, tables, homogeneous=True, users=1)
        learner = self._agent(agent)
        return Question(self.told(task, learner), learner)

    def _of_file(self, path: Path, agent: str | None) -> Question:
        if self.problem_facts:
            raise InvalidInput(f"{path} says the sizes itself: leave -P out")
        asked = _reader()(path, self.rule)
        if agent is None and (self.agent_facts or self.delta is not None):
            raise InvalidInput(f"{path} says the agent itself: change it there, or name an agent")
        if agent is None:
            return asked
        return dataclasses.replace(asked, agent=self._agent(agent))


def _reader() -> Callable[[Path, Participation], Question]:
    """What reads a deployment file: the service's, found by its entry point."""
    from importlib.metadata import entry_points

    for point in entry_points(group="tacit.experiments", name="deployment"):
        read: Callable[[Path, Participation], Question] = point.load()
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
            shown = "" if epsilon is None else f"epsilon {epsilon:g}, "
            drawn.update(
                line,
                description=f"{shown}{done:,} of {users:,} users",
                completed=time.perf_counter() - began[0],
            )

        yield watch
