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
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from tacit.errors import InvalidInput, need, suggestion
from tacit.kernels.raw.log_rows import whole_rows
from tacit.logs.encoding import encoded
from tacit.logs.mapping import LogMapping
from tacit.logs.rows import MINARI, Column, Read, arranged
from tacit.logs.screen import ExactNumbers

ENDINGS = (".csv", ".parquet")

PIECE = 1 << 17
"""Rows of a piece."""

BLOCK = 8 << 20
"""Bytes of a piece of a CSV file; pieces grow where a row is longer."""

LONGEST = 2**31 - 4
"""Bytes of the longest row that pyarrow can read."""


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
        for schema in self.schemas:
            names = self.mapped.columns_read
            empty = {name: pa.array([], schema.field(name).type) for name in names}
            columns = encoded(pa.record_batch(empty), self.mapped, self.numbered, ExactNumbers())
        return columns


def open_log(source: str | Path, mapped: LogMapping) -> LogSource:
    """A parquet file, a CSV file, a folder of either, or ``minari:ID``; refuses a wrong form."""
    try:
        if str(source).startswith(MINARI):
            opened = _minari(str(source).removeprefix(MINARI), mapped)
        else:
            opened = _files(Path(source), mapped)
        opened.nothing()
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError, csv.Error) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{source} cannot be read as a log ({type(error).__name__}); it must be a parquet or "
            "CSV file with the columns that the mapping names, one row per step. Nothing was "
            "charged"
        ) from None
    return opened


def _files(path: Path, mapped: LogMapping) -> LogSource:
    """A file or the files of a folder, each with the types of its own columns."""
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
                table = pa.csv.read_csv(rows, options, parse, convert)
                yield from table.slice(header).to_batches()
                header = 0


def _parquet(file: Path, mapped: LogMapping, exact: ExactNumbers) -> Iterator[Any]:
    """Pieces of a parquet file."""
    how = {"batch_size": PIECE, "use_threads": False, "batch_readahead": 1, "fragment_readahead": 1}
    whole = ds.dataset(file, format="parquet")
    yield from whole.to_batches(columns=list(mapped.columns_read), **how)


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
            except (ValueError, TypeError, NotImplementedError):
                exact.rows += 1  # it keeps no other from being read
                exact.left["are an episode of another form"] += 1
                continue
            yield rows

    return LogSource(mapped, pieces, (schema,))


def _episode(episode: Any, seen: list[str], schema: Any) -> Any:
    """The rows of an episode of a Minari data set."""
    rows = np.asarray(episode.observations).reshape(-1, len(seen))
    columns: dict[str, Any] = {"person": np.full(len(rows), int(episode.id))}
    columns["step"] = np.arange(len(rows))
    columns |= dict(zip(seen, rows.T, strict=True))
    columns["action"] = [*np.asarray(episode.actions).tolist(), None]
    columns["reward"] = np.append(np.asarray(episode.rewards, dtype=np.float64), np.nan)
    columns["ends"] = np.append(np.asarray(episode.terminations, dtype=bool), False)
    return pa.record_batch([pa.array(columns[x.name], x.type) for x in schema], schema=schema)
