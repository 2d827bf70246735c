"""The ``tacit`` command: what it offers, and how mistakes are told.

A command's options and its work are in the module of its name, whose heavy imports wait until the
command is run: ``tacit --help`` is quick.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

from tacit._version import __version__
from tacit.cli import options as given
from tacit.cli.audit import audit
from tacit.cli.fleet import fleet
from tacit.cli.guarantee import guarantee
from tacit.cli.listing import list_
from tacit.cli.run import demo, run
from tacit.cli.serve import serve, tokens
from tacit.cli.sweep import report, sweep
from tacit.errors import TacitError

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Reinforcement learning that keeps its users' secrets.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Reinforcement learning that keeps its users' secrets."""
    if version:
        print(f"tacit {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command()(demo)
app.command("list")(list_)
for _command in (run, guarantee, audit):
    app.command()(_command)


@app.command()
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
    from tacit.cli.reproduce import reproduce_and_print

    size = "quick" if quick else size
    reproduce_and_print(figure, size=size, out=out, workers=workers, as_json=as_json)


for _command in (sweep, serve, fleet, tokens, report):
    app.command()(_command)


@app.command()
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
    from tacit.cli.bench import bench_and_print

    bench_and_print(quick=quick, peer_python=peer_python, workers=workers, as_json=as_json)


def main() -> None:
    """Entry point: a person's mistake is one line on stderr and status 2, never a traceback."""
    try:
        status = app(prog_name="tacit", standalone_mode=False)
    except TacitError as error:
        status = _complain(str(error))
    except given.Unreadable as error:
        status = _complain(error.format_message())
    except TyperException as error:
        status = _complain(f"{error.format_message().rstrip('.')} (see tacit --help)")
    except BrokenPipeError:
        sys.stderr.close()
        status = 1
    except MemoryError:
        status = _complain("not enough memory: choose smaller sizes, fewer seeds or checkpoints")
    except OSError as error:  # a full disk, a folder that went away
        status = _complain(f"{error.filename or 'output'}: {error.strerror or error}")
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str) -> int:
    print(f"tacit: {' '.join(message.split())}", file=sys.stderr)
    return 2
