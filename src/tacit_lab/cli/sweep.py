"""``tacit sweep``: a file of runs, on local processes or on a cluster; ``tacit report``: a page."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import resources
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit._version import __version__
from tacit.cli.display import Line, Told, bar, one_interrupt, tell
from tacit.cli.options import Json, Processes, argument, cores, file, flag, write_new
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from tacit_lab.sweep.run import Backend, SweepProgress, SweepResult, Watch

OUT = Path("tacit-sweeps")
_MOST_ROWS = 60


def sweep(
    spec: Annotated[Path, argument("SPEC.toml", "What to run.")],
    init: Annotated[bool, flag("--init", "Write an example to SPEC.toml and run nothing.")] = False,
    workers: Processes = None,
    ray: Annotated[str | None, file('A Ray cluster instead, or "local".', None, "ADDRESS")] = None,
    resume: Annotated[bool, flag("--resume", "Go on in a folder that holds a sweep.")] = False,
    out: Annotated[Path | None, file("Folder (default: tacit-sweeps/SPEC).", None, "DIR")] = None,
    as_json: Json = False,
) -> None:
    """Run every combination that a file lists; write tables.

    Finished tasks are never run again: interrupted or killed, the same command with --resume goes
    on, and the results are those of a run without interruption. Exits with status 1 if tasks
    failed; they are reported, and --resume tries them again.

    Example: tacit sweep study.toml --init; tacit sweep study.toml
    """
    if init:
        write_new(
            spec, resources.files("tacit_lab.sweep").joinpath("example.toml").read_text("utf-8")
        )
        print(f"wrote {spec}; run it: tacit sweep {spec}")
        return
    from tacit_lab.sweep.run import run
    from tacit_lab.sweep.spec import read

    listed = read(spec)
    folder = out if out is not None else OUT / listed.name
    if workers is not None and ray is not None:
        raise InvalidInput("--workers is for local processes, --ray for a cluster: give one")
    count = cores(workers)
    try:
        with one_interrupt(), _backend(ray, count) as backend, _bar() as watch:
            done = run(listed, folder, backend, resume=resume, watch=watch)
    except KeyboardInterrupt:
        print(
            f"stopped; finished tasks are kept in {folder}, and the same command with --resume "
            "goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    tell(Told(_json(done), _lines(done), done.files), as_json=as_json)
    if not as_json:
        _complain(done.progress.failures)
    if done.progress.failures:
        raise typer.Exit(1)


@contextmanager
def _backend(address: str | None, count: int) -> Iterator[Backend]:
    """Where tasks run."""
    from tacit_lab.sweep import pool
    from tacit_lab.sweep import ray as ray_backend

    if address is None:
        yield partial(pool.run_on_processes, workers=count)
        return
    with ray_backend.connected(address, count) as slots:
        yield partial(ray_backend.run_on_ray, slots=slots)


@contextmanager
def _bar() -> Iterator[Watch]:
    """One bar for the whole sweep."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} tasks"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}"),
    )
    with bar(*columns) as drawn:
        line = drawn.add_task("", total=1, failed="")

        def watch(now: SweepProgress) -> None:
            failed = f"{len(now.failures):,} failed" if now.failures else ""
            drawn.update(line, total=now.total, completed=now.done, failed=failed)

        yield watch


def _json(done: SweepResult) -> dict[str, Any]:
    rows, work = _rows(done), done.progress
    failed = len(work.failures)
    configurations = [
        {key: described[key] for key in ("label", "problem", "agent", "episodes", "seeds")}
        | {"regret": rows[described["configuration"]]}
        | {key: described[key] for key in ("guarantee", "chosen")}
        for described in done.sweep.configurations
    ]
    return {
        "tacit": __version__,
        "out": str(done.sweep.folder),
        "tasks": {"total": work.total, "kept": work.kept, "ran": work.ran, "failed": failed},
        "configurations": configurations,
        "failures": list(work.failures),
        "files": [str(file) for file in done.files],
        "timing": {"seconds": done.seconds},
    }


def _rows(done: SweepResult) -> list[dict[str, Any]]:
    """Final regret of each configuration: mean, standard deviation, 95% Student t interval."""
    from tacit.util.intervals import mean_interval

    runs = done.sweep.runs
    rows = []
    for described in done.sweep.configurations:
        mine = runs["configuration"] == described["configuration"]
        regret = runs["regret"].to_numpy(dtype=float)[mine]
        n = len(regret)
        mean = float(regret.mean()) if n else None
        std = float(regret.std(ddof=1)) if n > 1 else None
        spread = mean_interval(regret, least=0.0) if n > 1 else None
        interval = [None, None] if spread is None else [spread.low, spread.high]
        rows.append({"mean": mean, "std": std, "ci95": interval})
    return rows


def _lines(done: SweepResult) -> Iterator[str | Line]:
    from tacit.util.durations import in_words

    configurations = done.sweep.configurations
    lines = list(zip(configurations, _rows(done), strict=True))
    for where, group in groupby(lines[:_MOST_ROWS], key=lambda line: _where(line[0])):
        yield Line(_table(where, group), wrap=True)
    if len(configurations) > _MOST_ROWS:
        yield f"and {len(configurations) - _MOST_ROWS} more in {done.files[0]}"
    chosen = [described for described in configurations if described["chosen"] is not None]
    for described in chosen[:_MOST_ROWS]:
        yield f"{described['label']}: {described['chosen']['brief']}"
    for statement in dict.fromkeys(described["chosen"]["deviation"] for described in chosen):
        yield f"note: {statement}"
    tasks = done.progress
    yield (
        f"{tasks.ran:,} tasks ran in {in_words(round(done.seconds))}, {tasks.kept:,} were finished "
        f"before, {len(tasks.failures):,} failed"
    )


def _where(described: dict[str, Any]) -> str:
    from tacit.experiment_spec import label_of

    own = described["given"]["problem"]
    return f"{label_of(described['problem']['name'], own)}, {described['episodes']:,} episodes"


def _table(where: str, lines: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> Table:
    from rich.table import Table

    from tacit.experiment_spec import label_of
    from tacit.privacy.guarantee import Guarantee

    table = Table(title=where, title_justify="left")
    for heading in ("agent", "seeds", "mean regret", "95% interval over seeds", "guarantee"):
        table.add_column(heading, overflow="fold")
    for described, row in lines:
        low, high = row["ci95"]
        stated = described["guarantee"]
        back = label_of("", described["given"]["coming"])
        table.add_row(
            label_of(described["agent"]["name"], described["given"]["agent"]) + back,
            str(len(described["seeds"])),
            "not finished" if row["mean"] is None else f"{row['mean']:.5g}",
            "" if low is None else f"{low:.5g} to {high:.5g}",
            "" if stated is None else Guarantee.from_json(stated).brief(),
        )
    return table


def _complain(failures: Iterable[dict[str, Any]]) -> None:
    """Failures on stderr, once per reason and configuration."""
    reason = itemgetter("label", "error")
    for (label, error), group in groupby(sorted(failures, key=reason), key=reason):
        seeds = ", ".join(str(failure["seed"]) for failure in group)
        print(f"failed: {label}, seed {seeds}: {error}", file=sys.stderr)
