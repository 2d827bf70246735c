"""``tacit list``: what there is, with parameters and defaults, or with the time it takes."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from tacit.cli.display import speaker
from tacit.cli.options import Json
from tacit.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from tacit.registry import Registered, Registry

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def list_(
    what: Annotated[str, typer.Argument(help="agents, problems or figures", metavar="WHAT")],
    as_json: Json = False,
) -> None:
    """List agents and problems with their parameters and defaults, or figures with their times.

    Those that other installed packages add come last, each with the package it is from.

    Example: tacit list agents
    """
    from importlib.metadata import entry_points

    from rich.markup import escape

    others = entry_points(group="tacit.lists")
    if what in others.names:
        others[what].load()(as_json=as_json)
        return
    rows = [_row(entry) for entry in entries(what)]
    rows += [_foreign(entry, registry(what)) for entry in registry(what).installed]
    if as_json:
        print(json.dumps({what: rows}))
        return
    say = speaker()
    for row in rows:
        origin = "" if row["package"] == "tacit" else f" (from the package {row['package']})"
        say(f"[bold]{row['name']}[/bold]  {escape(row['summary'] + origin)}", markup=True)
        for parameter in row["parameters"]:
            default = "required" if parameter["required"] else f"default {parameter['default']}"
            say(f"    {parameter['name']}: {parameter['type']}, {default}")


def registry(what: str) -> Registry[Any]:
    """The registry of one kind."""
    from importlib.metadata import entry_points

    from tacit.agents.catalogue import agents
    from tacit.problems.catalogue import problems

    kinds: dict[str, Registry[Any]] = {"agents": agents, "problems": problems}
    if what not in kinds:
        raise UnknownName("list", what, [*kinds, *entry_points(group="tacit.lists").names])
    return kinds[what]


def entries(what: str) -> list[Registered[Any]]:
    """Tacit's own entries of one kind."""
    from tacit.problems.catalogue import GYMNASIUM

    return [*registry(what), *([GYMNASIUM] if what == "problems" else [])]


def _foreign(entry: Registered[Any], known: Registry[Any]) -> dict[str, Any]:
    """The row of another package's entry; what is wrong with it is said there, and not raised."""
    nothing = {"name": entry.name, "package": entry.package, "parameters": []}
    used = known.entry(entry.name)
    if used is not entry:
        return {**nothing, "summary": f"not used: the name is {used.package or 'tacit'}'s"}
    try:
        return _row(entry)
    except InvalidInput as error:
        return {**nothing, "summary": f"not usable: {error}"}


def _row(entry: Registered[Any]) -> dict[str, Any]:
    return {
        "name": entry.name,
        "summary": entry.summary,
        "package": entry.package or "tacit",
        "parameters": [
            {
                "name": name,
                "type": _type_name(parameter.annotation),
                "required": parameter.default is parameter.empty,
                "default": None if parameter.default is parameter.empty else parameter.default,
            }
            for name, parameter in entry.parameters.items()
            if parameter.kind in _NAMED
        ],
    }


def _type_name(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return " | ".join(str(option) for option in get_args(annotation))
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
