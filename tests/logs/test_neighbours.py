"""Logs that differ in one person differ in nothing that anybody else sees, but for the noise.

The sums of every release are set to zero and its noise is a recorded one, so all that is left may
not depend on anybody: status, errors, warnings, lines but those for the holder's own screen, files
byte by byte, and the ledger.
"""

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tacit.agents.offline import TacitOffline
from tacit.cli import main as command
from tacit.logs import budget, offline, reading
from tacit.logs.mapping import read_mapping
from tacit.logs.reading import open_log
from tacit.logs.screen import MARK
from tacit.privacy.joint.batched import BatchSums
from tacit.privacy.ledger import verify
from tacit.statistics.base import Relation
from tacit.statistics.log_sums import LoggedOutcomes, LoggedStages, LoggedVisits, WeightedReturns
from tacit.task.task import table_sizes
from tacit.trajectory import Log

TASK = """
[data]
name = "made up"
people = 3
[budget]
epsilon = 100.0
[columns]
person = "person"
episode = "week"
step = "step"
reward = "reward"
propensity = "chance"
ends = "quit"
[[state]]
column = "mood"
values = ["calm", "tense"]
[[state]]
column = "age"
bins = [30, 60]
[action]
column = "action"
size = 2
[reward]
range = [-1, 2]
[task]
horizon = 3
first_step = 1
"""

NAMES = ("person", "week", "step", "mood", "age", "action", "reward", "chance", "quit")
USUAL = ("x", "1", "1", "calm", "40", "1", "0.5", "0.5", "no")
HOSTILE = ("nan", "-inf", "1e308", "5e-324", "-0.0", "99999999999999999999", "0x10", "", "monday")
HOSTILE_BYTES = (b"\xff\xfe", b"\x00", b'"a,""b"\ncalm"', b"a" * 100_000)

WRITTEN: dict[str, list[bytes]] = {"absent": []}
"""Lines of one person in a CSV file."""
WRITTEN["usual"] = [",".join(USUAL).encode(), ",".join((*USUAL[:2], "2", *USUAL[3:])).encode()]
WRITTEN["many"] = WRITTEN["usual"] * 30
WRITTEN["too few and too many cells"] = [b"x", b"x,1,1", WRITTEN["usual"][0] + b",1,2,3"]
WRITTEN["too few cells and no letters"] = [b"x,\xff", b"\xff" * 30, b"x,1,1,\xff,40"]
WRITTEN["no person"] = [b"," + WRITTEN["usual"][0].partition(b",")[2]]
for _name, _cell in [(text, text.encode()) for text in HOSTILE] + [
    (f"bytes {i}", cell) for i, cell in enumerate(HOSTILE_BYTES)
]:
    WRITTEN[_name] = [b",".join([b"x", *[_cell] * (len(NAMES) - 1)])]
    WRITTEN[f"{_name}, one by one"] = [
        b",".join([*(cell.encode() for cell in USUAL[:i]), _cell, *map(str.encode, USUAL[i + 1 :])])
        for i in range(1, len(NAMES))
    ]

TYPES = {"step": pa.float64(), "age": pa.float32(), "action": pa.int64(), "reward": pa.float64()}
TYPES |= {"chance": pa.float64(), "quit": pa.bool_(), "mood": pa.dictionary(pa.int8(), pa.string())}
NUMBERS = (None, np.nan, np.inf, -np.inf, 1e308, 5e-324, -0.0, -1.0, 2.5, 2.0**63)
LIVES: dict[str, list[dict[str, object]]] = {"absent": [], "usual": [{}, {"step": 2.0}]}
"""Rows of one person in a parquet file, by what is unusual in them."""
LIVES["no person"] = [{"person": None}]
LIVES["nothing"] = [dict.fromkeys(NAMES[1:])]
LIVES["undeclared"] = [{"mood": "odd"}, {"action": 7}, {"action": -(2**63)}, {"step": 99.0}]
for _number in NUMBERS:
    LIVES[f"{_number}"] = [dict.fromkeys(("step", "age", "reward", "chance"), _number)]


def in_csv(lines: list[bytes], others: bool, path: Path) -> Path:
    path = path.with_suffix(".csv")
    rest = [b"a,1,1,tense,20,0,1,0.5,no", b"b,1,1,calm,70,1,2,1,yes"] if others else []
    path.write_bytes(b"\n".join([",".join(NAMES).encode(), *rest[:1], *lines, *rest[1:], b""]))
    return path


def in_parquet(rows: list[dict[str, object]], others: bool, path: Path) -> Path:
    usual = dict(zip(NAMES, ("x", "1", 1.0, "calm", 40.0, 1, 0.5, 0.5, False), strict=True))
    rows = [{**usual, **row} for row in rows]
    rows += [{**usual, "person": who} for who in "ab" if others]
    kinds = pa.schema([(name, TYPES.get(name, pa.string())) for name in NAMES])
    path = path.with_suffix(".parquet")
    pa.parquet.write_table(pa.Table.from_pylist(rows, kinds), path)
    return path


class Recorded(offline.SecureNoise):
    """The same noise in every release."""

    def fill(self, law, out) -> None:
        out[:] = np.rint(np.random.default_rng(0).normal(size=len(out)) * law.scales)


@pytest.fixture
def nothing_but_noise(monkeypatch) -> None:
    absorb = BatchSums.absorb_sums
    monkeypatch.setattr(
        BatchSums,
        "absorb_sums",
        lambda self, secret, total, *rest: absorb(self, secret, 0 * total, *rest),
    )
    monkeypatch.setattr(offline, "SecureNoise", Recorded)
    monkeypatch.setattr(budget, "_now", lambda: "then")


KEPT = ("task.toml", "policy.json")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A mapping and a policy that fits it."""
    (tmp_path / "task.toml").write_text(TASK)
    log = in_csv(WRITTEN["usual"], True, tmp_path / "log")
    offline.offline(log, tmp_path / "task.toml", TacitOffline(1.0), noise="simulated").policy.save(
        tmp_path / "policy.json"
    )
    log.unlink()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def left_behind(folder: Path, log: Path) -> dict[str, bytes]:
    """Files that were written since, byte by byte; they are deleted."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path != log and name not in KEPT:
            found[name] = path.read_bytes()
            path.unlink()
    shutil.rmtree(folder / "out", ignore_errors=True)
    return found


def typed(words: str, folder: Path, log: Path, monkeypatch, capfd) -> dict[str, object]:
    """Everything that one run of the command line shows and leaves behind."""
    monkeypatch.setattr("sys.argv", ["tacit", *words.replace("LOG", log.name).split()])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(SystemExit) as end:
            command.main()
    out, err = capfd.readouterr()
    return {
        "status": end.value.code,
        "lines": [line for line in out.splitlines() if not line.endswith(MARK)],
        "errors": err,
        "warnings": [str(one.message) for one in warned],
        "files": left_behind(folder, log),
    }


COMMANDS = {
    "offline LOG --epsilon 1 --out out": 6,
    "offline LOG --epsilon 1 --json -A counts=outcomes": 3,
    "offline LOG --policy policy.json --epsilon 1": 3,
    "offline LOG --epsilon 200": 0,
}
"""Commands, and how many files each leaves behind."""

WRITE: dict[str, tuple[Callable[..., Path], dict[str, list]]] = {
    "csv": (in_csv, WRITTEN),
    "parquet": (in_parquet, LIVES),
}


@pytest.mark.parametrize("words", list(COMMANDS))
@pytest.mark.parametrize("kind", list(WRITE))
def test_the_command_line_shows_nothing_of_one_person(
    folder, kind, words, nothing_but_noise, monkeypatch, capfd
) -> None:
    write, lives = WRITE[kind]
    for others in (True, False):
        found = {}
        for i, (name, life) in enumerate(lives.items()):
            # reading is the same in all of them, and one person alone shows most
            if name == "usual" or i % (1 if "--out" in words and not others else 4) == 0:
                log = write(life, others, folder / "log")
                found[name] = typed(words, folder, log, monkeypatch, capfd)
                log.unlink()
        first = found["usual"]
        assert len(first["files"]) == COMMANDS[words] and first["status"] == 2 * (
            not first["files"]
        )
        for name, one in found.items():
            assert one == first, name


@pytest.mark.parametrize("kind", list(WRITE))
def test_nothing_that_one_person_writes_stops_the_reading_of_others(folder, kind) -> None:
    (write, lives), mapped = WRITE[kind], read_mapping("task.toml")
    statistic = LoggedVisits(mapped.task, 3, mapped.max_return)

    def summed(life: list, others: bool) -> np.ndarray:
        log, exact = open_log(write(life, others, folder / "log"), mapped).read()
        assert not exact.stopped
        total = np.zeros(statistic.layout.size, dtype=np.int64)
        statistic.add(log, total)
        return total

    rest = summed([], True)
    assert rest.any() and summed(lives["usual"], False).any()
    for name, life in lives.items():
        assert (summed(life, True) == summed(life, False) + rest).all(), name


def test_the_noise_of_replacing_a_person_covers_one_who_is_absent(folder) -> None:
    mapped = read_mapping("task.toml")
    policy = np.full(table_sizes(mapped.task), 0.5)
    statistics = [
        LoggedVisits(mapped.task, 3, mapped.max_return),
        LoggedStages(mapped.task, mapped.max_return),
        LoggedOutcomes(mapped.task, 3, mapped.max_return),
        WeightedReturns(mapped.task, policy, 3.0, mapped.max_return),
    ]
    for one in statistics:
        absent = one.sensitivity("l2", Relation.ADD_REMOVE_ONE)
        assert absent <= one.sensitivity("l2", Relation.REPLACE_ONE)


def called(make: Callable[[], object], folder: Path, log: Path) -> dict[str, object]:
    """Everything that a call shows and leaves behind, but the exact numbers."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            made = make()
            said = repr(made), json.dumps(made.to_json())
        except Exception as error:
            said = "refused", f"{type(error).__name__}: {error}"
    return {
        "said": said,
        "warnings": [str(one.message) for one in warned],
        "files": left_behind(folder, log),
    }


def in_memory() -> Iterator[Log]:
    """Logs of two people, one of whom differs; and of that one alone."""
    rng = np.random.default_rng(0)
    for others in (0, 1):
        for i, special in enumerate((0.5, np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308)):
            rows = (3, 0, 40)[i % 3]
            n = rows + others
            whole = rng.integers(-(2**62), 2**62, (5, n))
            whole[:, rows:] = 0
            reals = np.full((2, n), special)
            reals[:, rows:] = 0.5
            opens, step, state, action, after = whole
            begin = np.array([0, rows, n][: 2 + others])
            yield Log(begin, opens, step, state, action, reals[0], after, reals[1])
        nothing, real = np.zeros(others, dtype=np.int64), np.zeros(others)
        yield Log(np.arange(1 + others), *[nothing] * 4, real, nothing, real)


@pytest.mark.parametrize("weights", [False, True])
def test_a_log_in_memory_shows_nothing_of_one_person(folder, weights, nothing_but_noise) -> None:
    mapped, policy = read_mapping("task.toml"), "policy.json"

    def made(log: Log) -> object:
        if weights:
            return offline.evaluate(log, policy, mapped, epsilon=1.0, ledger="made_up.ledger")
        return offline.offline(log, mapped, TacitOffline(1.0), ledger="made_up.ledger")

    found = [called(lambda log=log: made(log), folder, folder) for log in in_memory()]
    assert len(found[0]["files"]) == 3 and found[0]["said"][0] != "refused"
    for one in found:
        assert one == found[0]


def test_what_refuses_a_log_is_its_form(folder, nothing_but_noise) -> None:
    """The same refusal whatever one person did, and no charge."""
    cut = {name: [row.partition(b",")[2] for row in life] for name, life in WRITTEN.items()}
    for others in (True, False):
        said = set()
        for life in cut.values():
            log = in_csv(life, others, folder / "log")
            log.write_bytes(log.read_bytes().replace(b"person", b"persom", 1))
            one = called(
                lambda log=log: offline.offline(log, "task.toml", TacitOffline(1.0)), folder, log
            )
            assert not one["files"]
            said.add(one["said"])
        assert len(said) == 1 and "no column 'person'" in said.pop()[1]


def test_a_row_is_read_only_when_all_is_charged(folder, monkeypatch) -> None:
    log = in_csv(WRITTEN["usual"], True, folder / "log")
    csv = reading._csv

    def first_charged(*given) -> Iterator[object]:
        assert verify("made up.ledger").summary["spent"]["mu_squared"] > 0
        yield from csv(*given)
        raise MemoryError

    monkeypatch.setattr(budget, "_now", lambda: "then")
    monkeypatch.setattr(reading, "_csv", first_charged)
    with pytest.raises(MemoryError):
        offline.offline(log, "task.toml", TacitOffline(1.0), ledger="made up.ledger")
    assert verify("made up.ledger").summary["spent"]["mu_squared"] > 0


def test_a_file_that_breaks_off_is_released_as_far_as_it_was_read(folder, monkeypatch) -> None:
    log, encoded = in_csv(WRITTEN["usual"], True, folder / "log"), reading.encoded
    whole = offline.offline(log, "task.toml", TacitOffline(1.0))
    pieces = iter((False, True))

    def breaks(batch, *rest):
        if batch.num_rows and next(pieces):
            raise RuntimeError("x was calm")
        return encoded(batch, *rest)

    twice = lambda file, *rest: (piece for _ in range(2) for piece in csv(file, *rest))  # noqa: E731
    csv = reading._csv
    monkeypatch.setattr(reading, "_csv", twice)
    monkeypatch.setattr(reading, "encoded", breaks)
    made = offline.offline(log, "task.toml", TacitOffline(1.0))
    assert (
        made.exact_counts.kept == whole.exact_counts.kept > 0
        and made.exact_counts.stopped == "RuntimeError"
    )
    assert "calm" not in "".join(made.exact_counts._totals(made.mapped))
