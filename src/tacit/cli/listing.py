"""``tacit list``: what there is, with parameters and defaults, or with the time it takes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from importlib.metadata import EntryPoints, entry_points
from typing import Any, Literal, get_args, get_origin

from rich.console import Console

from tacit.agents.catalogue import agents
from tacit.errors import UnknownName
from tacit.problems.catalogue import GYMNASIUM, problems
from tacit.registry import Entry


def entries(what: str) -> list[Entry[Any]]:
    """The entries of one kind."""
    kinds: dict[str, Iterable[Entry[Any]]] = {
        "agents": agents,
        "problems": [*problems, GYMNASIUM],
    }
    if what not in kinds:
        raise UnknownName("list", what, [*kinds, *_others().names])
    return list(kinds[what])


def _others() -> EntryPoints:
    """Lists that other packages print: functions of ``as_json``, named by their entry points."""
    return entry_points(group="tacit.lists")


def print_list(what: str, *, as_json: bool) -> None:
    """Print them as a table, or as one JSON object."""
    if what in _others().names:
        _others()[what].load()(as_json=as_json)
        return
    rows = [_row(entry) for entry in entries(what)]
    if as_json:
        print(json.dumps({what: rows}))
        return
    console = Console(highlight=False)
    for row in rows:
        console.print(f"[bold]{row['name']}[/bold]  {row['summary']}", soft_wrap=True)
        for parameter in row["parameters"]:
            console.print(f"    {_line(parameter)}", markup=False, soft_wrap=True)


def _row(entry: Entry[Any]) -> dict[str, Any]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        "name": entry.name,
        "summary": entry.summary,
        "parameters": [
            {
                "name": name,
                "type": _type_name(parameter.annotation),
                "required": parameter.default is parameter.empty,
                "default": None if parameter.default is parameter.empty else parameter.default,
            }
            for name, parameter in entry.parameters.items()
            if parameter.kind in named
        ],
    }


def _line(parameter: dict[str, Any]) -> str:
    default = "required" if parameter["required"] else f"default {parameter['default']}"
    return f"{parameter['name']}: {parameter['type']}, {default}"


def _type_name(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return " | ".join(str(option) for option in get_args(annotation))
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
