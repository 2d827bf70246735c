"""What every policy owes: how a user acts, as it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput, need

if TYPE_CHECKING:
    import pandas as pd


Names = Sequence[str] | None
"""What states or actions are called; None for their numbers."""


@runtime_checkable
class Policy(Protocol):
    """Anything a user can act on; each family of problems has its own kind."""

    @property
    def horizon(self) -> int:
        """Number of steps the policy covers."""

    def act(self, observation: Any, step: int, rng: np.random.Generator | None = None) -> Any:
        """What to do when this is observed at a step, counted from 0."""

    def to_frame(self, states: Names = None, actions: Names = None) -> pd.DataFrame:
        """The whole policy, one row for every entry; names in place of numbers where given."""


class ComparedPolicy:
    """A policy that equals another one of its kind if all that it is made of does."""

    __slots__ = ()

    def _parts(self) -> tuple[Any, ...]:
        """Arrays and numbers that it is made of."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return False
        return all(map(np.array_equal, self._parts(), other._parts()))

    def __hash__(self) -> int:
        return hash(tuple(np.asarray(part).tobytes() for part in self._parts()))


def frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    """The table of a policy."""
    need("a table of a policy", "tables")
    import pandas as pd

    return pd.DataFrame(columns)


def require_generator(rng: np.random.Generator | None) -> np.random.Generator:
    """What a policy that draws its actions cannot do without."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(
            "this policy draws its actions: pass rng=numpy.random.default_rng(), made once "
            "and used for every call"
        )
    return rng


def named(numbers: IntArray, names: Names) -> Any:
    """The numbers, or what they are called."""
    return numbers if names is None else [names[i] for i in numbers]
