"""What is sent to a user: how to act, as a table that needs no further question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.errors import InvalidInput, need
from tacit.kernels.excitation import directions
from tacit.task.pairs import Pairs
from tacit.validate import distributions, finite_array, integer, number, unit_array

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

    def act(self, observation: Any, step: int, rng: np.random.Generator | None = None) -> int:
        """The action in a state at a step, counted from 0; nothing is drawn.

        >>> TabularPolicy(np.array([[1, 0]])).act(0, step=0)
        1
        """
        return int(self.actions[_place(observation, step, self.actions.shape)])

    def to_frame(self, states: Names = None, actions: Names = None) -> pd.DataFrame:
        """Columns step, state and action."""
        need("a table of a policy", "tables")
        import pandas as pd

        H, S = self.actions.shape
        return pd.DataFrame(
            {
                "step": np.repeat(np.arange(H), S),
                "state": _called(np.tile(np.arange(S), H), states),
                "action": _called(self.actions.ravel(), actions),
            }
        )

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
        if not isinstance(rng, np.random.Generator):
            raise InvalidInput(
                "this policy draws its actions: pass rng=numpy.random.default_rng(), made once "
                "and used for every call"
            )
        cumulative = np.cumsum(self.probabilities[place])
        drawn = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
        return int(drawn)

    def to_frame(self, states: Names = None, actions: Names = None) -> pd.DataFrame:
        """Columns step, state, action and probability."""
        need("a table of a policy", "tables")
        import pandas as pd

        step, state, action = np.indices(self.probabilities.shape).reshape(3, -1)
        return pd.DataFrame(
            {
                "step": step,
                "state": _called(state, states),
                "action": _called(action, actions),
                "probability": self.probabilities.ravel(),
            }
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StochasticPolicy) and np.array_equal(
            self.probabilities, other.probabilities
        )

    def __hash__(self) -> int:
        return hash(self.probabilities.tobytes())

    def __repr__(self) -> str:
        _, states, actions = self.probabilities.shape
        return f"StochasticPolicy(horizon={self.horizon}, states={states}, actions={actions})"


def _place(observation: Any, step: int, sizes: tuple[int, ...]) -> tuple[int, int]:
    """Where a table says what to do."""
    h = integer(step, "step", low=0, high=sizes[0] - 1)
    return h, integer(observation, "observation", low=0, high=sizes[1] - 1)


def _called(numbers: IntArray, names: Names) -> Any:
    return numbers if names is None else [names[i] for i in numbers]


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
        found = [(h, s, policy.actions[h, s]) for h, s in np.argwhere(played)[:1]]
    elif isinstance(policy, StochasticPolicy):
        found = [tuple(place) for place in np.argwhere(forbidden & (policy.probabilities > 0))[:1]]
    else:
        found = []
    if found:
        h, s, a = found[0]
        raise InvalidInput(
            f"the policy plays action {a} in state {s} at step {h}, where it is not allowed"
        )


class LinearPolicy:
    """Linear feedback u_h = K_h x_h + v_h on the user's own state, for linear systems.

    The open-loop part v_h is public. It is given as ``offsets``, or drawn for each user as
    ``amplitude`` times unit vectors, a keyed function of ``key`` and of the user's public number
    (:meth:`for_user`): what a server draws once and everybody can recompute.

    Args:
        gains: K_h [horizon, inputs, states].
        offsets: v_h [horizon, inputs]; zero by default.
        amplitude: size of the excitation drawn for each user.
        key: public key of the excitation.
    """

    __slots__ = ("amplitude", "gains", "key", "offsets")

    def __init__(
        self, gains: Array, offsets: Array | None = None, *, amplitude: float = 0.0, key: int = 0
    ) -> None:
        table = finite_array(gains, "gains")
        if table.ndim != 3 or 0 in table.shape:
            raise InvalidInput(
                f"gains have shape [horizon, inputs, states], got {list(table.shape)}"
            )
        shift = np.zeros(table.shape[:2]) if offsets is None else finite_array(offsets, "offsets")
        if shift.shape != table.shape[:2]:
            raise InvalidInput(
                f"offsets have shape {list(shift.shape)}, but these gains need [horizon, inputs] = "
                f"{list(table.shape[:2])}"
            )
        self.gains: Array = frozen(table)
        self.offsets: Array = frozen(shift)
        self.amplitude = number(amplitude, "amplitude", low=0.0)
        self.key = integer(key, "key", low=0, high=2**63 - 1)

    @property
    def horizon(self) -> int:
        """Number of steps the policy covers."""
        return len(self.gains)

    def act(self, observation: Any, step: int, rng: np.random.Generator | None = None) -> Array:
        """The input K_h x + v_h for a state x at a step, counted from 0.

        Without the excitation, which serves learning: :meth:`for_user` writes it out.
        """
        x = np.atleast_1d(finite_array(observation, "observation"))
        if x.shape != self.gains.shape[2:]:
            raise InvalidInput(
                f"observation has shape {list(x.shape)}, but these gains need one number for each "
                f"of {self.gains.shape[2]} state variables"
            )
        h = integer(step, "step", low=0, high=self.horizon - 1)
        return np.asarray(self.gains[h] @ x + self.offsets[h])

    def to_frame(self, states: Names = None, actions: Names = None) -> pd.DataFrame:
        """Columns step, input, gain of every state variable, and offset; without excitation."""
        need("a table of a policy", "tables")
        import pandas as pd

        H, d, n = self.gains.shape
        by_state = self.gains.reshape(H * d, n).T
        called = _called(np.arange(n), states)
        return pd.DataFrame(
            {
                "step": np.repeat(np.arange(H), d),
                "input": _called(np.tile(np.arange(d), H), actions),
                **{f"gain of {x}": k for x, k in zip(called, by_state, strict=True)},
                "offset": self.offsets.ravel(),
            }
        )

    def for_user(self, user: int) -> LinearPolicy:
        """The policy as this user reads it: excitation written out as offsets."""
        if self.amplitude == 0.0:
            return self
        drawn = np.empty(self.offsets.shape)
        directions(self.key, user, drawn)
        return LinearPolicy(self.gains, self.offsets + self.amplitude * drawn)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LinearPolicy)
            and np.array_equal(self.gains, other.gains)
            and np.array_equal(self.offsets, other.offsets)
            and (self.amplitude, self.key) == (other.amplitude, other.key)
        )

    def __hash__(self) -> int:
        return hash((self.gains.tobytes(), self.offsets.tobytes(), self.amplitude, self.key))

    def __repr__(self) -> str:
        horizon, inputs, states = self.gains.shape
        return (
            f"LinearPolicy(horizon={horizon}, states={states}, inputs={inputs}, "
            f"amplitude={self.amplitude:g})"
        )
