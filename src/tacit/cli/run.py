"""``tacit run``: one agent on one problem."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import typer
from rich.console import Console

from tacit.cli.case import Case
from tacit.cli.display import progress_bar, summary
from tacit.cli.values import whole
from tacit.simulation import Result, simulate
from tacit.simulation.plot import check_target
from tacit.simulation.result import prepare


@dataclass(frozen=True)
class RunOptions:
    """The options that only ``tacit run`` has, as typed."""

    seeds: str
    seed: str
    workers: str | None
    checkpoints: str
    out: Path | None
    overwrite: bool
    plot: Path | None
    log_log: bool
    as_json: bool


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


def run_and_print(case: Case, options: RunOptions) -> None:
    """Run, print, store; interrupted runs keep what was done and exit with status 130."""
    with one_interrupt():
        _run_and_print(case, options)


def _run_and_print(case: Case, options: RunOptions) -> None:
    problem, agent, episodes = case.problem(), case.agent(), case.episodes()
    grid: int | str = options.checkpoints
    if grid != "log":
        grid = whole(options.checkpoints, "--checkpoints")
    if options.out is not None:
        prepare(options.out, overwrite=options.overwrite)
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
            reveal=case.reveal,
            progress=progress,
        )
    files = _store(result, options)
    if options.as_json:
        print(json.dumps(result.to_json()))
    else:
        console = Console(highlight=False)
        summary(console, result)
        for file in files:
            console.print(f"wrote {file}", soft_wrap=True, markup=False)
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
