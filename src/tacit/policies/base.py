"""What every policy owes: how a user acts, as it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from tacit.arrays import IntArray

if TYPE_CHECKING:
    import pandas as pd

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


def named(numbers: IntArray, names: Names) -> Any:
    """The numbers, or what they are called."""
    return numbers if names is None else [names[i] for i in numbers]
