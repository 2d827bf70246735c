"""What is sent to a user: how to act, as a table that needs no further question."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.errors import InvalidInput
from tacit.validate import distributions, finite_array


@runtime_checkable
class Policy(Protocol):
    """Anything a user can act on; each family of problems has its own kind."""

    @property
    def horizon(self) -> int:
        """Number of steps the policy covers."""


class TabularPolicy:
    """A deterministic table pi_h(s), ties already drawn by the planner that published it."""

    __slots__ = ("actions",)

    def __init__(self, actions: IntArray) -> None:
        table = np.asarray(actions)
        if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer):
            raise InvalidInput(
                f"a policy is a table of whole numbers [horizon, states], got shape {table.shape} "
                f"of {table.dtype}"
            )
        self.actions: IntArray = frozen(table.astype(np.int64))

    @property
    def horizon(self) -> int:
        """Number of steps the policy covers."""
        return len(self.actions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TabularPolicy) and np.array_equal(self.actions, other.actions)

    def __hash__(self) -> int:
        return hash(self.actions.tobytes())

    def __repr__(self) -> str:
        return f"TabularPolicy(horizon={self.horizon}, states={self.actions.shape[1]})"


class StochasticPolicy:
    """Action probabilities pi_h(a|s) [horizon, states, actions], for stochastic algorithms only."""

    __slots__ = ("probabilities",)

    def __init__(self, probabilities: Array) -> None:
        table = finite_array(probabilities, "probabilities")
        if table.ndim != 3:
            raise InvalidInput(
                "action probabilities have shape [horizon, states, actions], "
                f"got {list(table.shape)}"
            )
        distributions(table, "probabilities")
        self.probabilities: Array = frozen(table)

    @property
    def horizon(self) -> int:
        """Number of steps the policy covers."""
        return len(self.probabilities)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StochasticPolicy) and np.array_equal(
            self.probabilities, other.probabilities
        )

    def __hash__(self) -> int:
        return hash(self.probabilities.tobytes())

    def __repr__(self) -> str:
        _, states, actions = self.probabilities.shape
        return f"StochasticPolicy(horizon={self.horizon}, states={states}, actions={actions})"


def uniform_policy(horizon: int, states: int, actions: int) -> StochasticPolicy:
    """Every action equally likely, everywhere."""
    return StochasticPolicy(np.full((horizon, states, actions), 1.0 / actions))
