"""What is sent to a user: how to act, as a table that needs no further question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.errors import InvalidInput
from tacit.policies.base import ComparedPolicy, Names, Policy, frame, named, require_generator
from tacit.task.pairs import Pairs
from tacit.validate import distributions, integer, unit_array

if TYPE_CHECKING:
    import pandas as pd


class TabularPolicy(ComparedPolicy):
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

    def act(self, observation: Any, step: int, rng: np.random.Generator | None = None) -> int:
        """The action in a state at a step, counted from 0; nothing is drawn.

        >>> TabularPolicy(np.array([[1, 0]])).act(0, step=0)
        1
        """
        return int(self.actions[_place(observation, step, self.actions.shape)])

    def to_frame(self, states: Names = None, actions: Names = None) -> pd.DataFrame:
        """Columns step, state and action."""
        H, S = self.actions.shape
        return frame(
            {
                "step": np.repeat(np.arange(H), S),
                "state": named(np.tile(np.arange(S), H), states),
                "action": named(self.actions.ravel(), actions),
            }
        )

    def _parts(self) -> tuple[Any, ...]:
        return (self.actions,)

    def __repr__(self) -> str:
        return f"TabularPolicy(horizon={self.horizon}, states={self.actions.shape[1]})"


class StochasticPolicy(ComparedPolicy):
    """Action probabilities pi_h(a|s) [horizon, states, actions], for stochastic algorithms only."""

    __slots__ = ("probabilities",)

    def __init__(self, probabilities: Array) -> None:
        table = unit_array(probabilities, "probabilities", rows=True)
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

    def act(self, observation: Any, step: int, rng: np.random.Generator | None = None) -> int:
        """An action drawn in a state at a step, counted from 0."""
        place = _place(observation, step, self.probabilities.shape[:2])
        uniform = require_generator(rng).random()
        cumulative = np.cumsum(self.probabilities[place])
        drawn = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
        return int(drawn)

    def to_frame(self, states: Names = None, actions: Names = None) -> pd.DataFrame:
        """Columns step, state, action and probability."""
        step, state, action = np.indices(self.probabilities.shape).reshape(3, -1)
        return frame(
            {
                "step": step,
                "state": named(state, states),
                "action": named(action, actions),
                "probability": self.probabilities.ravel(),
            }
        )

    def _parts(self) -> tuple[Any, ...]:
        return (self.probabilities,)

    def __repr__(self) -> str:
        _, states, actions = self.probabilities.shape
        return f"StochasticPolicy(horizon={self.horizon}, states={states}, actions={actions})"


def _place(observation: Any, step: int, sizes: tuple[int, ...]) -> tuple[int, int]:
    """Where a table says what to do."""
    h = integer(step, "step", low=0, high=sizes[0] - 1)
    return h, integer(observation, "observation", low=0, high=sizes[1] - 1)


def uniform_policy(
    horizon: int, states: int, actions: int, pairs: Pairs | None = None
) -> StochasticPolicy:
    """Every action equally likely, everywhere; of pairs, those that are allowed."""
    chances = np.full((states, actions), 1.0 / actions)
    if pairs is not None:
        for s in np.flatnonzero(np.diff(pairs.first)):  # nobody acts in a terminal state
            chances[s] = (pairs.number[s] >= 0) / np.count_nonzero(pairs.number[s] >= 0)
    return StochasticPolicy(np.broadcast_to(chances, (horizon, states, actions)))


def check_allowed(policy: Policy, pairs: Pairs) -> None:
    """Refuse a policy for tables that plays an action where it is not allowed."""
    if pairs.every:
        return
    forbidden = (pairs.number < 0) & (np.diff(pairs.first) > 0)[:, np.newaxis]
    if isinstance(policy, TabularPolicy):
        states = np.arange(policy.actions.shape[1])
        played = forbidden[states, policy.actions]
        places = [(h, s, policy.actions[h, s]) for h, s in np.argwhere(played)[:1]]
    elif isinstance(policy, StochasticPolicy):
        places = [tuple(place) for place in np.argwhere(forbidden & (policy.probabilities > 0))[:1]]
    else:
        places = []
    if places:
        h, s, a = places[0]
        raise InvalidInput(
            f"the policy plays action {a} in state {s} at step {h}, where it is not allowed"
        )
