"""``tacit run``: one agent on one problem."""

from __future__ import annotations

import dataclasses
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli import options
from tacit.cli.display import one_interrupt, progress_bar, tell, told_result
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.experiment import Experiment
    from tacit.experiment_spec import ExperimentSpec

OWN = {"resume", "plot", "workers", "as_json"}
"""What may be said beside ``--resume``."""

_PRIOR = "Begin with a log: what tacit offline --out wrote."
_EVERY = '"log", or n to record every n-th episode.'
_NOISE = options.one_of("simulated", "secure")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What ``tacit run`` takes."""

    context: typer.Context
    problem: options.OptionalProblem = None
    agent: options.OptionalAgent = None
    problem_facts: options.ProblemFacts = None
    agent_facts: options.AgentFacts = None
    epsilon: options.Epsilon = None
    delta: options.Delta = None
    return_facts: options.ReturnFacts = None
    environment_facts: options.EnvironmentFacts = None
    reveal: options.Reveal = None
    prior: Path | None = options.path(_PRIOR, "Facts", "DIR")
    episodes: options.Episodes = 10_000
    runs: int = options.count("Independent runs.", "Size", 4)
    seed: options.Seed = 0
    checkpoints: Any = options.option(_EVERY, "Size", "N", options.log_or_whole, "log")
    noise: str = options.option(
        "simulated, or secure: takes no seed.", "Size", "WORD", _NOISE, "simulated"
    )
    out: Path | None = options.path("Folder for curves, policy, manifest and plot.", metavar="DIR")
    overwrite: bool = options.switch("--overwrite", "Replace the result in --out.", "Output")
    plot: options.Plot = None
    as_json: options.Json = False
    resume: Path | None = options.option(
        "Go on with an unfinished --out DIR; takes no facts.", None, "DIR", None, None
    )
    workers: options.Workers = None


@options.command(RunOptions)
def run(request: RunOptions) -> None:
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
    from tacit.experiment_spec import recall

    with one_interrupt():
        if request.resume is not None:
            _refuse_facts(request.context)
            _perform(recall(request.resume), request.resume, request)
        else:
            _perform(_spec(request), request.out, request)


def _spec(request: RunOptions) -> ExperimentSpec:
    """What is run; rewards that are played are from 0 to 1 unless ``-E`` says otherwise."""
    from tacit.experiment_spec import ExperimentSpec
    from tacit.problems.environment import can_only_be_played

    problem, agent, prior = request.problem, request.agent, request.prior
    if problem is None or agent is None:
        missing = "PROBLEM" if problem is None else "AGENT"
        raise InvalidInput(f"Missing argument {missing!r} (see tacit run --help)")
    rule, attendance = options.coming(request.return_facts)
    named = options.named_problem(problem, agent, request.problem_facts)
    played = options.facts(request.environment_facts, "-E", options.PLAYED)
    if can_only_be_played(named.name):
        played = {"rewards": (0.0, 1.0), **played}
    return ExperimentSpec(
        problem=named,
        agent=options.named_agent(agent, request.agent_facts, request.epsilon, request.delta),
        episodes=request.episodes,
        runs=request.runs,
        seed=request.seed,
        reveal=tuple(request.reveal or ()),
        participation=rule,
        attendance=attendance,
        environment=played,
        prior=None if prior is None else str(prior.resolve()),
        checkpoints=request.checkpoints,
        noise=request.noise,  # type: ignore[arg-type]
    )


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


def _perform(spec: ExperimentSpec, out: Path | None, request: RunOptions) -> None:
    """Run what was asked for, keep it in a folder, draw it and tell it."""
    from tacit.experiment_spec import PROGRESS, begin
    from tacit.simulation.plot import check_target
    from tacit.simulation.result import POLICY
    from tacit.simulation.resume import forget

    study = spec.make()
    played = study.problem.played
    if request.plot is not None:
        check_target(request.plot)
    kept = None if out is None else out / PROGRESS
    if out is not None and request.resume is None:
        kept = begin(out, spec, overwrite=request.overwrite)
    _warn_of_few(study)
    title = f"{study.agent.name} on {study.problem.name}"
    with progress_bar(title, study.episodes, "return" if played else "regret") as progress:
        result = study.run(workers=request.workers, progress=progress, resume=kept)
    files: list[Any] = []
    if out is not None:
        files += [result.save(out, overwrite=request.overwrite or request.resume is not None)]
    if kept is not None and not result.interrupted:
        forget(kept)
    own = None if out is None else out / ("returns.png" if played else "regret.png")
    if result.completed:  # over days where people come back, and logarithmic unless one run
        by, log = "episode" if result.returning is None else "day", len(result.seeds) > 1
        targets = (name for name in (own, request.plot) if name is not None)
        files += [result.plot(name, log=log, by=by) for name in targets]
    if out is not None and not result.interrupted:
        files.append(f"{out / POLICY} (see: tacit show {out / POLICY})")
    tell(told_result(result, files), as_json=request.as_json)
    if result.interrupted:
        if out is not None and not request.as_json:
            print(f"go on with: tacit run --resume {out}")
        raise typer.Exit(130)
