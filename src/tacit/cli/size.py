"""``tacit plan``: how many users it takes, before anybody is asked; and what --check says of it."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as given
from tacit.cli.display import bar, speaker
from tacit.cli.run import one_interrupt
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.agents.base import Agent
    from tacit.problems.base import Problem
    from tacit.sample_size.measure import Watch
    from tacit.task.participation import Participation
    from tacit.task.task import Task
    from tacit_service.config.deployment import Deployment

CHECK_SECONDS = 5.0
"""What ``tacit serve --check`` spends on it."""


@given.grouped
def plan(
    what: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM_OR_FILE", help="A problem, a deployment file; with sizes, the agent."
        ),
    ],
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="Left out: the file's.")
    ] = None,
    problem_parameters: Annotated[
        given.Pairs, typer.Option("-P", metavar="KEY=VALUE", help="Problem parameter.")
    ] = None,
    agent_parameters: Annotated[
        given.Pairs, typer.Option("-A", metavar="KEY=VALUE", help="Agent parameter.")
    ] = None,
    epsilon: Annotated[
        Any, typer.Option(metavar="NUMBERS", help="To try, as in 1,2,4 (default: 0.5 to 8).")
    ] = None,
    delta: given.Privacy = None,
    *,
    rule: given.Rule,
    share: Annotated[float, given.number("Of the gap from the baseline to the best policy.")] = 0.5,
    users: Annotated[int | None, given.count("A population to judge.")] = None,
    states: Annotated[int | None, given.count("Without a problem: how many.")] = None,
    actions: Annotated[int | None, given.count("Likewise.")] = None,
    horizon: Annotated[int | None, given.count("Likewise, steps.")] = None,
    runs: Annotated[int, given.count("Simulations of each kind.")] = 8,
    seed: given.Seed = 0,
    most: Annotated[int | None, given.count("Largest number of users simulated.")] = None,
    seconds: Annotated[float, given.number("About how long, compiling apart.")] = 60.0,
    workers: given.Workers = None,
    reveal: given.Reveal = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw users against epsilon.")
    ] = None,
    as_json: given.Json = False,
) -> None:
    """How many users until learning pays, and the least epsilon that does, by simulation.

    With a deployment file, or sizes only, on random problems of the same size.

    Example: tacit plan river-swim tacit-joint --users 1e4 --plot plan.png

    Example: tacit plan coach.toml

    Example: tacit plan tacit-local --states 12 --actions 4 --horizon 7

    Example: tacit plan river-swim tacit-local --participations 30
    """
    from tacit.sample_size import plan as planned
    from tacit.simulation.plot import check_target

    if plot is not None:
        check_target(plot)
    named = _Named(problem_parameters, agent_parameters, epsilon, delta, rule.rule())
    sizes = {"states": states, "actions": actions, "horizon": horizon}
    sizes_given = {key: n for key, n in sizes.items() if n is not None}
    asked = named.read(what, agent, sizes_given)
    if not as_json:
        _rule(asked, named)
    with one_interrupt(), _bar(seconds, quiet=as_json) as progress:
        found = planned(
            asked.problem,
            asked.agent,
            task=asked.task,
            share=share,
            users=users if users is not None else asked.users,
            epsilons=named.levels,
            runs=runs,
            seed=seed,
            most=most,
            seconds=seconds,
            workers=workers,
            reveal=reveal or (),
            participations=asked.rule,
            progress=progress,
        )
    files = [] if plot is None else [found.plot(plot)]
    if as_json:
        print(json.dumps(found.to_json()))
    else:
        say = speaker()
        for line in found.lines():
            say(line, soft_wrap=False)
        for file in files:
            say(f"wrote {file}")
    if found.interrupted:
        raise typer.Exit(130)


def _rule(asked: _Asked, named: _Named) -> None:
    """Say on stderr what the agent's own rule asks for, at each epsilon, before anything is run."""
    from tacit.task.task import Task

    agent, task = asked.agent, asked.task or asked.problem
    if isinstance(agent, str):
        return
    public = task if isinstance(task, Task) else named.told(task.task(users=1), agent)
    levels, found = named.levels, []
    for epsilon in levels or [agent.parameters().get("epsilon", 1.0)]:
        tried = dataclasses.replace(agent, epsilon=epsilon) if levels else agent  # type: ignore[type-var]
        needed = tried.users_needed(public) if public.family == "tabular" else None
        if needed is not None:
            found.append(f"{needed:,} users at epsilon {epsilon:g}")
    if found:
        said = f"By its rule of thumb {agent.name} begins to learn at about {', '.join(found)}."
        print(said, file=sys.stderr)


@dataclass(frozen=True)
class _Asked:
    problem: Problem | Task
    agent: Agent | str
    task: Task | None = None
    users: int | None = None
    rule: Participation | int = 1  # besides what a task says itself


@dataclass(frozen=True)
class _Named:
    """The options that say what is simulated."""

    problem_parameters: given.Pairs
    agent_parameters: given.Pairs
    epsilon: str | None
    delta: float | None
    rule: Participation

    def told(self, task: Task, agent: Agent) -> Task:
        """A task with the rule by which people come back, where there is one."""
        from tacit.task.participation import Participation

        if self.rule == Participation():
            return task
        return dataclasses.replace(task, rule=self.rule.decided(agent.teaches(task)))

    @property
    def levels(self) -> list[float] | None:
        """The epsilons to try."""
        if self.epsilon is None:
            return None
        return given.several(self.epsilon, "--epsilon", given.real)

    def read(self, what: str, agent: str | None, sizes: dict[str, int]) -> _Asked:
        """A file, a problem, or sizes."""
        if what.endswith(".toml"):
            return self._file(Path(what), agent, sizes)
        if sizes:
            return self._sizes(what, agent, sizes)
        if agent is None:
            raise InvalidInput(
                f"tacit plan {what} needs an agent, as in tacit plan river-swim tacit-joint; "
                "a deployment file (.toml) names its own"
            )
        problem = self._case(what, agent).problem()
        return _Asked(problem, self._agent(what, agent), rule=self.rule)

    def _case(self, problem: str, agent: str) -> given.Case:
        from tacit.agents.catalogue import agents

        private = "epsilon" in agents.entry(agent).parameters
        if self.levels is not None and not private:
            raise InvalidInput(f"{agent} takes no epsilon: leave it out")
        in_pairs = any(pair.startswith("epsilon=") for pair in self.agent_parameters or ())
        level = (self.levels or [1.0])[0] if private and not in_pairs else None
        pairs = self.problem_parameters, self.agent_parameters
        return given.Case(problem, agent, *pairs, level, self.delta)

    def _agent(self, problem: str, agent: str) -> Agent:
        return self._case(problem, agent).agent()

    def _sizes(self, what: str, agent: str | None, sizes: dict[str, int]) -> _Asked:
        from tacit.task.task import Task

        if agent is not None:
            raise InvalidInput(
                f"sizes go without a problem: leave {what} out, or give it parameters with -P"
            )
        missing = {"states", "actions", "horizon"} - sizes.keys()
        if missing:
            raise InvalidInput(f"sizes need --{', --'.join(sorted(missing))} too")
        tables = {key: sizes[key] for key in ("states", "actions")}
        task = Task("tabular", sizes["horizon"], tables, homogeneous=True, users=1)
        learner = self._agent("random-mdp", what)
        return _Asked(self.told(task, learner), learner)

    def _file(self, path: Path, agent: str | None, sizes: dict[str, int]) -> _Asked:
        from tacit.task.participation import Participation
        from tacit_service.config.deployment import Deployment

        if sizes or self.problem_parameters:
            raise InvalidInput(f"{path} says the sizes itself: leave them and -P out")
        deployment = Deployment.load(path, stored=False)
        if agent is None and (self.agent_parameters or self.delta is not None):
            raise InvalidInput(f"{path} says the agent itself: change it there, or name an agent")
        rule, own, again = deployment.task.rule, self.rule, self.rule
        counts = own != Participation() and own == Participation(own.times)
        if rule is not None and rule.times is None and counts:  # "any" cannot be simulated
            rule, again = dataclasses.replace(rule, times=own.times), Participation()
            task = dataclasses.replace(deployment.task, rule=rule)
            deployment = dataclasses.replace(deployment, task=task)
        asked = dataclasses.replace(of_deployment(deployment), rule=again)
        if agent is None:
            return asked
        return dataclasses.replace(asked, agent=self._agent("random-mdp", agent))


def of_deployment(deployment: Deployment) -> _Asked:
    """What a file asks: on the problem that [fleet] names, or on random ones of its size."""
    from tacit_service.rehearsal.people import Searchers, fleet_population

    task, people = deployment.task, dict(deployment.settings.fleet)
    coming = task.users
    if task.rule is not None and task.rule.teaches != "first" and task.rule.times is not None:
        coming = max(1, task.users // task.rule.times)  # people, each of whom comes so often
    if "problem" not in people:
        return _Asked(task, deployment.agent, None, coming)
    found = fleet_population(people, deployment.folder, task)
    problem: Problem = found.problem if isinstance(found, Searchers) else found.problems[0]
    return _Asked(problem, deployment.agent, task, coming)


def outlook(path: Path, deployment: Deployment) -> tuple[str, dict[str, Any] | None]:
    """Whether a deployment's population is enough at its epsilon, by a few seconds of simulation.

    In a sentence that warns where it is not shown to be, and as JSON; None if nothing was run.
    """
    from tacit.forecast import few_users
    from tacit.sample_size import plan as planned

    try:
        asked = of_deployment(deployment)
        found = planned(
            asked.problem,
            asked.agent,
            task=asked.task,
            users=asked.users,
            epsilons=[deployment.agent.parameters()["epsilon"]],
            most=asked.users,
            seconds=CHECK_SECONDS,
        )
    except InvalidInput as refused:
        return f"Outlook: not simulated ({refused})", None
    few = few_users(deployment.task, deployment.agent)
    runs = f"{len(found.setting.problems)} simulated runs on {found.setting.name}"
    said = f"{found.verdict} (With 95% confidence, by {runs}.)"
    said += f" Besides, {few}." if few else ""
    if not found.warning:
        return f"Outlook: {said}", found.to_json()
    more = f"`tacit plan {path}` takes its time over it and tries other epsilons"
    return f"Warning: {said} {more}.", found.to_json()


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
