"""What this package adds to the ``tacit`` command, found by entry points (see pyproject.toml).

Options are here, work is in the modules beside it, imported when needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options as given


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
    workers: given.Workers = None,
    as_json: given.Json = False,
) -> None:
    """Run a figure of a paper, draw it, and say of each claim whether it holds.

    A claim that does not hold is a finding, not a failure: the status is 0. Interrupted, the same
    command goes on where it stopped.

    Example: tacit reproduce tabular-ldp/figure-1 --quick
    """
    from tacit_papers.printing import reproduce_and_print

    size = "quick" if quick else size
    reproduce_and_print(figure, size=size, out=out, workers=workers, as_json=as_json)


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, one round.")] = False,
    peer_python: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A Python that has rlberry-scool, to time it as well."),
    ] = None,
    workers: given.Processes = None,
    as_json: given.Json = False,
) -> None:
    """Speed and utility side by side: tacit, loops by hand, rlberry-scool; all agents.

    Example: tacit bench --quick
    """
    from tacit_papers.bench.printing import bench_and_print

    bench_and_print(quick=quick, peer_python=peer_python, workers=workers, as_json=as_json)


def figures(*, as_json: bool) -> None:
    """``tacit list figures``: every figure with the time it takes."""
    from tacit_papers.printing import print_figures

    print_figures(as_json=as_json)
