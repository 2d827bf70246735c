"""``tacit reproduce``: a figure of a paper, and whether its claims hold; ``tacit list figures``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.display import bar, speaker
from tacit.cli.options import Json, Workers
from tacit.cli.run import one_interrupt

if TYPE_CHECKING:
    from rich.table import Table

    from tacit_lab.figures.figure import Claim
    from tacit_lab.figures.reproduction import Reproduction, Step, Watch

VERDICT = {True: "holds", False: "DOES NOT HOLD", None: "not decided"}


def reproduce(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="See: tacit list figures")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Same as --size quick: less than two minutes.")
    ] = False,
    size: Annotated[
        str, typer.Option(metavar="WORD", help="quick, full, or paper: as long as in the paper.")
    ] = "full",
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for pictures, claims and finished parts.")
    ] = Path("tacit-figures"),
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Run a figure of a paper, draw it, and say of each claim whether it holds.

    A claim that does not hold is a finding, not a failure: the status is 0. Interrupted, the same
    command goes on where it stopped.

    Example: tacit reproduce tabular-ldp/figure-1 --quick
    """
    from rich.markup import escape

    from tacit_lab.figures import reproduction

    found, size = reproduction.find(figure), "quick" if quick else size
    say = speaker(quiet=as_json)
    takes = found.at(size)[1]
    say(f"[bold]{found.id}[/bold]: {escape(f'{found.title} ({takes})')}", markup=True)
    try:
        with one_interrupt(), _bars() as watch:
            done = reproduction.reproduce(found, size=size, out=out, workers=workers, watch=watch)
    except KeyboardInterrupt:
        print(
            f"stopped; finished parts are kept in {out}, and the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(done.to_json(), allow_nan=False))
    else:
        _report(say, done)


def _report(say: Callable[..., None], done: Reproduction) -> None:
    for runs in done.evidence.curves.values():
        final = runs.final
        say(
            f"  {runs.label}: regret {final.mean():.4g} after {runs.curve.episodes:,} episodes, "
            f"mean of {len(final)} problem{'s' if len(final) > 1 else ''} "
            f"({final.min():.4g} to {final.max():.4g})"
        )
    say(_table(done.claims), soft_wrap=False)
    kinds = [claim.holds for claim in done.claims]
    say(
        f"{kinds.count(True)} of {len(kinds)} claims hold, {kinds.count(False)} do not, "
        f"{kinds.count(None)} not decided at this size"
    )
    for note in done.figure.notes(done.size):
        say(f"note: {note}")
    for file in done.files:
        say(f"wrote {file}")


def _table(claims: tuple[Claim, ...]) -> Table:
    from rich.table import Table

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
    """An overall bar and one for the part in progress."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with bar(*columns) as bars:
        overall, current = bars.add_task("all parts", total=1.0), bars.add_task("", total=1.0)

        def watch(step: Step) -> None:
            number = f"part {step.part + 1} of {step.parts}"
            bars.update(current, description=f"{number}: {step.label}", completed=step.share)
            bars.update(overall, completed=(step.part + step.share) / step.parts)

        yield watch


def figures(*, as_json: bool) -> None:
    """``tacit list figures``: every figure with the time it takes."""
    from rich.markup import escape

    from tacit_lab.figures import reproduction

    if as_json:
        rows = [
            {
                "name": figure.id,
                "summary": figure.title,
                "paper": figure.paper,
                "quick": figure.quick_time,
                "full": figure.full_time,
                "paper_size": figure.paper_time or figure.full_time,
            }
            for figure in reproduction.figures
        ]
        print(json.dumps({"figures": rows}))
        return
    say = speaker()
    for figure in reproduction.figures:
        say(f"[bold]{figure.id}[/bold]  {escape(figure.title)}", markup=True)
        say(f"    --quick: {figure.quick_time}")
        say(f"    full: {figure.full_time}")
        if figure.paper_size is not None:
            say(f"    --size paper: {figure.paper_time}")
