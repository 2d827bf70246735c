"""A log as it lies somewhere -> its rows, clipped by rule and sorted by person. Raw, all of it.

Opening a log looks at its form alone: whether it is there, its columns and their types. Whatever a
log says about people is looked at only when it is read, which must be charged before. Files are
read in pieces by pyarrow; only the columns that the mapping names are kept, as numbers. No message
from here says what a cell of the log holds.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.errors import InvalidInput, need, suggestion
from tacit.kernels.raw.log_rows import arrange, whole_rows
from tacit.logs.encoding import Column, encoded, narrow
from tacit.logs.mapping import LogMapping
from tacit.logs.screen import ExactNumbers
from tacit.trajectory import Log

MINARI = "minari:"
"""Begins the name of a data set that the package minari knows."""

ENDINGS = (".csv", ".parquet")

PIECE = 1 << 17
"""Rows of a piece."""

BLOCK = 8 << 20
"""Bytes of a piece of a CSV file; pieces grow where a row is longer."""

LONGEST = 2**31 - 4
"""Bytes of the longest row that pyarrow can read."""


OTHERS = {"episode": np.int8, "step": np.int8, "ends": np.int8}
OTHERS |= {"reward": np.float32, "chance": np.float32}
"""Columns that a log may lack, and of what type they are then, all zeros."""


class Read(NamedTuple):
    """A log, and exact numbers for the screen of whoever holds the data, nowhere else."""

    log: Log
    exact: ExactNumbers


@dataclass(frozen=True)
class LogSource:
    """A log whose form was found to be right; nothing that people did has been looked at.

    Attributes:
        mapped: the mapping.
        pieces: record batches with the columns that are read.
        schemas: of its files.
    """

    mapped: LogMapping
    pieces: Callable[[ExactNumbers], Iterator[Any]]
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

        exact, numbered = ExactNumbers(), self.numbered
        parts = {name: [column] for name, column in self.nothing().items()}
        try:
            for batch in self.pieces(exact):
                for name, column in encoded(batch, self.mapped, numbered, exact).items():
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
            names = self.mapped.columns_read
            empty = {name: pa.array([], schema.field(name).type) for name in names}
            found = encoded(pa.record_batch(empty), self.mapped, self.numbered, ExactNumbers())
        return found


def open_log(source: str | Path, mapped: LogMapping) -> LogSource:
    """A parquet file, a CSV file, a folder of either, or ``minari:ID``; refuses a wrong form."""
    need("reading a log", "tables")
    try:
        if str(source).startswith(MINARI):
            found = _minari(str(source).removeprefix(MINARI), mapped)
        else:
            found = _files(Path(source), mapped)
        found.nothing()
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError, csv.Error) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{source} cannot be read as a log ({type(error).__name__}); it must be a parquet or "
            "CSV file with the columns that the mapping names, one row per step. Nothing was "
            "charged"
        ) from None
    return found


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
    for i in range(0, len(person) - 1, PIECE):
        p, e, t = (column[i : i + PIECE + 1] for column in (person, episode, step))
        equal = p[1:] == p[:-1]
        later = e[1:] > e[:-1]
        same = e[1:] == e[:-1]
        if not ((p[1:] > p[:-1]) | (equal & (later | (same & (t[1:] >= t[:-1]))))).all():
            return False
    return True


def _files(path: Path, mapped: LogMapping) -> LogSource:
    """A file or the files of a folder, each with the types of its own columns."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not path.exists():
        raise InvalidInput(f"there is no log {path}")
    inside = [x for x in sorted(path.rglob("*")) if x.is_file() and not _hidden(x, path)]
    files = [x for x in inside or [path] if x.suffix.lower() in ENDINGS and x.is_file()]
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

    def pieces(exact: ExactNumbers) -> Iterator[Any]:
        for file in files:
            yield from (_csv if file.suffix.lower() == ".csv" else _parquet)(file, mapped, exact)

    return LogSource(mapped, pieces, tuple(schemas))


def _hidden(file: Path, folder: Path) -> bool:
    return any(part[0] in "._" for part in file.relative_to(folder).parts)


def _header(file: Path) -> list[str]:
    """The names of the columns of a CSV file: its first line that is not empty, and no other."""
    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        first = next((line for line in lines if line.strip()), "")
    return next(csv.reader([first]), [])


def _csv(file: Path, mapped: LogMapping, exact: ExactNumbers) -> Iterator[Any]:
    """Pieces of a CSV file; a line with another number of cells than columns is no row.

    What pyarrow gets are whole rows with the right number of cells, a piece at once: left to itself
    it stops at a line that is no row and not UTF-8 either, and it may cut a row in two, at a line
    break in quotes, where one of its own pieces ends. Either would be somebody's row deciding what
    is read of others.
    """
    import pyarrow as pa
    import pyarrow.csv

    names = _header(file)
    convert = pa.csv.ConvertOptions(
        column_types={name: pa.large_binary() for name in mapped.columns_read},
        include_columns=list(mapped.columns_read),
        strings_can_be_null=True,
        null_values=["", "NA", "NaN", "null"],
    )
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    with file.open("rb") as lines:
        rest, header, last = lines.read(len(BOM_UTF8)).removeprefix(BOM_UTF8), 1, False
        while not last:
            if len(rest) == LONGEST:
                raise OverflowError("a row is too long")
            more = lines.read(min(max(BLOCK, len(rest)), LONGEST - len(rest)))
            last = not more
            text = np.frombuffer(rest + more, dtype=np.uint8)
            kept = np.empty(len(text) + 1, dtype=np.uint8)
            done, size, left = whole_rows(text, len(names), last, kept)
            rest = text[done:].tobytes()
            exact.rows += left
            exact.left["have too many or too few cells"] += left
            if size:
                options = pa.csv.ReadOptions(
                    column_names=names, use_threads=False, block_size=size + 1
                )
                rows = pa.BufferReader(pa.py_buffer(kept[:size]))
                found = pa.csv.read_csv(rows, options, parse, convert)
                yield from found.slice(header).to_batches()
                header = 0


def _parquet(file: Path, mapped: LogMapping, exact: ExactNumbers) -> Iterator[Any]:
    """Pieces of a parquet file."""
    import pyarrow.dataset as ds

    yield from ds.dataset(file, format="parquet").to_batches(
        columns=list(mapped.columns_read),
        batch_size=PIECE,
        use_threads=False,
        batch_readahead=1,
        fragment_readahead=1,
    )


def _check_columns(names: list[str], mapped: LogMapping, where: str) -> None:
    if not {*names} & {*mapped.columns_read}:  # perhaps they are no names: they are not quoted
        raise InvalidInput(
            f"{where} has none of the columns that the mapping names: a CSV file must begin with a "
            "line of their names, with commas between them"
        )
    for name in mapped.columns_read:
        if name not in names:
            raise InvalidInput(
                f"{where} has no column {name!r}, which the mapping names{suggestion(name, names)}"
            )
        if names.count(name) > 1:
            raise InvalidInput(f"{where} has several columns {name!r}; the mapping means one")


def _minari(name: str, mapped: LogMapping) -> LogSource:
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

    number, kinds = pa.float64(), {"person": pa.int64(), "ends": pa.bool_()}
    schema = pa.schema([(x, kinds.get(x, number)) for x in mapped.columns_read])

    def pieces(exact: ExactNumbers) -> Iterator[Any]:
        for episode in dataset.iterate_episodes():
            try:
                rows = _episode(episode, seen, schema)
            except (
                ValueError,
                TypeError,
                NotImplementedError,
            ):  # it keeps no other from being read
                exact.rows += 1
                exact.left["are an episode of another form"] += 1
                continue
            yield rows

    return LogSource(mapped, pieces, (schema,))


def _episode(episode: Any, seen: list[str], schema: Any) -> Any:
    """The rows of an episode of a Minari data set."""
    import pyarrow as pa

    rows = np.asarray(episode.observations).reshape(-1, len(seen))
    columns: dict[str, Any] = {"person": np.full(len(rows), int(episode.id))}
    columns["step"] = np.arange(len(rows))
    columns |= dict(zip(seen, rows.T, strict=True))
    columns["action"] = [*np.asarray(episode.actions).tolist(), None]
    columns["reward"] = np.append(np.asarray(episode.rewards, dtype=np.float64), np.nan)
    columns["ends"] = np.append(np.asarray(episode.terminations, dtype=bool), False)
    return pa.record_batch([pa.array(columns[x.name], x.type) for x in schema], schema=schema)
