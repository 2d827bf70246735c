"""What tacit raises when a person can fix the cause.

Every message says what was wrong, what was expected and what to do. The command line prints the
message alone and exits with status 2; a library user catches :class:`TacitError`.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterable


class TacitError(Exception):
    """Base of every error that tacit raises on purpose."""


class InvalidInput(TacitError, ValueError):
    """A value, a shape or a combination of options that cannot be used."""


class UnknownName(InvalidInput):
    """A name that is not registered; the message suggests the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        super().__init__(f"unknown {kind} {name!r}{suggestion(name, names)}")
        self.name = name


class MissingExtra(TacitError, ImportError):
    """A package that only some of tacit needs is not installed."""


EXTRAS = {
    "tables": ("pandas", "pyarrow"),
    "plots": ("matplotlib",),
    "report": ("jinja2", "matplotlib", "pandas", "pyarrow"),
    "secure": ("opendp",),
    "client": ("httpx",),
    "cluster": ("ray",),
    "minari": ("minari",),
    "sepsis": ("icu_sepsis",),
    "service": (
        "alembic",
        "cryptography",
        "fastapi",
        "httptools",
        "httpx",
        "opendp",
        "prometheus_client",
        "psycopg",
        "pydantic",
        "sqlalchemy",
        "uvicorn",
    ),
}
"""By extra of the package, what is imported from it."""


def need(what: str, *extras: str) -> None:
    """Say what to install where a package of these extras is missing.

    Args:
        what: the beginning of the sentence.
        extras: names in :data:`EXTRAS`.
    """
    for extra in extras:
        for module in EXTRAS[extra]:
            if not _installed(module):
                raise MissingExtra(
                    f"{what} needs the package {module}, which is not installed: "
                    f"pip install 'tacit[{','.join(extras)}]'"
                )


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # somebody keeps it from being imported
        return False


class RawDataLeak(TacitError, TypeError):
    """Raw user data, or secret state, was about to leave the only place it may live in."""


class BudgetExceeded(TacitError):
    """Something was asked of a privacy budget that has not so much left."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about ``name``: the nearest known names, or all of them.

    >>> suggestion("river-swin", ["psrl", "river-swim"])
    "; did you mean 'river-swim'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if not near and len(name) > 3:
        near = [known for known in names if name in known][:3]
    if near:
        return "; did you mean " + " or ".join(repr(n) for n in near) + "?"
    return "; known: " + ", ".join(names) if names else "; nothing is registered"
