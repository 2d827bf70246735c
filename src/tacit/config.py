"""The one reader of files that people write: TOML in, dataclasses out, mistakes as sentences.

A section of a file is a dataclass whose fields say by :func:`key` how their values are checked.
What machines write is read by ``tacit.wire.strict_json``, which forgives nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, field, fields
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import InvalidInput, suggestion

T = TypeVar("T")

_Mistakes = list[tuple[int, str]]

_UNKNOWN, _NO_SECTION, _VALUE, _MISSING = range(4)
"""Which mistake is told first: a misspelt key explains why the right one is missing."""


def key(
    check: Callable[..., Any],
    *,
    default: Any = MISSING,
    secret: bool = False,
    missing: str = "{where} needs the key {key!r}",
    **bounds: Any,
) -> Any:
    """A key of a section; it must be given unless there is a default.

    Args:
        check: reads the value, as ``check(value, name, **bounds)``; or the dataclass of a section
            in this one, or ``dict`` for a section with keys of its own.
        default: what holds where the key is left out; it is not checked.
        secret: whether it is hidden when the section is printed.
        missing: the sentence where it is not given.
        **bounds: of the check.
    """
    about = {"check": check, "bounds": bounds, "missing": missing}
    return field(default=default, repr=not secret, metadata=about)


def keys(kind: type[Any]) -> tuple[str, ...]:
    """The keys that a section may have."""
    return tuple(one.name for one in fields(kind))


def anything(value: Any, name: str) -> Any:
    """The check of a value that can be judged only together with others."""
    return value


def read_text(path: Path, absent: str) -> str:
    """What a file says; ``absent`` is the sentence where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(absent) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a text file in UTF-8") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None


def read_toml(text: str) -> dict[str, Any]:
    """What a text says as TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers and nesting can be too long for Python
        raise InvalidInput(f"this is not valid TOML: {error}") from None


def unknown(data: Iterable[str], known: Collection[str], where: str) -> list[str]:
    """A sentence about every key that nobody knows."""
    return [
        f"{where} has no key {name!r}{suggestion(name, known)}"
        for name in data
        if name not in known
    ]


def section(kind: type[T], data: Any, where: str, *, named: str = "{key} in {where}") -> T:
    """Read a section, and the sections in it; the first mistake is told in a sentence.

    Args:
        kind: a dataclass whose fields are made by :func:`key`.
        data: what the file says.
        where: what the section is called, like ``[task]``.
        named: what a value is called in a sentence, of ``{key}`` and ``{where}``.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{where} must be a table of keys and values")
    mistakes: _Mistakes = []
    values = _values(kind, data, where, named, mistakes)
    if mistakes:
        raise InvalidInput(min(mistakes, key=lambda one: one[0])[1])
    return kind(**values)


def _values(
    kind: type[Any], data: Mapping[str, Any], where: str, named: str, mistakes: _Mistakes
) -> dict[str, Any]:
    """The values of a section by key; what is wrong goes to ``mistakes``."""
    values: dict[str, Any] = {}
    mistakes += [(_UNKNOWN, sentence) for sentence in unknown(data, keys(kind), where)]
    for one in fields(kind):
        name, check = one.name, one.metadata["check"]
        if name not in data:
            if one.default is MISSING:
                sentence = one.metadata["missing"].format(where=where, key=name)
                mistakes.append((_MISSING, sentence))
        elif not isinstance(check, type):
            called = named.format(where=where, key=name)
            try:
                values[name] = check(data[name], called, **one.metadata["bounds"])
            except InvalidInput as error:
                mistakes.append((_VALUE, str(error)))
        elif not isinstance(data[name], Mapping):
            sentence = f"{name} must be a section, written [{name}] on a line of its own"
            mistakes.append((_NO_SECTION, sentence))
        elif check is dict:
            values[name] = dict(data[name])
        else:
            inner = _values(check, data[name], f"[{name}]", named, mistakes)
            values[name] = None if mistakes else check(**inner)
    return values


def overridden(
    data: dict[str, Any],
    sections: Mapping[str, Collection[str]],
    environ: Mapping[str, str],
    stem: str,
) -> list[str]:
    """Let ``TACIT_<SECTION>_<KEY>`` override a file that was parsed; which ones did.

    A value is read as TOML (numbers, lists, true), else as text. ``TACIT_<SECTION>_<KEY>_FILE``
    names a file that holds it, for secrets. ``{task}`` in any of them stands for the stem, so that
    tasks with one environment can have databases and witnesses of their own. Unknown keys are
    refused later, with the file's own.

    Args:
        data: what the file says; changed.
        sections: their keys, by name.
        environ: variables of the environment.
        stem: name of the file without its ending.
    """
    used = []
    for name in sorted(environ):
        lead, _, rest = name.partition("_")
        table, _, one = rest.lower().partition("_")
        known = sections.get(table)
        if lead != "TACIT" or known is None or not one:
            continue
        value, plain = environ[name].replace("{task}", stem), one.removesuffix("_file")
        if one not in known and plain in known:
            try:
                value = Path(value).read_text(encoding="utf-8").strip().replace("{task}", stem)
            except (OSError, UnicodeDecodeError):
                sentence = f"{name} names a file that cannot be read; check path and mode"
                raise InvalidInput(sentence) from None
            one = plain
        if not isinstance(data.setdefault(table, {}), dict):
            continue  # refused later: it must be a section
        try:
            data[table][one] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            data[table][one] = value
        used.append(name)
    return used
