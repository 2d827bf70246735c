"""``tacit reproduce``: a figure of a paper, and whether its claims hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tacit.cli.run import one_interrupt
from tacit.experiments import Claim, Reproduction, find, reproduce
from tacit.experiments.gather import Step, Watch

VERDICT = {True: "holds", False: "DOES NOT HOLD", None: "not decided"}


def reproduce_and_print(
    name: str, *, size: str, out: Path, workers: int | None, as_json: bool
) -> None:
    """Run it and print every claim; interrupted, it keeps finished parts and exits with 130."""
    figure = find(name)
    console = Console(highlight=False, quiet=as_json)
    takes = figure.at(size)[1]
    console.print(f"[bold]{figure.id}[/bold]: {figure.title} ({takes})", soft_wrap=True)
    try:
        with one_interrupt(), _bars() as watch:
            done = reproduce(figure, size=size, out=out, workers=workers, watch=watch)
    except KeyboardInterrupt:
        print(
            f"stopped; finished parts are kept in {out}, and the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(done.to_json(), allow_nan=False))
    else:
        _report(console, done)


def _report(console: Console, done: Reproduction) -> None:
    for runs in done.evidence.curves.values():
        final = runs.final
        console.print(
            f"  {runs.label}: regret {final.mean():.4g} after {runs.curve.episodes:,} episodes, "
            f"mean of {len(final)} problem{'s' if len(final) > 1 else ''} "
            f"({final.min():.4g} to {final.max():.4g})",
            soft_wrap=True,
            markup=False,
        )
    console.print(_table(done.claims))
    kinds = [claim.holds for claim in done.claims]
    console.print(
        f"{kinds.count(True)} of {len(kinds)} claims hold, {kinds.count(False)} do not, "
        f"{kinds.count(None)} not decided at this size"
    )
    for note in done.figure.notes(done.size):
        console.print(f"note: {note}", soft_wrap=True, markup=False)
    for file in done.files:
        console.print(f"wrote {file}", soft_wrap=True, markup=False)


def _table(claims: tuple[Claim, ...]) -> Table:
    table = Table(show_lines=True)
    for heading in ("claim", "expected", "measured", "verdict"):
        table.add_column(heading, overflow="fold")
    for claim in claims:
        numbers = "\n".join(f"{name}: {value:.4g}" for name, value in claim.measured.items())
        verdict = VERDICT[claim.holds] + (f": {claim.why}" if claim.why else "")
        table.add_row(claim.claim, claim.expected, numbers, verdict)
    return table


@contextmanager
def _bars() -> Iterator[Watch]:
    """An overall bar and one for the part in progress, on stderr; silent where nobody watches."""
    console = Console(stderr=True)
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bars:
        overall, current = bars.add_task("all parts", total=1.0), bars.add_task("", total=1.0)

        def watch(step: Step) -> None:
            number = f"part {step.part + 1} of {step.parts}"
            bars.update(current, description=f"{number}: {step.label}", completed=step.share)
            bars.update(overall, completed=(step.part + step.share) / step.parts)

        yield watch
