"""Which states end an episode and which actions are allowed where: declared, public, for tables.

A *pair* is an allowed action of a state that is not terminal. Statistics count pairs, planners plan
over pairs, and nothing else is ever played or counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray, Rows, frozen
from tacit.errors import InvalidInput, suggestion
from tacit.validate import distributions, integer, unit_array

Flags = npt.NDArray[np.bool_]


class Pairs(NamedTuple):
    """The pairs of a table, numbered by state and then by action.

    Those of state s are first[s] <= x < first[s + 1]; a terminal state has none.
    """

    first: IntArray  # [S + 1]
    state: IntArray  # [X]
    action: IntArray  # [X]
    number: IntArray  # of the pair (s, a) [S, A], -1 where there is none

    @property
    def every(self) -> bool:
        """Whether all actions are allowed in all states: then x = s A + a."""
        return len(self.action) == self.number.size

    def shape(self) -> tuple[int, ...]:
        """Shape of an array with one cell for every pair: [S, A] if there are all, else [X]."""
        return self.number.shape if self.every else self.action.shape

    def spread(self, values: Array, other: float) -> Array:
        """Values of pairs [..., X] as a table [..., S, A], filled with ``other``."""
        S, A = self.number.shape
        table = np.full((*values.shape[:-1], S, A), other)
        table[..., self.state, self.action] = values
        return table


class Places(NamedTuple):
    """Where people can be, as far as anybody need tell: the states that go on, then one end.

    What follows a terminal state is declared, so which one it was tells nothing more: all of them
    are one place, the last, which is there if a state is terminal. The pairs of place i are
    first[i] <= x < first[i + 1], as in ``Pairs``; the end has none.
    """

    state: IntArray  # of each place [N]; of the end, the first terminal one
    place: IntArray  # of each state [S]
    first: IntArray  # [N + 1]
    number: IntArray  # of the pair of a place and an action [N, A]
    live: int  # places that go on, N or N - 1

    def spread(self, values: IntArray) -> IntArray:
        """Values of places [..., N] as those of states [..., S]."""
        return np.ascontiguousarray(values[..., self.place])


def make_pairs(allowed: Flags) -> Pairs:
    """The pairs of flags [S, A] that say what may be played; a terminal state has no flag."""
    state, action = np.nonzero(allowed)
    first = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))])
    number = np.full(allowed.shape, -1)
    number[state, action] = np.arange(len(state))
    return Pairs(*(frozen(part.astype(np.int64)) for part in (first, state, action, number)))


def met_places(pairs: Pairs) -> Places:
    """The places of a table."""
    alive = np.diff(pairs.first) > 0
    live, ends = np.flatnonzero(alive), np.flatnonzero(~alive)[:1]
    place = np.full(len(alive), len(live))
    place[live] = np.arange(len(live))
    state = np.concatenate([live, ends])
    first = np.append(pairs.first[live], [len(pairs.action)] * (1 + len(ends)))
    state, place, first, number = (
        frozen(part.astype(np.int64)) for part in (state, place, first, pairs.number[state])
    )
    return Places(state, place, first, number, len(live))


def full_rows(stages: int, pairs: int, states: int) -> Rows:
    """Every state follows every pair: flat arrays are tables [G, X, S]."""
    begin = states * np.arange(stages * pairs).reshape(stages, pairs)
    succ = np.tile(np.arange(states, dtype=np.uint32), stages * pairs)
    return Rows(begin, begin + states, succ)


def nonzero_rows(table: npt.NDArray[Any]) -> tuple[Rows, IntArray]:
    """The cells of a table [G, X, S] that are not zero, and where they lie in it, flat."""
    flat = np.flatnonzero(table)
    ends = np.cumsum(np.count_nonzero(table, axis=2)).reshape(table.shape[:2])
    begin = np.concatenate([[0], ends.ravel()[:-1]]).reshape(ends.shape)
    return Rows(begin, ends, (flat % table.shape[2]).astype(np.uint32)), flat


def rows_of_steps(steps: Array, pairs: Pairs) -> tuple[Rows, Array]:
    """Lists of next states and their probabilities from rows (s, a, s', p) of one stage.

    Rows of states that end and of actions that are not allowed are not read; of several rows with
    the same s, a and s' the probabilities are added up.
    """
    S, A = pairs.number.shape
    places = steps[:, :3].astype(np.int64)
    for axis, (name, size) in enumerate((("state", S), ("action", A), ("next state", S))):
        off = np.flatnonzero((places[:, axis] < 0) | (places[:, axis] >= size))
        if len(off) or (places[:, axis] != steps[:, axis]).any():
            where = off[0] if len(off) else np.flatnonzero(places[:, axis] != steps[:, axis])[0]
            raise InvalidInput(
                f"row {where} of P names {name} {steps[where, axis]:g}, but it must be a whole "
                f"number from 0 to {size - 1}"
            )
    if (steps[:, 3] < 0).any():
        where = int(np.argmax(steps[:, 3] < 0))
        raise InvalidInput(
            f"row {where} of P has probability {steps[where, 3]:g}, but it cannot be negative"
        )
    x = pairs.number[places[:, 0], places[:, 1]]
    read = (x >= 0) & (steps[:, 3] > 0)
    cells, inverse = np.unique(x[read] * S + places[read, 2], return_inverse=True)
    P = np.zeros(len(cells))
    np.add.at(P, inverse, steps[read, 3])
    ends = np.searchsorted(cells, S * np.arange(1, len(pairs.action) + 1))
    begin = np.concatenate([[0], ends[:-1]])
    sums = np.zeros(len(pairs.action))
    np.add.at(sums, cells // S, P)
    off = np.flatnonzero(np.abs(sums - 1.0) > 1e-8)
    if len(off):
        s, a = pairs.state[off[0]], pairs.action[off[0]]
        raise InvalidInput(
            f"the probabilities of state {s}, action {a} sum to {sums[off[0]]:.9g}, but they must "
            "sum to 1; an action that cannot be played is left out of `allowed`"
        )
    return Rows(begin[np.newaxis], ends[np.newaxis], (cells % S).astype(np.uint32)), P


def declared_flags(sizes: Mapping[str, int], known: Mapping[str, npt.NDArray[Any]]) -> Flags:
    """What may be played [S, A], by the facts "terminal" and "allowed" of a task; checked."""
    S, A = sizes["states"], sizes["actions"]
    allowed = _flags(known.get("allowed"), "allowed", (S, A), True)
    terminal = _flags(known.get("terminal"), "terminal", (S,), False)
    if terminal.all():
        raise InvalidInput("every state is terminal, but an episode must be able to begin")
    stuck = np.flatnonzero(~allowed.any(axis=1) & ~terminal)
    if len(stuck):
        raise InvalidInput(
            f"no action is allowed in state {stuck[0]}; allow one, or declare the state terminal"
        )
    return allowed & ~terminal[:, np.newaxis]


def _flags(
    flags: npt.NDArray[Any] | None, name: str, shape: tuple[int, ...], default: bool
) -> Flags:
    if flags is None:
        return np.full(shape, default)
    if flags.dtype != np.bool_ or flags.shape != shape:
        raise InvalidInput(
            f"{name} has shape {list(flags.shape)} of {flags.dtype}, but it must be flags of shape "
            f"{list(shape)}"
        )
    return np.array(flags)


def terminals(
    declared: Iterable[int | str] | Flags, states: int, names: Sequence[str] | None
) -> Flags:
    """Flags [S] of the states that end an episode."""
    declared = _as_flags(declared)
    if isinstance(declared, np.ndarray) and declared.dtype == np.bool_:
        if declared.shape != (states,):
            raise InvalidInput(
                f"terminal has shape {list(declared.shape)}, but it must be {states} flags or a "
                "list of states"
            )
        return np.array(declared)
    return _marked(declared, "terminal", states, names)


def allowed_flags(
    declared: Sequence[Iterable[int | str]] | Flags | None,
    terminal: Flags,
    shape: tuple[int, int],
    names: Sequence[str] | None,
) -> Flags:
    """Flags [S, A] of what may be played; whatever is said of terminal states is left out."""
    if declared is None:
        return np.repeat(~terminal[:, np.newaxis], shape[1], axis=1)
    declared = _as_flags(declared)
    if isinstance(declared, np.ndarray) and declared.dtype == np.bool_:
        if declared.shape != shape:
            raise InvalidInput(
                f"allowed has shape {list(declared.shape)}, but it must be [states, actions] = "
                f"{list(shape)}"
            )
        flags = np.array(declared)
    else:
        rows = _several(declared, "allowed")
        if len(rows) != shape[0]:
            raise InvalidInput(
                f"allowed lists the actions of {len(rows)} states, but there are {shape[0]}"
            )
        flags = np.array([_marked(row, "allowed", shape[1], names) for row in rows])
    flags[terminal] = False
    return flags


def _as_flags(declared: Any) -> Any:
    """Lists of true and false as an array; anything else as it is."""
    try:
        array = np.asarray(declared)
    except ValueError:  # lists of several lengths
        return declared
    return array if array.dtype == np.bool_ and array.size else declared


def _marked(
    declared: Iterable[int | str], what: str, size: int, names: Sequence[str] | None
) -> Flags:
    flags = np.zeros(size, dtype=bool)
    for one in _several(declared, what):
        if isinstance(one, str):
            if names is None:
                raise InvalidInput(
                    f"{what} names {one!r}, but nothing here has names: give numbers from 0 to "
                    f"{size - 1}, or names for all {size}"
                )
            if one not in names:
                raise InvalidInput(f"{what} names {one!r}{suggestion(one, names)}")
            one = names.index(one)
        flags[integer(one, what, low=0, high=size - 1)] = True
    return flags


def _several(declared: Any, what: str) -> list[Any]:
    if isinstance(declared, str) or not isinstance(declared, Iterable):
        raise InvalidInput(f"{what} = {declared!r}, but it must be a list")
    return list(declared)


def start_law(
    declared: int | str | npt.ArrayLike, terminal: Flags, names: Sequence[str] | None
) -> Array:
    """Chances of all states [S], given as such or as the one start state."""
    states = len(terminal)
    if isinstance(declared, str) or np.ndim(declared) == 0:
        law = _marked([declared], "initial", states, names).astype(np.float64)  # type: ignore[list-item]
    else:
        law = unit_array(declared, "initial", rows=True)
        if law.shape != (states,):
            raise InvalidInput(
                f"initial has shape {list(law.shape)}, but it must be a state or {states} "
                "probabilities"
            )
        distributions(law, "initial")
    if terminal[law > 0.0].all() and not terminal.all():
        raise InvalidInput(
            "every episode would begin in a terminal state, where it is over; let one begin "
            "elsewhere, or do not declare that state terminal"
        )
    return law
