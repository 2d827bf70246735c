"""A log as it lies somewhere -> its rows, clipped by rule and sorted by person. Raw, all of it.

Opening a log looks at its form alone: whether it is there, its columns and their types. Whatever a
log says about people is looked at only when it is read, which must be charged before. Files are
read in pieces by pyarrow; only the columns that the mapping names are kept, as numbers. No message
from here says what a cell of the log holds.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.errors import InvalidInput, need, suggestion
from tacit.kernels.logged import arrange
from tacit.logs.mapping import Cells, Mapped
from tacit.logs.screen import Exact
from tacit.trajectory import Log

MINARI = "minari:"
"""Begins the name of a data set that the package minari knows."""

ENDINGS = (".csv", ".parquet")

PIECE = 1 << 17
"""Rows of a piece."""

BLOCK = 8 << 20
"""Bytes of a piece of a CSV file: the longest row that can be read."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Column = npt.NDArray[Any]


class Read(NamedTuple):
    """A log, and exact numbers for the screen of whoever holds the data, nowhere else."""

    log: Log
    exact: Exact


@dataclass(frozen=True)
class LogSource:
    """A log whose form was found to be right; nothing that people did has been looked at.

    Attributes:
        mapped: the mapping.
        pieces: record batches with the columns that are read.
        schemas: of its files.
    """

    mapped: Mapped
    pieces: Callable[[Exact], Iterator[Any]]
    schemas: tuple[Any, ...]

    @property
    def numbered(self) -> frozenset[str]:
        """Which of person and episode are whole numbers in all files; else they are texts."""
        import pyarrow as pa

        names = self.mapped.columns
        return frozenset(
            role
            for role in ("person", "episode")
            if role in names
            and all(pa.types.is_integer(schema.field(names[role]).type) for schema in self.schemas)
        )

    def read(self) -> Read:
        """Its rows. Nothing that they say makes this fail: a refusal would tell what it was.

        Where a file breaks off or cannot be decoded further, what was read before is the log.
        """
        import pyarrow as pa

        exact, numbered = Exact(), self.numbered
        parts = {name: [column] for name, column in self.nothing().items()}
        try:
            for batch in self.pieces(exact):
                for name, column in _encoded(batch, self.mapped, numbered, exact).items():
                    parts[name].append(column)
        except MemoryError:
            raise
        except Exception as error:  # whatever it is, it must not decide what is released
            exact.stopped = type(error).__name__
        pa.default_memory_pool().release_unused()
        columns = {}
        for name in list(parts):
            columns[name] = np.concatenate(parts.pop(name))
        return arranged(columns, self.mapped, exact)

    def nothing(self) -> dict[str, Column]:
        """No rows, as numbers; what cannot be read because of its type is refused here."""
        import pyarrow as pa

        for schema in self.schemas:
            empty = {name: pa.array([], schema.field(name).type) for name in self.mapped.read}
            found = _encoded(pa.record_batch(empty), self.mapped, self.numbered, Exact())
        return found


def open_log(source: str | Path, mapped: Mapped) -> LogSource:
    """A parquet file, a CSV file, a folder of either, or ``minari:ID``; refuses a wrong form."""
    need("reading a log", "tables")
    try:
        if str(source).startswith(MINARI):
            found = _minari(str(source).removeprefix(MINARI), mapped)
        else:
            found = _files(Path(source), mapped)
        found.nothing()
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{source} cannot be read as a log ({type(error).__name__}); it must be a parquet or "
            "CSV file with the columns that the mapping names, one row per step. Nothing was "
            "charged"
        ) from None
    return found


def arranged(columns: dict[str, Column], mapped: Mapped, exact: Exact | None = None) -> Read:
    """Sort the columns of a log by person, and clip them; the columns are used up.

    Args:
        columns: person, state and action, and where the log has them episode, step, reward, chance
            and ends; states and actions are numbers of the task, rewards lie in [0, 1].
        mapped: how they are meant.
        exact: gets the numbers of people and of rows that count.
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
    exact = exact or Exact()
    exact.people = min(rows, len(begin) - 1)
    opens, after = np.zeros(rows, dtype=np.int8), np.full(rows, -1, dtype=columns["state"].dtype)
    people = rows and arrange(  # without rows there is nobody
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
    exact.kept = int(begin[people])
    return Read(Log(begin[: people + 1], opens, step, *kept), exact)


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


def _files(path: Path, mapped: Mapped) -> LogSource:
    """A file or the files of a folder, each with the types of its own columns."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not path.exists():
        raise InvalidInput(f"there is no log {path}")
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    files = [x for x in inside if x.suffix.lower() in ENDINGS and x.name[0] not in "._"]
    if not files:
        raise InvalidInput(f"{path} must be a .parquet or .csv file, or a folder of them")
    schemas = []
    for file in files:
        if file.suffix.lower() == ".csv":  # "1" is "1" in every piece, whatever bytes it has
            names = _header(file)
            schemas.append(pa.schema([(name, pa.large_binary()) for name in names]))
        else:
            schemas.append(ds.dataset(file, format="parquet").schema)
        _check_columns(schemas[-1].names, mapped, file.name)

    def pieces(exact: Exact) -> Iterator[Any]:
        for file in files:
            yield from (_csv if file.suffix.lower() == ".csv" else _parquet)(file, mapped, exact)

    return LogSource(mapped, pieces, tuple(schemas))


def _header(file: Path) -> list[str]:
    """The names of the columns of a CSV file."""
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        return next(csv.reader(lines), [])


def _csv(file: Path, mapped: Mapped, exact: Exact) -> Iterator[Any]:
    """Pieces of a CSV file; a line with another number of cells than columns is no row."""
    import pyarrow as pa
    import pyarrow.csv

    def skip(line: Any) -> str:
        exact.rows += 1
        exact.left["have too many or too few cells"] += 1
        return "skip"

    with pa.csv.open_csv(  # the reader of data sets would hold a whole file
        file,
        pa.csv.ReadOptions(use_threads=False, block_size=BLOCK),
        pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        pa.csv.ConvertOptions(
            column_types={name: pa.large_binary() for name in mapped.read},
            include_columns=list(mapped.read),
            strings_can_be_null=True,
            null_values=["", "NA", "NaN", "null"],
        ),
    ) as pieces:
        yield from pieces


def _parquet(file: Path, mapped: Mapped, exact: Exact) -> Iterator[Any]:
    """Pieces of a parquet file."""
    import pyarrow.dataset as ds

    yield from ds.dataset(file, format="parquet").to_batches(
        columns=list(mapped.read),
        batch_size=PIECE,
        use_threads=False,
        batch_readahead=1,
        fragment_readahead=1,
    )


def _check_columns(names: list[str], mapped: Mapped, where: str) -> None:
    for name in mapped.read:
        if name not in names:
            raise InvalidInput(
                f"{where} has no column {name!r}, which the mapping names{suggestion(name, names)}"
            )
        if names.count(name) > 1:
            raise InvalidInput(f"{where} has several columns {name!r}; the mapping means one")


def _minari(name: str, mapped: Mapped) -> LogSource:
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
    shape, acts = dataset.observation_space.shape, dataset.action_space.shape
    if shape is None or len(shape) > 1 or acts != ():
        raise InvalidInput(
            f"{name} has observations or actions of a form that no mapping can name: it reads "
            "numbers and lists of numbers, and one number per action"
        )
    seen = [f"observation[{i}]" for i in range(*shape)] if shape else ["observation"]
    _check_columns(["person", "step", *seen, "action", "reward", "ends"], mapped, name)

    def pieces(exact: Exact) -> Iterator[Any]:
        for episode in dataset.iterate_episodes():
            rows = np.asarray(episode.observations).reshape(-1, len(seen))
            columns: dict[str, Any] = {"person": np.full(len(rows), int(episode.id))}
            columns["step"] = np.arange(len(rows))
            columns |= dict(zip(seen, rows.T, strict=True))
            columns["action"] = pa.array([*np.asarray(episode.actions).tolist(), None])
            columns["reward"] = np.append(np.asarray(episode.rewards, dtype=np.float64), np.nan)
            columns["ends"] = np.append(np.asarray(episode.terminations, dtype=bool), False)
            yield pa.record_batch({name: pa.array(columns[name]) for name in mapped.read})

    number, kinds = pa.float64(), {"person": pa.int64(), "ends": pa.bool_()}
    return LogSource(mapped, pieces, (pa.schema([(x, kinds.get(x, number)) for x in mapped.read]),))


def _encoded(
    batch: Any, mapped: Mapped, numbered: frozenset[str], exact: Exact
) -> dict[str, Column]:
    """The rows of a piece that say whose they are, as numbers; counts what does not fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    read = {
        name: column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    whose = pc.is_valid(read[mapped.columns["person"]])
    read = {name: column.filter(whose) for name, column in read.items()}
    rows = len(read[mapped.columns["person"]])
    exact.rows += batch.num_rows
    exact.left["have no person"] += batch.num_rows - rows
    found: dict[str, Column] = {}
    placed = np.ones(rows, dtype=bool)
    for role, name in mapped.columns.items():
        column, where = read[name], (role, name)
        if role in ("person", "episode"):
            found[role] = _keys(column, role in numbered)
        elif role == "step":
            found["step"], placed = _step(column, name, mapped)
            _count(exact, where, column, placed)
        elif role in ("reward", "propensity"):
            numbers = _numbers(column, name)
            if role == "reward":
                _count(exact, where, column, ~np.isnan(numbers))
                least, most = mapped.reward_range
                exact.columns[where]["cut"] += int(((numbers < least) | (numbers > most)).sum())
                found["reward"] = _paid(numbers, mapped).astype(np.float32)
            else:
                _count(exact, where, column, (numbers > 0.0) & (numbers <= 1.0))
                chances = np.clip(np.nan_to_num(numbers, nan=0.0), 0.0, 2.0)  # 2 is none
                found["chance"] = chances.astype(np.float32)
        else:
            found["ends"], clear = _flags(column, name)
            _count(exact, where, column, clear)
    state = np.zeros(rows, dtype=np.int64)
    known = placed.copy()
    for i, cells in enumerate(mapped.states):
        place = _placed(read[cells.column], cells, f"[[state]] {i + 1}", exact)
        known &= place >= 0
        state = state * len(cells.names) + place
    sizes = mapped.task.sizes
    found["state"] = np.where(known, state, -1).astype(_narrow(sizes["states"]))
    action = _placed(read[mapped.action.column], mapped.action, "[action]", exact)
    found["action"] = action.astype(_narrow(sizes["actions"]))
    _leave(found, placed, mapped, exact)
    return found


def _count(exact: Exact, where: tuple[str, str], column: Any, fits: Column) -> None:
    """Count the values of a column that are missing, and the others that do not fit."""
    import pyarrow.compute as pc

    missing = np.asarray(pc.is_null(column, nan_is_null=True))
    exact.columns[where]["missing"] += int(missing.sum())
    exact.columns[where]["unfit"] += int((~fits & ~missing).sum())


def _placed(column: Any, cells: Cells, table: str, exact: Exact) -> Column:
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


def _leave(found: dict[str, Column], placed: Column, mapped: Mapped, exact: Exact) -> None:
    """Count rows that teach nothing by themselves, each by the first reason that it has."""
    state, action = found["state"], found["action"]
    reasons = {"have no readable step": ~placed}
    if mapped.steps == "numbered" and "step" in found:
        reasons["lie before the first step"] = found["step"] < 0
        reasons["lie after the last step"] = found["step"] >= mapped.task.horizon
        exact.columns["step", mapped.columns["step"]]["first"] += int((found["step"] == 0).sum())
    reasons["have an undeclared state"] = state < 0
    reasons["have no declared action"] = action < 0
    reasons["have an action that is not allowed in their state, or a state that ends"] = (
        mapped.task.pairs.number[state, action] < 0
    )
    left = np.ones(len(state), dtype=bool)
    for reason, those in reasons.items():
        exact.left[reason] += int((left & those).sum())
        left &= ~those


def _narrow(size: int) -> type[np.signedinteger[Any]]:
    """The least kind of whole numbers for so many and -1: a log may be long."""
    return next(kind for kind in (np.int8, np.int16, np.int32) if size <= np.iinfo(kind).max)


def _text(column: Any) -> Any:
    """The bytes of every value as a text: nobody checks that they are UTF-8, for one may not be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = (pa.types.is_primitive, pa.types.is_decimal)  # numbers, dates and truth
    if any(kind(column.type) for kind in kinds):
        column = pc.cast(column, pa.string())
    return pc.cast(column, pa.large_binary())


def _by_text(column: Any, read: Callable[[Column], Column], missing: float) -> Column:
    """What ``read`` makes of different texts, row by row.

    It takes every text by itself, so that the rows of one person never decide how those of another
    are read.
    """
    import pyarrow.compute as pc

    coded = _text(column).dictionary_encode()
    known = np.append(read(coded.dictionary.to_numpy(zero_copy_only=False)), missing)
    found: Column = known[np.asarray(pc.fill_null(coded.indices, len(known) - 1))]
    return found


def _keys(column: Any, numbered: bool) -> Column:
    """Whole numbers as they are, anything else by a hash of its text; missing is one key."""
    import pyarrow.compute as pc
    from pandas.util import hash_array

    if numbered:
        whole: Column = np.asarray(pc.fill_null(column, 0)).astype(np.int64)
        return whole
    return _by_text(column, lambda t: hash_array(t, categorize=False).view(np.int64), 0)


NEVER = np.iinfo(np.int64).min
"""The moment of a row whose date is missing or none."""


def _step(column: Any, name: str, mapped: Mapped) -> tuple[Column, Column]:
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
    return place.astype(_narrow(last + 1)), whole


def _moments(column: Any, form: str) -> Column:
    """Dates as whole numbers in their order, in us: files of a folder may have several units."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        unit = pa.timestamp("us", getattr(column.type, "tz", None))
        dates = pc.cast(column, unit, safe=False).to_numpy(zero_copy_only=False)
        found: Column = dates.astype(np.int64)  # NaT is NEVER
        return found

    def moment(written: bytes) -> int:
        text = written.decode(errors="replace")
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


TRUE, FALSE = {b"true", b"yes", b"t", b"y"}, {b"false", b"no", b"f", b"n"}


def _flags(column: Any, name: str) -> tuple[Column, Column]:
    """1 for true, yes, t, y and numbers that are not 0, 0 for anything else; and what is clear."""

    def among(words: set[bytes]) -> Column:
        return _by_text(column, lambda t: np.array([x.lower() in words for x in t], bool), 0)

    true, false = among(TRUE), among(FALSE)
    numbers = _numbers(column, name)
    marked = true | (np.nan_to_num(numbers, nan=0.0) != 0)
    return marked.astype(np.int8), true | false | ~np.isnan(numbers)


def _numbers(column: Any, name: str) -> Array:
    """Real numbers; what is none is NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    if any(kind(column.type) for kind in kinds):
        cast = pc.cast(column, pa.float64(), safe=False)
        return np.asarray(pc.fill_null(cast, np.nan), dtype=np.float64)
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


def _cells(column: Any, cells: Cells) -> Column:
    """Numbers of cells; -1 for values that are missing or were not declared."""
    import pyarrow as pa
    import pyarrow.compute as pc

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
