"""``tacit sweep``: a file of runs, on local processes or on a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from tacit._version import __version__
from tacit.cli.run import one_interrupt
from tacit.cli.values import processes
from tacit.errors import InvalidInput
from tacit.privacy.guarantee import Guarantee
from tacit.sweep.estimate import duration
from tacit.sweep.pool import run_on_processes
from tacit.sweep.ray_backend import connected, run_on_ray
from tacit.sweep.run import Backend, SweepProgress, Swept, Watch, run
from tacit.sweep.spec import read
from tacit.sweep.tasks import Task, said

OUT = Path("tacit-sweeps")
_MOST_ROWS = 60


@dataclass(frozen=True)
class SweepOptions:
    """The options of ``tacit sweep``, as typed."""

    workers: str | None
    ray: str | None
    resume: bool
    out: Path | None
    as_json: bool


def write_example(path: Path) -> None:
    """Write a spec to start from; an existing file is left alone."""
    example = Path(__file__).resolve().parents[1] / "sweep" / "example.toml"
    try:
        with path.open("x") as file:
            file.write(example.read_text())
    except FileExistsError:
        raise InvalidInput(f"{path} exists and was left alone; give --init another name") from None
    print(f"wrote {path}; run it: tacit sweep {path}")


def sweep_and_print(path: Path, options: SweepOptions) -> None:
    """Run, print, store; status 1 if tasks failed, 130 if it was interrupted."""
    spec = read(path)
    out = options.out if options.out is not None else OUT / spec.name
    if options.workers is not None and options.ray is not None:
        raise InvalidInput("--workers is for local processes, --ray for a cluster: give one")
    count = processes(options.workers)
    try:
        with one_interrupt(), _backend(options.ray, count) as (backend, slots), _bar() as watch:
            done = run(spec, out, backend, workers=slots, resume=options.resume, watch=watch)
    except KeyboardInterrupt:
        print(
            f"stopped; finished tasks are kept in {out}, and the same command with --resume goes "
            "on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    if options.as_json:
        print(json.dumps(_json(done), allow_nan=False))
    else:
        _report(Console(highlight=False), done)
    if done.failures:
        raise typer.Exit(1)


@contextmanager
def _backend(address: str | None, count: int) -> Iterator[tuple[Backend[Task], int]]:
    """Where tasks run, and how many at once."""
    if address is None:
        yield partial(run_on_processes, workers=count), count
        return
    with connected(address, count) as slots:
        yield partial(run_on_ray, slots=slots), slots


@contextmanager
def _bar() -> Iterator[Watch]:
    """One bar for the whole sweep, on stderr; silent where nobody watches."""
    console = Console(stderr=True)
    bars = Bars(
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} tasks"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}{task.fields[failed]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bars:
        line = bars.add_task("", total=1, left="", failed="")

        def watch(now: SweepProgress) -> None:
            left = "" if now.seconds_left is None else f"about {duration(now.seconds_left)} left"
            failed = f", {now.failed:,} failed" if now.failed else ""
            bars.update(line, total=now.total, completed=now.done, left=left, failed=failed)

        yield watch


def _json(done: Swept) -> dict[str, Any]:
    rows = _rows(done)
    configurations = [
        {key: described[key] for key in ("label", "problem", "agent", "episodes", "seeds")}
        | {"regret": rows[described["configuration"]]}
        | {key: described[key] for key in ("guarantee", "chosen")}
        for described in done.sweep.configurations
    ]
    return {
        "tacit": __version__,
        "out": str(done.sweep.folder),
        "tasks": {
            "total": done.total,
            "kept": done.kept,
            "ran": done.ran,
            "failed": len(done.failures),
        },
        "configurations": configurations,
        "failures": list(done.failures),
        "files": [str(file) for file in done.files],
        "timing": {"seconds": done.seconds},
    }


def _rows(done: Swept) -> list[dict[str, Any]]:
    """Final regret of each configuration: mean, standard deviation, 95% Student t interval."""
    from tacit.intervals import mean_interval

    runs = done.sweep.runs
    rows = []
    for described in done.sweep.configurations:
        mine = runs["configuration"] == described["configuration"]
        regret = runs["regret"].to_numpy(dtype=float)[mine]
        n = len(regret)
        mean = float(regret.mean()) if n else None
        std = float(regret.std(ddof=1)) if n > 1 else None
        interval: list[float | None] = [None, None]
        if n > 1:
            found = mean_interval(regret)
            interval = [found.low, found.high]
        rows.append({"mean": mean, "std": std, "ci95": interval})
    return rows


def _report(console: Console, done: Swept) -> None:
    say = partial(console.print, soft_wrap=True, markup=False)
    configurations = done.sweep.configurations
    lines = list(zip(configurations, _rows(done), strict=True))
    for where, group in groupby(lines[:_MOST_ROWS], key=lambda line: _where(line[0])):
        console.print(_table(where, group))
    if len(configurations) > _MOST_ROWS:
        say(f"and {len(configurations) - _MOST_ROWS} more in {done.files[0]}")
    chosen = [described for described in configurations if described["chosen"] is not None]
    for described in chosen[:_MOST_ROWS]:
        say(f"{described['label']}: {described['chosen']['brief']}")
    for statement in dict.fromkeys(described["chosen"]["deviation"] for described in chosen):
        say(f"note: {statement}")
    say(
        f"{done.ran:,} tasks ran in {duration(done.seconds)}, {done.kept:,} were finished before, "
        f"{len(done.failures):,} failed"
    )
    _complain(done.failures)
    for file in done.files:
        say(f"wrote {file}")


def _where(described: dict[str, Any]) -> str:
    given = described["given"]["problem"]
    return f"{said(described['problem']['name'], given)}, {described['episodes']:,} episodes"


def _table(where: str, lines: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> Table:
    table = Table(title=where, title_justify="left")
    for heading in ("agent", "seeds", "regret", "95% interval", "guarantee"):
        table.add_column(heading, overflow="fold")
    for described, row in lines:
        low, high = row["ci95"]
        stated = described["guarantee"]
        table.add_row(
            said(described["agent"]["name"], described["given"]["agent"]),
            str(len(described["seeds"])),
            "not finished" if row["mean"] is None else f"{row['mean']:.5g}",
            "" if low is None else f"{low:.5g} to {high:.5g}",
            "" if stated is None else Guarantee.from_json(stated).brief(),
        )
    return table


def _complain(failures: Iterable[dict[str, Any]]) -> None:
    """Failures on stderr, once per reason and configuration."""

    def reason(failure: dict[str, Any]) -> tuple[str, str]:
        return failure["label"], failure["error"]

    for (label, error), group in groupby(sorted(failures, key=reason), key=reason):
        seeds = ", ".join(str(failure["seed"]) for failure in group)
        print(f"failed: {label}, seed {seeds}: {error}", file=sys.stderr)
