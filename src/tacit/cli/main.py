"""The ``tacit`` command: what it offers, and how mistakes are told.

A command's options and its work are in the module of its name. A module is imported when its
command is used, those of the laboratory and the service by their entry points; ``tacit --help``
prints a table that is written down here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from tacit._version import __version__
from tacit.cli.options import Unreadable
from tacit.errors import InvalidInput, MissingExtra, TacitError, suggestion

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = {
    "Try": {
        "demo": "The two-minute tour: see agents learn, and what was promised.",
        "run": "Run an agent on a problem, known or only played, and score it.",
        "list": "List agents and problems, or figures with their times.",
        "show": "Print a saved policy or result, or compare two statements.",
    },
    "Check": {
        "guarantee": "Say what would be guaranteed and forecast it; run nothing.",
        "audit": "Try to refute a guarantee, on worst-case neighbours.",
        "size": "How many users until learning pays, and at which epsilon.",
    },
    "Serve": {
        "serve": "Collect reports over HTTP and learn from them.",
        "admin": "Check, rehearse and look after a deployment.",
    },
    "Logs": {
        "offline": "Learn a policy from a log, or say what a policy is worth by it.",
    },
    "Papers": {
        "sweep": "Run every combination that a file lists; write tables.",
        "report": "Results as one self-contained HTML file.",
        "reproduce": "Run a figure of a paper, a case study or the bench.",
    },
}
"""By group the commands and their sentences, those of the packages beside the library included."""

NAMES = tuple(name for group in COMMANDS.values() for name in group)

LIBRARY = {"list": "list:list_"} | {
    name: f"{name}:{name}" for name in ("run", "show", "guarantee", "audit", "size", "offline")
}
"""Where the library's own commands are in this package."""

EXTRAS = {"serve": ("service",), "admin": ("service",), "report": ("report",)}
"""What commands need besides the core; the others say it when they come to it."""

EPILOG = "tacit COMMAND --help has the options of a command, and an example."


class Command(TyperCommand):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then the groups in the order of their first option."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            usual = "Arguments" if parameter.param_type_name == "argument" else "Other options"
            heading = getattr(parameter, "rich_help_panel", None) or usual
            if record is not None:
                groups.setdefault(heading, []).append(record)
        other = groups.pop("Other options", [])
        for heading, rows in [*groups.items(), ("Other options", other)]:
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class Commands(TyperGroup):
    """All commands, each loaded when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Ours, and those that other packages add."""
        return [*NAMES, *foreign()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        if cmd_name not in self.commands:
            work = load(cmd_name)
            if work is None and cmd_name in NAMES:
                raise MissingExtra(
                    f"there is no command {cmd_name!r} here: this installation holds the library "
                    "alone; pip install tacit brings the laboratory and the service"
                )
            if work is None:
                near = suggestion(cmd_name, self.list_commands(ctx))
                raise InvalidInput(f"there is no command {cmd_name!r}{near} (see tacit --help)")
            self.add_command(as_command(cmd_name, work), cmd_name)
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The table, by what people want to do."""
        for heading, group in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl(list(group.items()))
        if others := list(_sentences(foreign())):
            with formatter.section("Other packages"):
                formatter.write_dl(others)


def _entries() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group="tacit.commands")}


def foreign() -> dict[str, EntryPoint]:
    """Commands of other packages by name; they never replace one of ours."""
    return {name: point for name, point in _entries().items() if name not in NAMES}


def _sentences(others: dict[str, EntryPoint]) -> Iterator[tuple[str, str]]:
    for name, point in others.items():
        try:
            text = point.load().__doc__ or ""
        except Exception as error:  # what is left of a removed package must not stop the others
            print(f"tacit: no command {name}: {error}", file=sys.stderr)
            continue
        yield name, text.strip().partition("\n")[0]


def load(name: str) -> Any:
    """What does a command's work, or None where nobody has it."""
    if name in LIBRARY:
        import importlib

        module, _, function = LIBRARY[name].partition(":")
        return getattr(importlib.import_module(f"tacit.cli.{module}"), function)
    from tacit.errors import need

    if name in EXTRAS:
        need(f"tacit {name}", *EXTRAS[name])
    point = _entries().get(name)
    if point is None:
        return None
    try:
        return point.load()
    except ImportError as error:
        raise MissingExtra(
            f"the command {name} of {point.value} cannot be loaded: {error}"
        ) from None


def as_command(name: str, work: Any) -> Any:
    """A function, or several commands under one name, as what is called."""
    made = work
    if not isinstance(work, typer.Typer):
        made = typer.Typer(add_completion=False, rich_markup_mode=None)
        made.command(name, cls=Command)(work)
    for one in made.registered_commands:
        one.cls = Command
    return typer.main.get_command(made)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Reinforcement learning that keeps its users' secrets.",
    epilog=EPILOG,
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


def main() -> None:
    """Entry point: a person's mistake is one line on stderr and status 2, never a traceback."""
    try:
        status = app(prog_name="tacit", standalone_mode=False)
    except TacitError as error:
        status = _complain(str(error))
    except Unreadable as error:
        status = _complain(error.format_message())
    except TyperException as error:
        status = _complain(f"{error.format_message().rstrip('.')} (see tacit --help)")
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        sys.stderr.close()
        status = 1
    except MemoryError:
        status = _complain("not enough memory: choose smaller sizes, fewer runs or checkpoints")
    except OSError as error:  # a full disk, a folder that went away
        status = _complain(f"{error.filename or 'output'}: {error.strerror or error}")
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str) -> int:
    print(f"tacit: {' '.join(message.split())}", file=sys.stderr)
    return 2
