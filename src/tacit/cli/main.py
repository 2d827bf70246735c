"""The ``tacit`` command: what it offers, and how mistakes are told.

A command's options and its work are in the module of its name, whose heavy imports wait until the
command is run: ``tacit --help`` is quick.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from typer.exceptions import TyperException

from tacit._version import __version__
from tacit.cli import options as given
from tacit.cli.audit import audit
from tacit.cli.guarantee import guarantee
from tacit.cli.learn import learn
from tacit.cli.list import list_
from tacit.cli.offline import evaluate, offline
from tacit.cli.run import run
from tacit.cli.show import show
from tacit.cli.size import plan
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


OWN: dict[str, Callable[..., None]] = {"list": list_, "show": show}
OWN |= {"run": run, "learn": learn, "guarantee": guarantee, "plan": plan, "audit": audit}
OWN |= {"offline": offline, "evaluate": evaluate}
for _name, _command in OWN.items():
    app.command(_name)(_command)


@functools.cache
def add_commands() -> None:
    """Commands of the laboratory, the service and other packages, named by their entry points."""
    from importlib.metadata import entry_points

    for point in entry_points(group="tacit.commands"):
        try:
            app.command(point.name)(point.load())
        except ImportError as error:  # what is left of a removed package must not stop the others
            print(f"tacit: no command {point.name}: {error}", file=sys.stderr)


def main() -> None:
    """Entry point: a person's mistake is one line on stderr and status 2, never a traceback."""
    if not OWN.keys() & sys.argv[1:2]:  # reading the entry points of all packages takes a while
        add_commands()
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
