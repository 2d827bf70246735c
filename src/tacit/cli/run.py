"""``tacit run``: one agent on one problem."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from tacit.agents.base import Agent
from tacit.agents.catalogue import agents, make_agent
from tacit.cli.display import progress_bar, summary
from tacit.cli.values import assignments, read, read_parameters, whole
from tacit.errors import InvalidInput
from tacit.problems.catalogue import make_problem, problem_entry
from tacit.problems.tabular import TabularMDP
from tacit.report.plot import check_target
from tacit.simulation import Result, simulate
from tacit.simulation.storage import check_free


@dataclass(frozen=True)
class RunOptions:
    """The options of ``tacit run`` as typed, before they are read."""

    problem: str
    agent: str
    problem_parameters: Sequence[str]
    agent_parameters: Sequence[str]
    privacy: Mapping[str, str | None]
    episodes: str
    seeds: str
    seed: str
    workers: str | None
    checkpoints: str
    reveal: Sequence[str]
    out: Path | None
    overwrite: bool
    plot: Path | None
    log_log: bool
    as_json: bool


def read_problem(name: str, pairs: Sequence[str]) -> TabularMDP:
    """A problem from its name and ``-P`` pairs."""
    texts = assignments(pairs, "-P")
    return make_problem(name, **read_parameters(problem_entry(name), texts))


def read_agent(name: str, pairs: Sequence[str], privacy: Mapping[str, str | None]) -> Agent:
    """An agent from its name, ``-A`` pairs and the privacy options that were given."""
    entry = agents.entry(name)
    parameters = read_parameters(entry, assignments(pairs, "-A"))
    for option, text in privacy.items():
        if text is None:
            continue
        if option in parameters:
            raise InvalidInput(f"{option} is given twice: by -A and by --{option}")
        declared = entry.parameters.get(option)
        parameters[option] = read(text, option, declared.annotation) if declared else text
    return make_agent(name, **parameters)


def run_and_print(options: RunOptions) -> None:
    """Run, print, store; interrupted runs keep what was done and exit with status 130."""
    problem = read_problem(options.problem, options.problem_parameters)
    agent = read_agent(options.agent, options.agent_parameters, options.privacy)
    episodes = whole(options.episodes, "--episodes")
    grid: int | str = options.checkpoints
    if grid != "log":
        grid = whole(options.checkpoints, "--checkpoints")
    if options.out is not None:
        check_free(options.out, overwrite=options.overwrite)
    if options.plot is not None:
        check_target(options.plot)
    with progress_bar(f"{agent.name} on {problem.name}", episodes) as progress:
        result = simulate(
            problem,
            agent,
            episodes,
            whole(options.seeds, "--seeds"),
            seed=whole(options.seed, "--seed"),
            workers=None if options.workers is None else whole(options.workers, "--workers"),
            checkpoints=grid,
            reveal=options.reveal,
            progress=progress,
        )
    files = _store(result, options)
    if options.as_json:
        print(json.dumps(result.to_json()))
    else:
        console = Console(highlight=False)
        summary(console, result)
        for file in files:
            console.print(f"wrote {file}", soft_wrap=True)
    if result.interrupted:
        raise typer.Exit(130)


def _store(result: Result, options: RunOptions) -> list[Path]:
    files = []
    if options.out is not None:
        files.append(result.save(options.out, overwrite=options.overwrite))
        if result.completed:
            files.append(result.plot(options.out / "regret.png", log=options.log_log))
    if options.plot is not None and result.completed:
        files.append(result.plot(options.plot, log=options.log_log))
    return files
