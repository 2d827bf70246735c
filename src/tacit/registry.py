"""Names that people type, and what they make.

Problems and agents are found by name in a :class:`Registry`. The parameters of an entry are the
keyword parameters of its factory: their types, defaults and names are read from the signature, so
that the library, the command line and the listing cannot disagree. A factory may be given as
"module:name"; it is imported when it is first used, so that a device loads one agent and not all.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tacit.errors import InvalidInput, UnknownName, suggestion

T = TypeVar("T")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """One name: what it makes and the sentence that describes it."""

    name: str
    source: Callable[..., T] | str
    summary: str

    @property
    def factory(self) -> Callable[..., T]:
        """What makes it, imported now if it was named by a text."""
        if not isinstance(self.source, str):
            return self.source
        module, _, name = self.source.partition(":")
        made: Callable[..., T] = getattr(importlib.import_module(module), name)
        return made

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The factory's keyword parameters, with evaluated annotations."""
        return inspect.signature(self.factory, eval_str=True).parameters

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse parameters the factory does not have, and ask for those it cannot do without."""
        takes = self.parameters
        anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in takes.values())
        for name in given:
            if name not in takes and not anything:
                known = suggestion(name, takes) if takes else "; it takes none"
                raise InvalidInput(f"{self.name} has no parameter {name!r}{known}")
        for name, parameter in takes.items():
            named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            if named and parameter.default is parameter.empty and name not in given:
                raise InvalidInput(f"{self.name} needs the parameter {name!r}")


class Registry(Generic[T]):
    """A set of entries of one kind ("problem", "agent")."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry[T]] = {}

    def add(self, name: str, factory: Callable[..., T] | str, summary: str) -> None:
        """Register a name; a name can be taken only once."""
        if name in self._entries:
            raise InvalidInput(f"the {self.kind} name {name!r} is taken")
        self._entries[name] = Entry(name, factory, summary)

    def __iter__(self) -> Iterator[Entry[T]]:
        return iter(self._entries.values())

    def entry(self, name: str) -> Entry[T]:
        """The entry of that name, or an error that suggests the nearest one."""
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownName(self.kind, name, self._entries) from None

    def make(self, name: str, parameters: Mapping[str, Any]) -> T:
        """Build the thing."""
        entry = self.entry(name)
        entry.check(parameters)
        return entry.factory(**parameters)
