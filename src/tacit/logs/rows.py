"""Rows of a log -> the log that is added up: clipped by rule and sorted by person. Raw, all of it.

No message from here says what a cell of the log holds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidInput
from tacit.kernels.raw.log_rows import arrange
from tacit.logs.mapping import LogMapping
from tacit.logs.screen import ExactNumbers
from tacit.trajectory import Log

Column = npt.NDArray[Any]

MINARI = "minari:"
"""Begins the name of a data set that the package minari knows."""

AT_ONCE = 1 << 17
"""Rows that are looked at at once, to see whether they are in order."""

OTHERS = {"episode": "i1", "step": "i1", "ends": "i1", "reward": "f4", "chance": "f4"}
"""Columns that a log may lack, and of what type they are then, all zeros."""


class Read(NamedTuple):
    """A log, and exact numbers for the screen of whoever holds the data, nowhere else."""

    log: Log
    exact: ExactNumbers


def in_memory(log: Log, most: int) -> Log:
    """The log without people beyond the declared number; rows must be those of one person each.

    What it refuses for is the form of the columns and where people begin, not what rows say.
    """
    log = Log(*(_column(name, column) for name, column in log._asdict().items()))
    begin = log.begin.astype(np.int64)
    rows = min(len(column) for column in log[1:])
    if not len(begin) or begin[0] < 0 or begin[-1] > rows or (np.diff(begin) < 0).any():
        raise InvalidInput(
            "the rows of a log in memory must lie person by person: begin must not decrease, and "
            "must end within the rows"
        )
    return log._replace(begin=begin[: most + 1])


def _column(name: str, column: Any) -> Column:
    """A column of a log in memory, of a type that kernels read.

    Only arrays have a type of their own: that of a list, or of a column of a data frame, may follow
    from what one person did, and a refusal would tell.
    """
    if not isinstance(column, np.ndarray):
        raise InvalidInput(
            f"the column {name!r} of a log in memory must be a numpy array, not a "
            f"{type(column).__name__}, which has no type before its values are looked at"
        )
    real, kind = name in ("reward", "chance"), column.dtype
    if column.ndim != 1 or kind.kind not in ("biuf" if real else "biu") or kind.itemsize > 8:
        raise InvalidInput(
            f"the column {name!r} of a log in memory must be one row of "
            f"{'numbers' if real else 'whole numbers'} of at most 64 bits, but it is {kind} of "
            f"shape {list(column.shape)}"
        )
    plain = np.dtype({"?": "i1", "e": "f4"}.get(kind.char, kind)).newbyteorder("=")
    with np.errstate(all="ignore"):  # a warning would tell of a signalling NaN
        held: Column = column.astype(plain, copy=False)
    return held


def arranged(
    columns: dict[str, Column], mapped: LogMapping, exact: ExactNumbers | None = None
) -> Read:
    """Sort the columns of a log by person, and clip them; the columns are used up.

    Args:
        columns: person, state and action, and where the log has them episode, step, reward, chance
            and ends; states and actions are numbers of the task, rewards lie in [0, 1].
        mapped: how they are meant.
        exact: gets the numbers of people and of rows that count.
    """
    rows, task = len(columns["person"]), mapped.task
    for name, kind in OTHERS.items():
        if name not in columns:
            columns[name] = np.zeros(rows, dtype=kind)
    numbered = mapped.steps == "numbered" and "step" in mapped.columns
    ordered = _ordered(columns)
    order = None if ordered else np.lexsort([columns[x] for x in ("step", "episode", "person")])
    if not numbered:  # their order was all that counts
        columns["step"] = np.zeros(rows, dtype=narrow(task.horizon + 2))
    if order is not None:
        for name in columns:  # one after the other: each frees the one before
            columns[name] = columns[name][order]
        del order
    person, episode, ends = (columns.pop(x) for x in ("person", "episode", "ends"))
    log = Log(
        begin=np.zeros(int((person[1:] != person[:-1]).sum()) + 2, dtype=np.int64),
        opens=np.zeros(rows, dtype=np.int8),
        after=np.full(rows, -1, dtype=columns["state"].dtype),
        **columns,
    )
    exact = exact or ExactNumbers()
    exact.people = min(rows, log.people)
    facts = task.horizon, task.pairs.number, mapped.ended, numbered, task.users
    people = rows and arrange(person, episode, ends, log, *facts)  # without rows there is nobody
    exact.kept = int(log.begin[people])
    return Read(log._replace(begin=log.begin[: people + 1]), exact)


def _ordered(columns: dict[str, Column]) -> bool:
    """Whether the rows are in order already."""
    person, episode, step = (columns[name] for name in ("person", "episode", "step"))
    for i in range(0, len(person) - 1, AT_ONCE):
        p, e, t = (column[i : i + AT_ONCE + 1] for column in (person, episode, step))
        equal = p[1:] == p[:-1]
        later = e[1:] > e[:-1]
        same = e[1:] == e[:-1]
        if not ((p[1:] > p[:-1]) | (equal & (later | (same & (t[1:] >= t[:-1]))))).all():
            return False
    return True


def narrow(size: int) -> type[np.signedinteger[Any]]:
    """The least kind of whole numbers for so many and -1: a log may be long."""
    return next(kind for kind in (np.int8, np.int16, np.int32) if size <= np.iinfo(kind).max)
