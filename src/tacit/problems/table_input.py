"""Tables as people give them: dense or sparse, with what is declared about states and actions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse

from tacit import validate
from tacit.arrays import Array, Rows, frozen
from tacit.errors import InvalidInput
from tacit.task.pairs import Pairs, nonzero_rows, rows_of_steps


def table_shape(P: Any, R: npt.ArrayLike, horizon: int) -> tuple[int, int]:
    """S and A: of dense probabilities by their own shape, of sparse ones by that of the rewards."""
    if not _sparse(P):
        states, actions = _dense(P, horizon).shape[1:3]
        return states, actions
    shape = np.shape(R)
    if len(shape) not in (2, 3) or 0 in shape:
        raise InvalidInput(
            f"R has shape {list(shape)}, but beside sparse probabilities it must be [states, "
            "actions] or [horizon, states, actions]: it says how many there are"
        )
    return shape[-2], shape[-1]


def next_states(P: Any, pairs: Pairs, horizon: int) -> tuple[Rows, Array, bool]:
    """Lists of next states of all pairs, their probabilities, and whether P was sparse."""
    S, A = pairs.number.shape
    if _sparse(P):
        steps = P
        if scipy.sparse.issparse(P):
            matrix = scipy.sparse.coo_array(cast(Any, P))
            if matrix.shape != (S * A, S):
                raise InvalidInput(
                    f"P is a sparse matrix {list(matrix.shape)}, but R asks for [states * actions, "
                    f"states] = {[S * A, S]}, with row s * {A} + a"
                )
            steps = np.column_stack([*np.divmod(matrix.row, A), matrix.col, matrix.data])
        steps = validate.finite_array(steps, "P")
        rows, chances = rows_of_steps(steps, pairs)
        return _frozen(rows), frozen(chances), True
    table = _dense(P, horizon)
    if not pairs.every:
        s, a = np.nonzero(pairs.number < 0)
        table[:, s, a] = np.eye(S)[s]
    validate.distributions(table if np.ndim(P) == 4 else table[0], "P")
    met = table[:, pairs.state, pairs.action]
    rows, flat = nonzero_rows(met)
    return _frozen(rows), frozen(met.ravel()[flat]), False


def _sparse(P: Any) -> bool:
    """A SciPy matrix, or rows (state, action, next state, probability)."""
    if scipy.sparse.issparse(P):
        return True
    try:
        return len(np.shape(P)) == 2 and np.shape(P)[1] == 4
    except ValueError:  # ragged, which is refused as a dense table
        return False


def _frozen(rows: Rows) -> Rows:
    return Rows(*(frozen(part) for part in rows))


def _dense(P: npt.ArrayLike, horizon: int) -> Array:
    table = validate.unit_array(P, "P", rows=True)
    if table.ndim == 3:
        table = table[np.newaxis]
    elif table.ndim != 4 or len(table) != horizon:
        raise InvalidInput(
            f"P has shape {list(table.shape)}, but it must be [states, actions, states] or "
            f"[horizon, states, actions, states] with horizon = {horizon}"
        )
    if table.shape[1] != table.shape[3] or 0 in table.shape:
        raise InvalidInput(
            f"P has shape {list(np.shape(P))}, but its first and last state axes must be equal and "
            "no axis may be empty"
        )
    return table


def reward_table(R: npt.ArrayLike, pairs: Pairs, horizon: int, end_reward: float) -> Array:
    """Mean rewards [G, S, A]: ``end_reward`` after the end, 0 where an action is not allowed."""
    states, actions = pairs.number.shape
    table = validate.unit_array(R, "R", rows=False)
    allowed = [(states, actions), (horizon, states, actions)]
    if table.shape not in allowed:
        raise InvalidInput(
            f"R has shape {list(table.shape)}, but P asks for [states, actions] = "
            f"{list(allowed[0])} or [horizon, states, actions] = {list(allowed[1])}"
        )
    table[..., pairs.number < 0] = 0.0
    table[..., np.diff(pairs.first) == 0, :] = end_reward
    if (table < 0).any() or (table > 1).any():
        where = tuple(int(i) for i in np.argwhere((table < 0) | (table > 1))[0])
        raise InvalidInput(
            f"R{list(where)} = {table[where]:g}, but mean rewards must lie in [0, 1]; rescale them "
            "(regret is then in rescaled units)"
        )
    return table[np.newaxis] if table.ndim == 2 else table
