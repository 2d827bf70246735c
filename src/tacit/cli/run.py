"""``tacit run``: one agent on one problem, and what ``tacit learn`` shares with it."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as given
from tacit.cli.display import progress_bar, speaker, summary
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.experiment import Experiment
    from tacit.experiment_spec import ExperimentSpec


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


def warn_of_few(study: Experiment) -> None:
    """Say on stderr, before hours are spent, that so few users teach the agent nothing.

    Of people who come back only as many are counted as surely are where each teaches once.
    """
    from tacit.forecast import few_users

    rule, users = study.participation, study.episodes
    try:
        task = study.problem.task(users=users)
        rule = rule.decided(study.agent.teaches(task))
        if rule.teaches == "first" and not rule.period:
            everybody = users if study.problem.played else math.ceil(users / (rule.times or 1))
            counted = study.attendance.people or everybody
            task = dataclasses.replace(task, users=min(users, counted))
        task = dataclasses.replace(task, rule=rule)
    except InvalidInput:  # it is refused by its own sentence
        return
    said = few_users(task, study.agent)
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
        typer.Option(metavar="DIR", help="Go on with an unfinished --out DIR; takes no more."),
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
    from tacit.experiment_spec import ExperimentSpec, recall
    from tacit.simulation.attendance import Attendance
    from tacit.task.participation import Participation

    with one_interrupt():
        if resume is not None:
            _refuse_facts(context)
            perform(recall(resume), resume, plot, resume=True, workers=workers, as_json=as_json)
            return
        rule = coming.rule()
        if by == "day" and rule == Participation():
            raise InvalidInput("--by day is for people who come back: give --participations")
        spec = ExperimentSpec(
            problem=case.named_problem(),
            agent=case.named_agent(),
            episodes=episodes,
            runs=seeds,
            seed=seed,
            reveal=tuple(reveal or ()),
            participation=rule,
            attendance=Attendance(coming.attendance, coming.people),
            prior=None if prior is None else str(prior.resolve()),
            checkpoints=checkpoints,
        )
        axes = {"log": not linear, "by": by}
        perform(spec, out, plot, axes, overwrite=overwrite, workers=workers, as_json=as_json)


def _refuse_facts(context: typer.Context) -> None:
    """``--resume DIR`` goes on with what is in the folder; nothing else may be said of it."""
    own = {"resume", "plot", "workers", "as_json"}
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in own and source is not None and source.name == "COMMANDLINE":
            said = f"--{name.replace('_', '-')}"
            if name.endswith("_name"):
                said = name.removesuffix("_name").upper()
            raise InvalidInput(f"--resume goes on in its own folder, as it began: leave {said} out")


def perform(
    spec: ExperimentSpec,
    out: Path | None,
    plot: Path | None,
    axes: Mapping[str, Any] = MappingProxyType({}),
    *,
    resume: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
    as_json: bool = False,
) -> None:
    """Run what was asked for, keep it in a folder, draw it and tell it."""
    from tacit.experiment_spec import PROGRESS, begin
    from tacit.simulation.plot import check_target
    from tacit.simulation.result import POLICY
    from tacit.simulation.resume import forget

    study = spec.make()
    problem = study.problem
    if plot is not None:
        check_target(plot)
    kept = None if out is None else out / PROGRESS
    if out is not None and not resume:
        kept = begin(out, spec, overwrite=overwrite)
    warn_of_few(study)
    title, told = f"{study.agent.name} on {problem.name}", "return" if problem.played else "regret"
    with progress_bar(title, study.episodes, told) as progress:
        result = study.run(workers=workers, progress=progress, resume=kept)
    files = [] if out is None else [result.save(out, overwrite=overwrite or resume)]
    if kept is not None and not result.interrupted:
        forget(kept)
    own = "returns.png" if problem.played else "regret.png"
    pictures = [plot] if out is None else [out / own, plot]
    if result.completed:
        files += [result.plot(name, **axes) for name in pictures if name is not None]
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
