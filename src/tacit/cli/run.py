"""``tacit run``: one agent on one problem."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options
from tacit.cli.display import one_interrupt, progress_bar, tell, told_result
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.experiment import Experiment
    from tacit.experiment_spec import ExperimentSpec
    from tacit.simulation.result import Result

OWN = {"resume", "plot", "workers", "as_json"}
"""What may be said beside ``--resume``."""

_CHECKPOINTS = options.option(
    '"log", or n to record every n-th episode.', "Size", "N", options.log_or_whole
)
_NOISE = options.option(
    "simulated, or secure: takes no seed.", "Size", "WORD", options.one_of("simulated", "secure")
)


def run(
    context: typer.Context,
    problem: options.OptionalProblem = None,
    agent: options.OptionalAgent = None,
    problem_facts: options.ProblemFacts = None,
    agent_facts: options.AgentFacts = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    return_facts: options.ReturnFacts = None,
    environment_facts: options.EnvironmentFacts = None,
    reveal: options.Reveal = None,
    prior: Annotated[
        Path | None,
        options.file("Begin with a log: what tacit offline --out wrote.", "Facts", "DIR"),
    ] = None,
    episodes: options.Episodes = 10_000,
    runs: options.Runs = 4,
    seed: options.Seed = 0,
    checkpoints: Annotated[Any, _CHECKPOINTS] = "log",
    noise: Annotated[str, _NOISE] = "simulated",
    out: Annotated[
        Path | None, options.file("Folder for curves, policy, manifest and plot.", metavar="DIR")
    ] = None,
    overwrite: Annotated[
        bool, options.flag("--overwrite", "Replace the result in --out.", "Output")
    ] = False,
    plot: options.Plot = None,
    as_json: options.Json = False,
    resume: Annotated[
        Path | None,
        options.option("Go on with an unfinished --out DIR; takes no facts.", None, "DIR"),
    ] = None,
    workers: options.Workers = None,
) -> None:
    """Run an agent on a problem, known or only played, and score it.

    PROBLEM is a name, whose truth is known: the score is regret against its best policy. gym:ID
    reads the table of a Gymnasium environment and plays it where it has none; play:ID always plays;
    FILE.py:NAME plays what stands in a file: an environment, a function without arguments that
    makes one, or a function play(policy, rng) that plays one episode. What is played is scored by
    returns. Interrupted, it keeps what was done and exits with status 130; with --out it can go on.

    Example: tacit run river-swim psrl --episodes 1e5 --runs 4

    Example: tacit run river-swim tacit-local --epsilon 4 --episodes 3e5 -R participations=30

    Example: tacit run play:FrozenLake-v1 psrl --episodes 2e3 -E horizon=30
    """
    from tacit.experiment_spec import ExperimentSpec, recall
    from tacit.problems.environment import can_only_be_played

    with one_interrupt():
        if resume is not None:
            _refuse_facts(context)
            _perform(recall(resume), resume, plot, resume=True, workers=workers, as_json=as_json)
            return
        if problem is None or agent is None:
            missing = "PROBLEM" if problem is None else "AGENT"
            raise InvalidInput(f"Missing argument {missing!r} (see tacit run --help)")
        rule, attendance = options.coming(return_facts)
        named = options.named_problem(problem, agent, problem_facts)
        played = options.facts(environment_facts, "-E", options.PLAYED)
        if can_only_be_played(named.name):
            played = {"rewards": (0.0, 1.0), **played}
        spec = ExperimentSpec(
            problem=named,
            agent=options.named_agent(agent, agent_facts, epsilon, delta),
            episodes=episodes,
            runs=runs,
            seed=seed,
            reveal=tuple(reveal or ()),
            participation=rule,
            attendance=attendance,
            environment=played,
            prior=None if prior is None else str(prior.resolve()),
            checkpoints=checkpoints,
            noise=noise,  # type: ignore[arg-type]
        )
        _perform(spec, out, plot, overwrite=overwrite, workers=workers, as_json=as_json)


def _refuse_facts(context: typer.Context) -> None:
    """``--resume DIR`` goes on with what is in the folder; nothing else may be said of it."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name not in OWN and source is not None and source.name == "COMMANDLINE":
            word = parameter.opts[0] if parameter.opts[0].startswith("-") else name.upper()
            raise InvalidInput(f"--resume goes on in its own folder, as it began: leave {word} out")


def _warn_of_few(study: Experiment) -> None:
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
    warning = few_users(task, study.agent)
    if warning:
        print(f"Warning: {warning}.", file=sys.stderr, flush=True)


def _perform(
    spec: ExperimentSpec,
    out: Path | None,
    plot: Path | None,
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
    _warn_of_few(study)
    title, score = f"{study.agent.name} on {problem.name}", "return" if problem.played else "regret"
    with progress_bar(title, study.episodes, score) as progress:
        result = study.run(workers=workers, progress=progress, resume=kept)
    files: list[Any] = [] if out is None else [result.save(out, overwrite=overwrite or resume)]
    if kept is not None and not result.interrupted:
        forget(kept)
    files += _pictures(result, out, plot)
    if out is not None and not result.interrupted:
        files.append(f"{out / POLICY} (see: tacit show {out / POLICY})")
    tell(told_result(result, files), as_json=as_json)
    if result.interrupted:
        if out is not None and not as_json:
            print(f"go on with: tacit run --resume {out}")
        raise typer.Exit(130)


def _pictures(result: Result, out: Path | None, plot: Path | None) -> list[Path]:
    """Curves, over days where people come back, and logarithmic unless there is one run."""
    if not result.completed:
        return []
    own = None if out is None else out / ("returns.png" if result.played else "regret.png")
    by = "episode" if result.returning is None else "day"
    log = len(result.seeds) > 1
    return [result.plot(name, log=log, by=by) for name in (own, plot) if name is not None]
