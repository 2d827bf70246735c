"""``tacit run``: one agent on one problem; and ``tacit demo``, the tour."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as given
from tacit.cli.display import progress_bar, speaker, summary
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.agents.base import Agent
    from tacit.problems.base import Problem
    from tacit.task.participation import Participation


@contextmanager
def one_interrupt() -> Iterator[None]:
    """The first Ctrl-C stops the runs; further ones must not cost what the first one kept."""

    def stop_once(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def warn_of_few(
    problem: Problem, agent: Agent, users: int, rule: Participation, people: int | None = None
) -> None:
    """Say on stderr, before hours are spent, that so few users teach the agent nothing.

    Of people who come back only as many are counted as surely are where each teaches once.
    """
    from tacit.forecast import few_users

    try:
        task = problem.task(users=users)
        rule = rule.decided(agent.teaches(task))
        if rule.teaches == "first" and not rule.period:
            counted = people or math.ceil(users / (rule.times or 1))
            task = dataclasses.replace(task, users=min(users, counted))
        task = dataclasses.replace(task, rule=rule)
    except InvalidInput:  # it is refused by its own sentence
        return
    said = few_users(task, agent)
    if said:
        print(f"Warning: {said}.", file=sys.stderr, flush=True)


@given.on_case
def run(
    case: given.Case,
    coming: given.Coming,
    context: typer.Context,
    episodes: Annotated[
        int, given.count("Users, one episode each; where people come back, participations.")
    ] = 10_000,
    seeds: Annotated[int, given.count("Number of independent runs.")] = 4,
    seed: given.Seed = 0,
    workers: given.Workers = None,
    checkpoints: Annotated[
        Any,
        typer.Option(
            metavar="N", parser=given.log_or_whole, help='"log", or n to record every n-th episode.'
        ),
    ] = "log",
    reveal: given.Reveal = None,
    prior: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Begin with a log: what tacit offline --out wrote."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for curves, policy, manifest and plot."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Go on with an unfinished run --out DIR; needs no more."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the result in --out.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw regret into a file.")
    ] = None,
    linear: Annotated[bool, typer.Option("--linear", help="Linear axes.")] = False,
    by: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            parser=given.one_of("episode", "day"),
            help="What plots are drawn over: episode, or day where people come back.",
        ),
    ] = "episode",
    as_json: given.Json = False,
) -> None:
    """Run an agent on a problem and score it exactly against the optimum.

    Interrupted, it keeps what was done and exits with status 130; with --out it can go on.

    Example: tacit run river-swim psrl --episodes 1e5 --seeds 4

    Example: tacit run river-swim tacit-local --epsilon 4 --episodes 3e5 --participations 30
    """
    from tacit.cli import resuming
    from tacit.simulation import simulate
    from tacit.simulation.plot import check_target
    from tacit.simulation.result import POLICY
    from tacit.simulation.resume import forget
    from tacit.task.participation import Participation

    how = {"episodes": episodes, "seeds": seeds, "seed": seed, "checkpoints": checkpoints}
    how |= {"reveal": reveal or [], **dataclasses.asdict(coming)}
    how["prior"] = None if prior is None else str(prior.resolve())
    with one_interrupt():
        if resume is not None:
            if out is not None:
                raise InvalidInput("--resume goes on in its own folder; leave --out out")
            saved = resuming.recalled(resume, {**dataclasses.asdict(case), **how}, context)
            how = {name: saved.pop(name) for name in how}
            case, out, overwrite = given.Case(**saved), resume, True
        chosen = {**dataclasses.asdict(case), **how}
        coming = given.Coming(**{name: how.pop(name) for name in dataclasses.asdict(coming)})
        rule, people = coming.rule(), coming.people
        if by == "day" and rule == Participation():
            raise InvalidInput("--by day is for people who come back: give --participations")
        problem, agent = case.problem(), case.agent()
        if plot is not None:
            check_target(plot)
        if out is not None and resume is None:
            resuming.begin(out, chosen, overwrite=overwrite)
        kept = None if out is None else out / resuming.PROGRESS
        warn_of_few(problem, agent, how["episodes"], rule, people)
        with progress_bar(f"{agent.name} on {problem.name}", how["episodes"]) as progress:
            result = simulate(
                problem,
                agent,
                **how,
                participations=rule,
                people=people,
                attendance=coming.attendance,
                workers=workers,
                progress=progress,
                resume=kept,
            )
        files = [] if out is None else [result.save(out, overwrite=overwrite)]
        if kept is not None and not result.interrupted:
            forget(kept)
        pictures = [plot] if out is None else [out / "regret.png", plot]
        if result.completed:
            drawn = [name for name in pictures if name is not None]
            files += [result.plot(name, log=not linear, by=by) for name in drawn]
        if as_json:
            print(json.dumps(result.to_json()))
        else:
            say = speaker()
            summary(say, result)
            for file in files:
                say(f"wrote {file}")
            if out is not None and not result.interrupted:
                say(f"wrote {out / POLICY} (see: tacit show policy {out / POLICY})")
            if out is not None and result.interrupted:
                say(f"go on with: tacit run --resume {out}")
        if result.interrupted:
            raise typer.Exit(130)
