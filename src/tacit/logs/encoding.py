"""A piece of a log -> numbers: persons, steps, states, actions, rewards. Raw, all of it.

Every value is read by itself, whatever it is: those of one person never decide how others are read,
and none makes this fail. What cannot be read at all is a type of column, which shows without rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.logs.mapping import Discretizer, LogMapping
from tacit.logs.rows import Column, narrow
from tacit.logs.screen import EARLY, ExactNumbers

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encoded(
    batch: Any, mapped: LogMapping, numbered: frozenset[str], exact: ExactNumbers
) -> dict[str, Column]:
    """The rows of a piece that say whose they are, as numbers; counts what does not fit."""
    all_rows, batch = batch.num_rows, batch.filter(_named(batch[mapped.columns["person"]]))
    rows = batch.num_rows
    exact.rows += all_rows
    exact.left["have no person"] += all_rows - rows
    columns: dict[str, Column] = {}
    placed = np.ones(rows, dtype=bool)
    for role, name in mapped.columns.items():
        column, where = batch[name], (role, name)
        if role in ("person", "episode"):
            columns[role] = _keys(column, role in numbered)
            continue
        if role == "step":
            columns["step"], placed = _step(column, name, mapped)
            fits = placed
        elif role == "ends":
            columns["ends"], fits = _flags(column, name)
        elif role == "reward":
            rewards, (low, high) = _numbers(column, name), mapped.reward_range
            exact.columns[where]["cut"] += int(((rewards < low) | (rewards > high)).sum())
            fits = ~np.isnan(rewards)
            rewards = np.where(fits, rewards, mapped.missing_reward)
            columns["reward"] = ((np.clip(rewards, low, high) - low) / (high - low)).astype("f4")
        else:
            chances = _numbers(column, name)
            fits = (chances > 0.0) & (chances <= 1.0)
            chances = np.clip(np.nan_to_num(chances, nan=0.0), 0.0, 2.0)  # 2 is none
            columns["chance"] = _not_below(chances)
        _count(exact, where, column, fits)
    state = np.zeros(rows, dtype=np.int64)
    known = placed.copy()
    for i, cells in enumerate(mapped.states):
        place = _placed(batch[cells.column], cells, f"[[state]] {i + 1}", exact)
        known &= place >= 0
        state = state * len(cells.names) + place
    sizes = mapped.task.sizes
    lost = np.where(placed, -1, -2)
    columns["state"] = np.where(known, state, lost).astype(narrow(sizes["states"]))
    action = _placed(batch[mapped.action.column], mapped.action, "[action]", exact)
    columns["action"] = action.astype(narrow(sizes["actions"]))
    _leave(columns, placed, mapped, exact)
    return columns


def _count(exact: ExactNumbers, where: tuple[str, str], column: Any, fits: Column) -> None:
    """Count the values of a column that are missing, and the others that do not fit."""
    missing = np.asarray(pc.is_null(column, nan_is_null=True))
    exact.columns[where]["missing"] += int(missing.sum())
    exact.columns[where]["unfit"] += int((~fits & ~missing).sum())


def _placed(column: Any, cells: Discretizer, table: str, exact: ExactNumbers) -> Column:
    """Numbers of cells; ``other`` for values that are missing or were not declared."""
    place, where = _cells(column, cells), (table, cells.column)
    _count(exact, where, column, place >= 0)
    if cells.kind == "values" and exact.columns[where]["unfit"]:
        labels = {_folded(name.encode()) for name in cells.names}
        alike = _by_text(column, lambda t: np.array([_folded(x) in labels for x in t], bool), 0)
        exact.columns[where]["alike"] += int((alike & (place < 0)).sum())
    return np.where(place < 0, cells.other, place)


def _folded(text: bytes) -> str:
    return text.decode(errors="replace").strip().casefold()


def _leave(
    columns: dict[str, Column], placed: Column, mapped: LogMapping, exact: ExactNumbers
) -> None:
    """Count rows that teach nothing by themselves, each by the first reason that it has."""
    state, action = columns["state"], columns["action"]
    reasons = {"have no readable step": ~placed}
    if mapped.steps == "numbered" and "step" in columns:
        reasons[EARLY] = columns["step"] < 0
        reasons["lie after the last step"] = columns["step"] >= mapped.task.horizon
        exact.columns["step", mapped.columns["step"]]["first"] += int((columns["step"] == 0).sum())
    reasons["have an undeclared state"] = state < 0
    reasons["have no declared action"] = action < 0
    reasons["have an action that is not allowed in their state, or a state that ends"] = (
        mapped.task.pairs.number[np.maximum(state, -1), action] < 0
    )
    left = np.ones(len(state), dtype=bool)
    for reason, those in reasons.items():
        exact.left[reason] += int((left & those).sum())
        left &= ~those


def _text(column: Any) -> Any:
    """The bytes of every value as a text: nobody checks that they are UTF-8, for one may not be."""
    if pa.types.is_primitive(column.type) or pa.types.is_decimal(column.type):  # no text yet
        column = pc.cast(column, pa.string())
    return pc.cast(column, pa.large_binary())


def _by_text(column: Any, read: Callable[[Column], Column], missing: float) -> Column:
    """What ``read`` makes of different texts, row by row.

    It takes every text by itself, so that the rows of one person never decide how those of another
    are read.
    """
    coded = _text(column).dictionary_encode()
    known = np.append(read(coded.dictionary.to_numpy(zero_copy_only=False)), missing)
    values: Column = known[np.asarray(pc.fill_null(coded.indices, len(known) - 1))]
    return values


def _named(column: Any) -> Any:
    """Which rows say whose they are: not where the person is missing, empty or NaN.

    Such rows are of people who may have nothing in common: as one person, somebody whose key got
    lost would move what these teach and take away what they taught themselves.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    there = pc.invert(pc.is_null(column, nan_is_null=True))
    if pa.types.is_primitive(column.type):
        return there
    return pc.and_(there, pc.not_equal(_text(column), b""))


def _keys(column: Any, numbered: bool) -> Column:
    """Whole numbers as they are, anything else by a hash of its text; missing is one key."""
    from pandas.util import hash_array

    if numbered:
        return np.asarray(pc.fill_null(column, 0)).astype(np.int64)
    return _by_text(column, lambda t: hash_array(t, categorize=False).view(np.int64), 0)


NEVER = np.iinfo(np.int64).min
"""The moment of a row whose date is missing or none."""


def _step(column: Any, name: str, mapped: LogMapping) -> tuple[Column, Column]:
    """Places in the order of an episode, and which rows have one."""
    if mapped.steps == "dated":
        moments = _moments(column, mapped.date_format)
        return moments, moments != NEVER
    steps = _numbers(column, name)
    if mapped.steps == "ordered":
        return np.nan_to_num(steps, nan=-np.inf), ~np.isnan(steps)
    whole = steps == np.rint(steps)
    last = mapped.task.horizon + 1
    place = np.clip(np.where(whole, steps - mapped.first_step, -1.0), -1, last)
    return place.astype(narrow(last + 1)), whole


def _moments(column: Any, form: str) -> Column:
    """Dates as whole numbers in their order, in us: files of a folder may have several units."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        unit = pa.timestamp("us", getattr(column.type, "tz", None))
        dates = pc.cast(column, unit, safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(dates).astype(np.int64)  # NaT is NEVER

    def moment(written: bytes) -> int:
        text = written.decode(errors="replace")
        try:
            date = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except (ValueError, OverflowError):
            return NEVER
        since = (date if date.tzinfo else date.replace(tzinfo=UTC)) - EPOCH
        return since // timedelta(microseconds=1)

    return _by_text(column, lambda t: np.array([*map(moment, t)], dtype=np.int64), NEVER)


TRUE, FALSE = {b"true", b"yes", b"t", b"y"}, {b"false", b"no", b"f", b"n"}


def _not_below(chances: Array) -> npt.NDArray[np.float32]:
    """In half the room, rounded up to 1 at most: a chance too small is a weight too large."""
    near = chances.astype(np.float32)
    return np.where(near < chances, np.nextafter(near, np.float32(1.0)), near)


def _flags(column: Any, name: str) -> tuple[Column, Column]:
    """1 for true, yes, t, y and numbers that are not 0, 0 for anything else; and what is clear."""

    def among(words: set[bytes]) -> Column:
        return _by_text(column, lambda t: np.array([x.lower() in words for x in t], bool), 0)

    true, false = among(TRUE), among(FALSE)
    numbers = _numbers(column, name)
    marked = true | (np.nan_to_num(numbers, nan=0.0) != 0)
    return marked.astype(np.int8), true | false | ~np.isnan(numbers)


def _numbers(column: Any, name: str) -> Array:
    """Real numbers; what is none is NaN, and always the same: a signalling one would warn."""
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    if any(kind(column.type) for kind in kinds):
        cast = np.asarray(pc.fill_null(pc.cast(column, pa.float64(), safe=False), np.nan))
        return np.where(np.isnan(cast), np.nan, cast)
    if pa.types.is_temporal(column.type):
        raise InvalidInput(
            f"column {name!r} holds dates or times ({column.type}), and the mapping wants numbers "
            'of it; steps = "dated" is for steps that are dates'
        )
    return _by_text(column, lambda t: np.array([*map(_number, t)], dtype=np.float64), np.nan)


def _number(text: bytes) -> float:
    try:
        return float(text.decode(errors="replace"))
    except ValueError:
        return math.nan


def _cells(column: Any, cells: Discretizer) -> Column:
    """Numbers of cells; -1 for values that are missing or were not declared."""
    if cells.kind == "values":
        texts = _text(column)
        if pa.types.is_floating(column.type):  # whole numbers beside missing ones became reals
            real = pc.cast(column, pa.float64())
            whole = pc.equal(pc.floor(real), real)
            small = pc.less(pc.abs(real), 2.0**53)
            number = pc.if_else(pc.and_(whole, small), real, None)
            texts = pc.coalesce(_text(pc.cast(number, pa.int64())), texts)
        labels = pa.array([name.encode() for name in cells.names], pa.large_binary())
        place = pc.index_in(texts, value_set=labels)
        return np.asarray(pc.fill_null(place, -1)).astype(np.int32)
    values = _numbers(column, cells.column)
    missing = np.isnan(values)
    if cells.kind == "bins":
        place = np.searchsorted(np.array(cells.edges), values, side="right")
    else:
        missing |= (values != np.rint(values)) | (values < 0) | (values >= len(cells.names))
        place = np.where(missing, 0, values).astype(np.int64)
    return np.where(missing, -1, place).astype(np.int32)
