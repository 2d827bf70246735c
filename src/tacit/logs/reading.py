"""A log as it lies somewhere -> its rows, clipped by rule and sorted by person. Raw, all of it.

Files are read in pieces by pyarrow; only the columns that the mapping names are kept, as numbers.
No message from here says what a cell of the log holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.errors import InvalidInput, need, suggestion
from tacit.kernels.logged import arrange
from tacit.logs.mapping import Cells, Mapped
from tacit.trajectory import Log

MINARI = "minari:"
"""Begins the name of a data set that the package minari knows."""

PIECE = 1 << 17
"""Rows of a piece."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Column = npt.NDArray[Any]


class Read(NamedTuple):
    """A log, and how many rows it had: for the screen of whoever holds the data, nowhere else."""

    log: Log
    rows: int


def read_log(source: str | Path, mapped: Mapped) -> Read:
    """Read a parquet file, a CSV file, a folder of either, or ``minari:ID``."""
    need("reading a log", "tables")
    parts: dict[str, list[Column]] = {}
    readable: set[str] = set()
    try:
        for batch in _batches(source, mapped):
            for name, column in _encoded(batch, mapped, readable).items():
                parts.setdefault(name, []).append(column)
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{source} cannot be read as a log ({type(error).__name__}); it must be a parquet or "
            "CSV file with the columns that the mapping names, one row per step"
        ) from None
    if not parts or not sum(map(len, parts["person"])):
        raise InvalidInput(f"{source} has no rows with a person")
    for role in ("step", "reward", "propensity"):  # said before anything is charged
        if role in mapped.columns and role not in readable:
            kind = "date" if role == "step" and mapped.steps == "dated" else "number"
            raise InvalidInput(
                f"column {mapped.columns[role]!r}, which the mapping takes for the {role}, has no "
                f"{kind} in any row of {source}; nothing was charged"
            )
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    columns = {}
    for name in list(parts):
        columns[name] = np.concatenate(parts.pop(name))
    return arranged(columns, mapped)


def arranged(columns: dict[str, Column], mapped: Mapped) -> Read:
    """Sort the columns of a log by person, and clip them; the columns are used up.

    Args:
        columns: person, state and action, and where the log has them episode, step, reward, chance
            and ends; states and actions are numbers of the task, rewards lie in [0, 1].
        mapped: how they are meant.
    """
    person, task = columns.pop("person"), mapped.task
    rows = len(person)
    episode, step = (columns.pop(x, np.zeros(rows, dtype=np.int8)) for x in ("episode", "step"))
    numbered = mapped.steps == "numbered" and "step" in mapped.columns
    order = None if _sorted(person, episode, step) else np.lexsort((step, episode, person))
    if not numbered:  # their order was all that counts
        step = np.zeros(rows, dtype=_narrow(task.horizon + 2))
    if order is not None:
        person = person[order]
        episode = episode[order]  # one after the other: each frees the one before
        step = step[order]
        for name in list(columns):
            columns[name] = columns[name][order]
        del order
    fill = {"reward": np.float32, "chance": np.float32, "ends": np.int8}
    for name, kind in fill.items():
        if name not in columns:
            columns[name] = np.zeros(rows, dtype=kind)
    begin = np.zeros(int((person[1:] != person[:-1]).sum()) + 2, dtype=np.int64)
    opens, after = np.zeros(rows, dtype=np.int8), np.full(rows, -1, dtype=columns["state"].dtype)
    people = arrange(
        person,
        episode,
        step,
        columns["state"],
        columns["action"],
        columns["reward"],
        columns["chance"],
        columns["ends"],
        task.horizon,
        task.pairs.number,
        mapped.ended,
        numbered,
        task.users,
        begin,
        opens,
        after,
    )
    kept = columns["state"], columns["action"], columns["reward"], after, columns["chance"]
    return Read(Log(begin[: people + 1], opens, step, *kept), rows)


def _sorted(person: Column, episode: Column, step: Column) -> bool:
    """Whether the rows are in order already."""
    for i in range(0, len(person) - 1, PIECE):
        p, e, t = (column[i : i + PIECE + 1] for column in (person, episode, step))
        equal = p[1:] == p[:-1]
        later = e[1:] > e[:-1]
        same = e[1:] == e[:-1]
        if not ((p[1:] > p[:-1]) | (equal & (later | (same & (t[1:] >= t[:-1]))))).all():
            return False
    return True


def _batches(source: str | Path, mapped: Mapped) -> Iterator[Any]:
    """Record batches with the columns that are read."""
    if str(source).startswith(MINARI):
        yield from _minari(str(source).removeprefix(MINARI), mapped)
        return
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.dataset as ds

    path = Path(source)
    if not path.exists():
        raise InvalidInput(f"there is no log {path}")
    file = path if path.is_file() else next(iter(sorted(path.glob("*.*"))), path)
    if file.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidInput(f"{path} must be a .parquet or .csv file, or a folder of them")
    comma = file.suffix.lower() == ".csv"
    found = ds.dataset(path, format="csv" if comma else "parquet")
    _check_columns(found.schema.names, mapped)
    if comma:  # the reader of data sets would hold a whole file
        convert = pa.csv.ConvertOptions(
            column_types={name: pa.string() for name in mapped.read},  # "1" is "1" in every piece
            include_columns=list(mapped.read),
            include_missing_columns=True,
            strings_can_be_null=True,
            null_values=["", "NA", "NaN", "null"],
        )
        for one in found.files:
            with pa.csv.open_csv(
                one,
                pa.csv.ReadOptions(use_threads=False, block_size=8 << 20),
                convert_options=convert,
            ) as pieces:
                yield from pieces
        return
    yield from found.to_batches(
        columns=list(mapped.read),
        batch_size=PIECE,
        use_threads=False,
        batch_readahead=1,
        fragment_readahead=1,
    )


def _check_columns(names: list[str], mapped: Mapped) -> None:
    for name in mapped.read:
        if name not in names:
            raise InvalidInput(
                f"the log has no column {name!r}, which the mapping names{suggestion(name, names)}"
            )


def _minari(name: str, mapped: Mapped) -> Iterator[Any]:
    """Episodes of a Minari data set, each a person's.

    Columns are person, step, observation (or observation[0], observation[1], ...), action, reward
    and ends; the last observation has a row without an action.
    """
    import pyarrow as pa

    need("reading a Minari data set", "minari")
    import minari

    try:
        dataset = minari.load_dataset(name)
    except (FileNotFoundError, ValueError, KeyError):
        raise InvalidInput(f"minari has no data set {name!r} here; download it first") from None
    for episode in dataset.iterate_episodes():
        seen = np.asarray(episode.observations)
        steps = len(seen)
        columns: dict[str, Any] = {"person": np.full(steps, int(episode.id))}
        columns["step"] = np.arange(steps)
        if seen.ndim == 1:
            columns["observation"] = seen
        for i in range(seen.shape[1] if seen.ndim > 1 else 0):
            columns[f"observation[{i}]"] = seen[:, i]
        columns["action"] = pa.array([*np.asarray(episode.actions).tolist(), None])
        columns["reward"] = np.append(np.asarray(episode.rewards, dtype=np.float64), np.nan)
        columns["ends"] = np.append(np.asarray(episode.terminations, dtype=bool), False)
        _check_columns(list(columns), mapped)
        yield pa.record_batch({name: pa.array(columns[name]) for name in mapped.read})


def _encoded(batch: Any, mapped: Mapped, readable: set[str]) -> dict[str, Column]:
    """The rows of a piece that say whose they are, as numbers; adds which columns had some."""
    import pyarrow.compute as pc

    batch = batch.filter(pc.is_valid(batch.column(mapped.columns["person"])))
    found: dict[str, Column] = {}
    placed = np.ones(batch.num_rows, dtype=bool)
    for role, name in mapped.columns.items():
        column = batch.column(name)
        if role in ("person", "episode"):
            found[role] = _keys(column)
        elif role == "step":
            found["step"], placed = _step(column, mapped)
            if placed.any():
                readable.add("step")
        elif role in ("reward", "propensity"):
            numbers = _numbers(column)
            if not np.isnan(numbers).all():
                readable.add(role)
            if role == "reward":
                found["reward"] = _paid(numbers, mapped).astype(np.float32)
            else:
                chances = np.clip(np.nan_to_num(numbers, nan=0.0), 0.0, 2.0)  # 2 is none
                found["chance"] = _not_below(chances)
        else:
            found["ends"] = _flags(column)
    state = np.zeros(batch.num_rows, dtype=np.int64)
    known = placed.copy()
    for cells in mapped.states:
        place = _cells(batch.column(cells.column), cells)
        known &= place >= 0
        state = state * len(cells.names) + place
    sizes = mapped.task.sizes
    found["state"] = np.where(known, state, -1).astype(_narrow(sizes["states"]))
    action = _cells(batch.column(mapped.action.column), mapped.action)
    found["action"] = action.astype(_narrow(sizes["actions"]))
    return found


def _narrow(size: int) -> type[np.signedinteger[Any]]:
    """The least kind of whole numbers for so many and -1: a log may be long."""
    return next(kind for kind in (np.int8, np.int16, np.int32) if size <= np.iinfo(kind).max)


def _by_text(column: Any, read: Callable[[Column], Column], missing: float) -> Column:
    """What ``read`` makes of different texts, row by row.

    It takes every text by itself, so that the rows of one person never decide how those of another
    are read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = pc.cast(column, pa.string()).dictionary_encode()
    known = np.append(read(coded.dictionary.to_numpy(zero_copy_only=False)), missing)
    found: Column = known[np.asarray(pc.fill_null(coded.indices, len(known) - 1))]
    return found


def _keys(column: Any) -> Column:
    """Whole numbers as they are, anything else by a hash of its text; missing is one key."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pandas.util import hash_array

    if pa.types.is_integer(column.type):
        whole: Column = np.asarray(pc.fill_null(column, 0)).astype(np.int64)
        return whole
    return _by_text(column, lambda t: hash_array(t, categorize=False).view(np.int64), 0)


NEVER = np.iinfo(np.int64).min
"""The moment of a row whose date is missing or none."""


def _step(column: Any, mapped: Mapped) -> tuple[Column, Column]:
    """Places in the order of an episode, and which rows have one."""
    if mapped.steps == "dated":
        moments = _moments(column, mapped.date_format)
        return moments, moments != NEVER
    steps = _numbers(column)
    if mapped.steps == "ordered":
        return np.nan_to_num(steps, nan=-np.inf), ~np.isnan(steps)
    whole = steps == np.rint(steps)
    last = mapped.task.horizon + 1
    place = np.clip(np.where(whole, steps - mapped.first_step, -1.0), -1, last)
    return place.astype(_narrow(last + 1)), whole


def _moments(column: Any, form: str) -> Column:
    """Dates as whole numbers in their order: in the unit of the column, or of texts in us."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        found: Column = column.to_numpy(zero_copy_only=False).astype(np.int64)  # NaT is NEVER
        return found

    def moment(text: str) -> int:
        try:
            date = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except (ValueError, OverflowError):
            return NEVER
        since = (date if date.tzinfo else date.replace(tzinfo=UTC)) - EPOCH
        return since // timedelta(microseconds=1)

    return _by_text(column, lambda t: np.array([*map(moment, t)], dtype=np.int64), NEVER)


def _paid(rewards: Array, mapped: Mapped) -> Array:
    """Rewards rescaled to [0, 1], clipped."""
    low, high = mapped.reward_range
    filled = np.where(np.isnan(rewards), mapped.missing_reward, rewards)
    return (np.clip(filled, low, high) - low) / (high - low)


def _not_below(chances: Array) -> npt.NDArray[np.float32]:
    """In half the room, rounded up to 1 at most: a chance too small is a weight too large."""
    near = chances.astype(np.float32)
    return np.where(near < chances, np.nextafter(near, np.float32(1.0)), near)


def _flags(column: Any) -> Column:
    """1 for true, yes, t, y and numbers that are not 0; 0 for anything else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(column.type):
        return np.asarray(pc.fill_null(column, False)).astype(np.int8)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        words = pc.is_in(pc.utf8_lower(column), pa.array(["true", "yes", "t", "y"], column.type))
        said = np.asarray(pc.fill_null(words, False))
    else:
        said = np.zeros(len(column), dtype=bool)
    marked: Column = said | (np.nan_to_num(_numbers(column), nan=0.0) != 0)
    return marked.astype(np.int8)


def _numbers(column: Any) -> Array:
    """Real numbers; what is none is NaN, and always the same: a signalling one would warn."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    if any(kind(column.type) for kind in kinds):
        cast = np.asarray(pc.fill_null(pc.cast(column, pa.float64(), safe=False), np.nan))
        return np.where(np.isnan(cast), np.nan, cast)
    return _by_text(column, lambda t: np.array([*map(_number, t)], dtype=np.float64), np.nan)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _cells(column: Any, cells: Cells) -> Column:
    """Numbers of cells; ``other`` for values that are missing or were not declared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if cells.kind == "values":
        texts = pc.cast(column, pa.string())
        if pa.types.is_floating(column.type):  # whole numbers beside missing ones became reals
            whole = pc.equal(pc.floor(column), column)
            small = pc.less(pc.abs(column), 2.0**53)
            number = pc.if_else(pc.and_(whole, small), column, None)
            texts = pc.coalesce(pc.cast(pc.cast(number, pa.int64()), pa.string()), texts)
        labels = pa.array([name for name in cells.names])
        place = pc.index_in(texts, value_set=labels)
        return np.asarray(pc.fill_null(place, cells.other)).astype(np.int32)
    values = _numbers(column)
    missing = np.isnan(values)
    if cells.kind == "bins":
        place = np.searchsorted(np.array(cells.edges), values, side="right")
    else:
        missing |= (values != np.rint(values)) | (values < 0) | (values >= len(cells.names))
        place = np.where(missing, 0, values).astype(np.int64)
    return np.where(missing, cells.other, place).astype(np.int32)
