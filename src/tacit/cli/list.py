"""``tacit list``: what there is, with parameters and defaults, or with the time it takes."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from tacit.cli.display import Line, Told, tell
from tacit.cli.options import Json, argument
from tacit.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from tacit.util.registry import Registered, Registry

WIDTH = 80
"""Columns that every terminal has."""

_WHAT = "agents, problems, attendance or figures; by default the names"
_WORDS = {int: "whole number", float: "number", bool: "true | false", str: "text"}
_WORDS |= {NoneType: "none", inspect.Parameter.empty: "anything"}
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def list_(
    what: Annotated[str | None, argument("[WHAT]", _WHAT)] = None, as_json: Json = False
) -> None:
    """List agents and problems, or figures with their times.

    With WHAT, with parameters and defaults.

    Those that other installed packages add come last, each with the package it is from.

    Example: tacit list

    Example: tacit list agents
    """
    from importlib.metadata import entry_points

    others = entry_points(group="tacit.lists")
    if what is not None and what in others.names:
        others[what].load()(as_json=as_json)
        return
    kinds = ["agents", "problems"] if what is None else [what]
    rows = {kind: _laws() if kind == "attendance" else _rows(kind) for kind in kinds}
    more = ", ".join((*kinds, "attendance", *sorted(others.names))) if what is None else ""
    tell(Told(rows, _lines(rows, more)), as_json=as_json)


def _lines(rows: dict[str, list[dict[str, Any]]], more: str) -> Iterator[str | Line]:
    """Names and sentences only where ``more`` names the lists that have all of it."""
    for kind, entries in rows.items():
        if more:
            yield Line(kind, style="bold")
        source = "people"
        for row in entries:
            if row.get("source", source) != source:
                source = row["source"]
                yield Line(f"{kind} that learn from a {source}", style="bold")
            yield from _entry(row, short=bool(more))
    if more:
        yield f"With parameters: tacit list WHAT, one of {more}"


def _entry(row: dict[str, Any], *, short: bool) -> Iterator[str | Line]:
    """A name and its sentence; unless ``short``, also what it is for and what it takes."""
    from rich.text import Text

    origin = "" if row["package"] == "tacit" else f" (from the package {row['package']})"
    begin = "  " if short else ""
    name = f"{begin}{row['name']}  "
    first, *rest = _wrapped(row["summary"] + origin, name, indent=f"{begin}    ")
    sentence = first.removeprefix(name)
    yield Line(Text.assemble(begin, (row["name"], "bold"), f"  {sentence}"))
    yield from rest
    if short:
        return
    if "families" in row:
        yield from _wrapped(_promises(row), "    ")
    for calibration, meaning in row.get("calibrations", {}).items():
        yield from _wrapped(f"{calibration}: {meaning}", "    ")
    for parameter in row["parameters"]:
        default = "required" if parameter["required"] else f"default {_word(parameter)}"
        yield from _wrapped(f"{parameter['name']}: {parameter['type']}, {default}", "    ")


def _wrapped(text: str, first: str, indent: str = "        ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
    )


def _promises(row: dict[str, Any]) -> str:
    """Family, model, and what must be revealed, in a line."""
    if row["models"]:
        kind = "not private" if "none" in row["models"] else " or ".join(row["models"]) + " privacy"
    else:
        kind = "collects nothing"
    needs = ", ".join(row["needs"]) or "nothing"
    return f"{', '.join(row['families'])} problems; {kind}; must be told: {needs}"


def _word(parameter: dict[str, Any]) -> str:
    """A default as it is typed after -P or -A."""
    value = parameter["default"]
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _rows(what: str) -> list[dict[str, Any]]:
    """Agents or problems: Tacit's own, then those of other packages."""
    known = registry(what)
    foreign = [_foreign(entry, known) for entry in known.installed if entry.package]
    return [*map(_row, entries(what)), *foreign]


def _laws() -> list[dict[str, Any]]:
    """The laws by which simulated people come back."""
    from tacit.simulation.attendance import LAWS

    return [
        {
            "name": name,
            "summary": inspect.cleandoc(law.__doc__ or "").partition("\n")[0].rstrip("."),
            "package": "tacit",
            "parameters": [],
        }
        for name, law in LAWS.items()
    ]


def registry(what: str) -> Registry[Any]:
    """The registry of one kind."""
    from importlib.metadata import entry_points

    from tacit.agents.catalogue import agents
    from tacit.problems.catalogue import problems

    kinds: dict[str, Registry[Any]] = {"agents": agents, "problems": problems}
    if what not in kinds:
        others = ("attendance", *entry_points(group="tacit.lists").names)
        raise UnknownName("list", what, [*kinds, *others])
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
    facts = {
        fact: sorted(value) if isinstance(value, frozenset) else list(value)
        for fact in ("families", "models", "needs")
        if (value := getattr(entry.factory, fact, None)) is not None
    }
    more = {
        fact: value
        for fact in ("source", "calibrations")
        if (value := getattr(entry.factory, fact, None)) is not None
    }
    return {
        "name": entry.name,
        "summary": entry.summary,
        "package": entry.package or "tacit",
        **more,
        **facts,
        "parameters": [
            {
                "name": name,
                "type": type_words(parameter.annotation),
                "required": parameter.default is parameter.empty,
                "default": None if parameter.default is parameter.empty else parameter.default,
            }
            for name, parameter in entry.parameters.items()
            if parameter.kind in _NAMED
        ],
    }


def type_words(annotation: Any) -> str:
    """A type as people write its values."""
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(type_words(part) for part in get_args(annotation))
    if get_origin(annotation) is Literal:
        return " | ".join(str(option) for option in get_args(annotation))
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))
