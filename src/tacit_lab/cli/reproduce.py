"""``tacit reproduce``: a figure of a paper, a case study, or the bench; ``tacit list figures``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.display import Line, Told, bar, one_interrupt, speaker, tell
from tacit.cli.options import Json, Pairs, Workers, argument, assignments, file, option, pairs
from tacit.errors import InvalidInput, UnknownName, suggestion
from tacit.validate import choice

if TYPE_CHECKING:
    from rich.table import Table

    from tacit_lab.figures.figure import Claim, Figure
    from tacit_lab.figures.reproduction import Reproduction, Step, Watch

VERDICT = {True: "holds", False: "DOES NOT HOLD", None: "not decided"}


def reproduce(
    what: Annotated[
        str, argument("WHAT", "A figure (see: tacit list figures), coach, clinic, or bench.")
    ],
    size: Annotated[
        str, option("quick, full, or paper: as long as in the paper.", metavar="WORD")
    ] = "full",
    out: Annotated[
        Path | None, file("Folder for what is found (figures: tacit-figures).", None, "DIR")
    ] = None,
    options: Annotated[Pairs, pairs("-O", "Of a figure, a case study or the bench.", None)] = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Run a figure of a paper, a case study or the bench.

    Of a figure: whether each claim holds. One that does not is a finding, not a failure: the status
    is 0. Interrupted, the same command goes on where it stopped. -O bounds=true draws a second
    picture, of its curves beside what theorems say. Of the coach and the clinic: what a private
    policy is worth, by people and epsilon; -O takes people, epsilon, runs and seed, of the coach
    also agents and returns. Of bench, or bench/speed, bench/utility or bench/search: tacit beside
    others; -O peer_python=PATH names a Python that has rlberry-scool or stable-baselines3.

    Example: tacit reproduce tabular-ldp/figure-1 --size quick

    Example: tacit reproduce coach -O people=1e4,1e5 -O epsilon=8 --out coach

    Example: tacit reproduce bench/speed --size quick
    """
    from tacit_lab.cli import bench, cases
    from tacit_lab.figures import reproduction
    from tacit_lab.figures.figure import SCALES

    if size not in SCALES:
        raise UnknownName("size", size, SCALES)
    texts = assignments(options or (), "-O")
    names = [figure.id for figure in reproduction.figures]
    if what in cases.READ:
        if size != "full" or workers is not None:
            raise InvalidInput(f"{what} takes no --size and no --workers: give -O people and runs")
        cases.study(what, read_options(what, texts, cases.READ[what]), out, as_json)
    elif what in bench.PARTS:
        chosen = read_options(what, texts, bench.READ)
        bench.bench(what, chosen, quick=size == "quick", workers=workers, out=out, as_json=as_json)
    elif what not in names:
        raise UnknownName("figure", what, [*names, *cases.READ, *bench.PARTS])
    else:
        bounds = bool(read_options(what, texts, {"bounds": _switch}).get("bounds"))
        _figure(what, size, out or Path(reproduction.OUT), workers, as_json, bounds)


def read_options(
    what: str, texts: Mapping[str, str], readers: Mapping[str, Callable[[str, str], Any]]
) -> dict[str, Any]:
    """What was given with -O, each value by its reader; others are refused."""
    for name in texts:
        if name not in readers:
            raise InvalidInput(f"{what} has no option -O {name}{suggestion(name, readers)}")
    return {name: readers[name](text, f"-O {name}") for name, text in texts.items()}


def _switch(text: str, name: str) -> bool:
    return choice(text, name, ("true", "false")) == "true"


def _figure(
    what: str, size: str, out: Path, workers: int | None, as_json: bool, bounds: bool
) -> None:
    from rich.markup import escape

    from tacit_lab.figures import reproduction

    figure = reproduction.find(what)
    say = speaker(quiet=as_json)
    title = escape(f"{figure.title} ({figure.at(size).takes})")
    say(f"[bold]{figure.id}[/bold]: {title}", markup=True)
    try:
        with one_interrupt(), _bars() as watch:
            done = reproduction.reproduce(
                figure, size=size, out=out, workers=workers, watch=watch, bounds=bounds
            )
    except KeyboardInterrupt:
        print(
            f"stopped; finished parts are kept in {out}, and the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    tell(Told(done.to_json(), _lines(done), done.files), as_json=as_json)


def _lines(done: Reproduction) -> Iterator[str | Line]:
    for runs in done.evidence.curves.values():
        final = runs.final
        yield (
            f"  {runs.label}: regret {final.mean():.4g} after {runs.curve.episodes:,} episodes, "
            f"mean of {len(final)} problem{'s' if len(final) > 1 else ''} "
            f"({final.min():.4g} to {final.max():.4g})"
        )
    yield Line(_table(done.claims), wrap=True)
    kinds = [claim.holds for claim in done.claims]
    yield (
        f"{kinds.count(True)} of {len(kinds)} claims hold, {kinds.count(False)} do not, "
        f"{kinds.count(None)} not decided at this size"
    )
    for note in done.figure.noted(done.size):
        yield f"note: {note}"


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
    from tacit_lab.figures import reproduction

    rows = []
    for figure in reproduction.figures:
        facts = {"name": figure.id, "summary": figure.title, "paper": figure.paper}
        takes = {"quick": figure.quick.takes, "full": figure.full.takes}
        rows.append({**facts, **takes, "paper_size": figure.at("paper").takes})
    tell(Told({"figures": rows}, _listed(reproduction.figures)), as_json=as_json)


def _listed(figures: Iterable[Figure]) -> Iterator[str | Line]:
    from rich.text import Text

    for figure in figures:
        yield Line(Text.assemble((figure.id, "bold"), f"  {figure.title}"))
        yield f"    quick: {figure.quick.takes}"
        yield f"    full: {figure.full.takes}"
        if figure.paper_size is not None:
            yield f"    --size paper: {figure.paper_size.takes}"
