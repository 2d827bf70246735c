"""Names that people type, and what they make.

Problems and agents are found by name in a :class:`Registry`. The parameters of a name are the
keyword parameters of its factory: their types, defaults and names are read from the signature, so
that the library, the command line and the listing cannot disagree. A factory may be given as
"module:name"; it is imported when it is first used, so that a device loads one agent and not all.

Other packages add names by entry points, in the groups ``tacit.problems`` and ``tacit.agents``::

    [project.entry-points."tacit.agents"]
    my-agent = "my_package:MyAgent"

They are looked up after ours, never replace one of ours, and are imported when they are used.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from tacit.errors import InvalidInput, TacitError, UnknownName, suggestion

T = TypeVar("T")


@dataclass(frozen=True)
class Registered(Generic[T]):
    """One name: what it makes, the sentence that describes it, and where it comes from.

    Attributes:
        name: what people type.
        source: what makes it, or where to import that from.
        about: the sentence; empty where the factory's own docstring says it.
        package: name and version of the distribution that adds it, empty for tacit itself.
    """

    name: str
    source: Callable[..., T] | EntryPoint
    about: str
    package: str = ""

    @property
    def summary(self) -> str:
        """One line about it."""
        return self.about or (inspect.getdoc(self.factory) or "").partition("\n")[0]

    @property
    def factory(self) -> Callable[..., T]:
        """What makes it, imported now if it was named by a text."""
        if not isinstance(self.source, EntryPoint):
            return self.source
        with self._working("cannot be loaded"):
            made: Callable[..., T] = self.source.load()
            return made

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The factory's keyword parameters, with evaluated annotations."""
        factory = self.factory
        with self._working("does not say what it takes"):
            return inspect.signature(factory, eval_str=True).parameters

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse parameters the factory does not have, and ask for those it cannot do without."""
        takes = self.parameters
        anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in takes.values())
        for name in values:
            if name not in takes and not anything:
                known = suggestion(name, takes) if takes else "; it takes none"
                raise InvalidInput(f"{self.name} has no parameter {name!r}{known}")
        for name, parameter in takes.items():
            named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            if named and parameter.default is parameter.empty and name not in values:
                raise InvalidInput(f"{self.name} needs the parameter {name!r}")

    def make(self, parameters: Mapping[str, Any]) -> T:
        """Build the thing."""
        self.check(parameters)
        factory = self.factory
        with self._working("could not be made"):
            return factory(**parameters)

    @contextlib.contextmanager
    def _working(self, otherwise: str) -> Iterator[None]:
        """Whatever goes wrong in another package's code is one sentence that names the package."""
        try:
            yield
        except Exception as error:
            if not self.package or isinstance(error, TacitError):
                raise
            raise InvalidInput(
                f"{self.name} of the package {self.package} {otherwise} "
                f"({type(error).__name__}: {error}); mend that package, or uninstall it"
            ) from error


OWN = "tacit"
"""Our distribution: what its packages beside the library add is tacit's own too."""


class Registry(Generic[T]):
    """All names of one kind; iterating gives tacit's own.

    Args:
        kind: "problem", or "agent".
        package: of ours, in which what the rows name is.
        rows: by name, where what makes it is in the package ("module:name"), and what it is.
    """

    def __init__(
        self, kind: str, package: str = "", rows: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self.kind = kind
        self.group = f"tacit.{kind}s"
        self._own: dict[str, Registered[T]] = {}
        for name, (where, about) in (rows or {}).items():
            self.add(name, f"{package}.{where}", about)

    def add(self, name: str, factory: Callable[..., T] | str, about: str) -> None:
        """Register a name; a name can be taken only once."""
        if name in self._own:
            raise InvalidInput(f"the {self.kind} name {name!r} is taken")
        self._own[name] = Registered(name, self.source(name, factory), about)

    def source(self, name: str, factory: Callable[..., T] | str) -> Callable[..., T] | EntryPoint:
        """A factory as it is, or what imports it when it is first used."""
        return EntryPoint(name, factory, self.group) if isinstance(factory, str) else factory

    def __iter__(self) -> Iterator[Registered[T]]:
        return iter([*self._own.values(), *(one for one in self.installed if not one.package)])

    @functools.cached_property
    def installed(self) -> tuple[Registered[T], ...]:
        """What entry points add, by name; none of it is imported yet."""
        entries = []
        for point in entry_points(group=self.group):
            package = "without a name" if point.dist is None else point.dist.name
            version = "" if point.dist is None else f" {point.dist.version}"
            package = "" if package == OWN else package + version
            entries.append(Registered[T](point.name, point, "", package))
        return tuple(sorted(entries, key=lambda one: (one.name, one.package)))

    def __contains__(self, name: str) -> bool:
        return name in self._own or any(one.name == name for one in self.installed)

    def entry(self, name: str) -> Registered[T]:
        """The entry of that name, or an error that suggests the nearest one."""
        if name in self._own:
            return self._own[name]
        installed = {one.name: one for one in reversed(self.installed)}  # the first of a name
        if name in installed:
            return installed[name]
        raise UnknownName(self.kind, name, {*self._own, *installed})

    def make(self, name: str, parameters: Mapping[str, Any]) -> T:
        """Build the thing of that name."""
        return self.entry(name).make(parameters)
