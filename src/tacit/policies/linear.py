"""Policies of control: linear feedback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.kernels.excitation import directions
from tacit.policies.base import ComparedPolicy, Names, frame, named
from tacit.validate import finite_array, integer, number

if TYPE_CHECKING:
    import pandas as pd


class LinearPolicy(ComparedPolicy):
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
        H, d, n = self.gains.shape
        by_state = self.gains.reshape(H * d, n).T
        called = named(np.arange(n), states)
        return frame(
            {
                "step": np.repeat(np.arange(H), d),
                "input": named(np.tile(np.arange(d), H), actions),
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

    def _parts(self) -> tuple[Any, ...]:
        return self.gains, self.offsets, self.amplitude, self.key

    def __repr__(self) -> str:
        horizon, inputs, states = self.gains.shape
        return (
            f"LinearPolicy(horizon={horizon}, states={states}, inputs={inputs}, "
            f"amplitude={self.amplitude:g})"
        )
