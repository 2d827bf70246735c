import errno
import hashlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tacit.errors import InvalidInput
from tacit.privacy.chain import FORMAT
from tacit.privacy.charges import Charge, CopiesCharge, FiniteCharge, GaussianCharge, PureCharge
from tacit.privacy.filter import Budget, BudgetExhausted, Cost
from tacit.privacy.ledger import (
    AlreadyCharged,
    Ledger,
    LedgerDamaged,
    LedgerUnavailable,
    verify,
)
from tacit.privacy.loss import total

BUDGET = Budget(1.0, 1e-5, pure=0.5, mu_squared=0.02)
TENTH = PureCharge(0.1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Durability is not what these tests are about, and it is slow."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def create(path: Path, **options: Any) -> Ledger:
    return Ledger.create(path, budget=BUDGET, task="task", **options)


def head_of(path: Path) -> Path:
    return path.with_name(path.name + ".head")


def copy_to(path: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for file in (path, head_of(path)):
        shutil.copy(file, folder / file.name)
    return folder / path.name


def line_of(content: dict[str, Any], previous: str) -> bytes:
    """A line as the format describes it, written down here a second time on purpose."""

    def canonical(data: dict[str, Any]) -> bytes:
        return json.dumps(data, sort_keys=True, separators=(",", ":")).encode() + b"\n"

    linked = {**content, "previous": previous}
    return canonical({**linked, "hash": hashlib.sha256(canonical(linked)).hexdigest()})


def forge(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change lines and make every hash and the head fit again, as an intruder could."""
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(records)
    raw, previous = b"", "0" * 64
    for record in records:
        content = {k: v for k, v in record.items() if k not in ("hash", "previous")}
        raw += line_of(content, previous)
        previous = json.loads(raw.splitlines()[-1])["hash"]
    path.write_bytes(raw)
    head_of(path).write_bytes(line_of({"format": FORMAT, "length": len(raw)}, previous))


# --- what a ledger does ----------------------------------------------------------------------


def test_a_reopened_ledger_is_the_ledger_that_was_closed(path: Path) -> None:
    with create(path, unit="participation", relation="add-remove-one", participations=3) as ledger:
        entry = ledger.spend(GaussianCharge(0.01), "counter")
        assert entry == ledger.entries["counter"] and entry.status == "committed"
        assert ledger.reserve(TENTH, "later").status == "reserved"
        ledger.reserve(TENTH, "never")
        ledger.cancel("never")
        before, entries = ledger.as_json(), ledger.entries
    with Ledger.open(path, task="task", head=before["head"]) as ledger:
        assert ledger.as_json() == before and ledger.entries == entries
        assert ledger.filter.spent == Cost(mu_squared=Fraction(1, 100))
        assert ledger.filter.reserved == Cost(epsilon=Fraction(1, 10))
        assert ledger.commit("later").status == "committed"
        ledger.spend(TENTH, "never")  # a cancelled node is free
        assert ledger.filter.spent == Cost(Fraction(1, 100), Fraction(2, 10))
    assert before == {
        "format": FORMAT,
        "budget": {"epsilon": 1.0, "delta": 1e-5, "pure": 0.5, "mu_squared": 0.02},
        "unit": "participation",
        "relation": "add-remove-one",
        "participations": 3,
        "task": "task",
        "records": 5,
        "spent": {"mu_squared": 0.01, "epsilon": 0.0},
        "reserved": {"mu_squared": 0.0, "epsilon": 0.1},
        "remaining": {"mu_squared": 0.01, "epsilon": 0.4},
        "closed": False,
        "head": before["head"],
    }


def test_the_bytes_on_disk_are_the_format_and_do_not_change(path: Path) -> None:
    with create(path, clock=lambda: "2030-01-01T00:00:00Z") as ledger:
        ledger.spend(CopiesCharge(TENTH, 2), "a")
    header = {
        "format": "tacit-ledger-1",
        "budget": {"epsilon": 1.0, "delta": 1e-5, "pure": 0.5, "mu_squared": 0.02},
        "unit": "user",
        "relation": "replace-one",
        "participations": 1,
        "task": "task",
        "sequence": 0,
        "kind": "header",
        "time": None,
    }
    reserve = {
        "sequence": 1,
        "kind": "reserve",
        "time": "2030-01-01T00:00:00Z",
        "node": "a",
        "charge": {"kind": "copies", "charge": {"kind": "pure", "epsilon": 0.1}, "count": 2},
        "cost": {"mu_squared": 0.0, "epsilon": 0.2},
    }
    commit = {"sequence": 2, "kind": "commit", "time": "2030-01-01T00:00:00Z", "node": "a"}
    raw, previous = b"", "0" * 64
    for content in (header, reserve, commit):
        raw += line_of(content, previous)
        previous = json.loads(raw.splitlines()[-1])["hash"]
    assert path.read_bytes() == raw
    assert previous == "6d117af0d37c5ca29cc002f5b69acd6360a24a5f38f4b2a2faae9997a16dd734"
    assert head_of(path).read_bytes() == line_of({"format": FORMAT, "length": len(raw)}, previous)


def test_a_refusal_is_recorded_and_outlives_the_process(path: Path) -> None:
    with create(path) as ledger:
        ledger.reserve(PureCharge(0.4), "held")
        with pytest.raises(BudgetExhausted, match="now closed for good"):
            ledger.spend(GaussianCharge(0.03), "too much")
        with pytest.raises(BudgetExhausted, match="earlier request"):
            ledger.spend(PureCharge(1e-9), "tiny")
        assert ledger.filter.closed and "too much" not in ledger.entries
        records = ledger.as_json()["records"]
    for _ in range(2):
        with Ledger.open(path) as ledger:
            assert ledger.filter.closed and ledger.as_json()["records"] == records
            with pytest.raises(BudgetExhausted, match="earlier request"):
                ledger.spend(PureCharge(1e-9), "tiny")
    with Ledger.open(path) as ledger:
        assert ledger.commit("held").status == "committed"  # paid for before the refusal
    assert json.loads(path.read_bytes().splitlines()[2])["kind"] == "close"


def test_a_node_is_charged_once_and_a_replay_is_not_a_charge(path: Path) -> None:
    with create(path) as ledger:
        first = ledger.spend(TENTH, "node 1")
        for again in (ledger.spend, ledger.reserve):
            with pytest.raises(AlreadyCharged, match="'node 1' is committed already"):
                again(TENTH, "node 1")
        assert ledger.spend(TENTH, "node 1", replay=True) == first
        with pytest.raises(AlreadyCharged):
            ledger.spend(PureCharge(0.2), "node 1", replay=True)
        for settle in (ledger.commit, ledger.cancel):
            with pytest.raises(AlreadyCharged, match="committed already"):
                settle("node 1")
            with pytest.raises(AlreadyCharged, match="not reserved"):
                settle("nowhere")
        ledger.reserve(TENTH, "node 2")
        assert ledger.as_json()["records"] == 3
    with Ledger.open(path) as ledger:
        assert ledger.spend(TENTH, "node 1", replay=True) == first
        assert ledger.spend(TENTH, "node 2", replay=True).status == "committed"  # was interrupted
        assert ledger.filter.spent == Cost(epsilon=Fraction(2, 10))
        assert ledger.spend(TENTH, "node 3", replay=True).status == "committed"


def test_the_charge_is_on_disk_when_spend_returns(path: Path) -> None:
    with create(path) as ledger:
        ledger.spend(TENTH, "a")
        assert verify(path).summary["spent"] == {"mu_squared": 0.0, "epsilon": 0.1}


def test_questions_change_nothing(path: Path) -> None:
    with create(path) as ledger:
        raw = path.read_bytes()
        copy = ledger.filter
        copy.commit(copy.reserve(PureCharge(0.4)))
        with pytest.raises(BudgetExhausted):
            copy.reserve(PureCharge(0.9))
        assert ledger.filter.spent == Cost() and not ledger.filter.closed
        assert path.read_bytes() == raw


@pytest.mark.parametrize("node", ["", "x" * 201, "line\nbreak", "\x00", None, 7])
def test_nodes_have_printable_names(path: Path, node: object) -> None:
    with create(path) as ledger, pytest.raises(InvalidInput, match="node = "):
        ledger.spend(TENTH, node)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"task": ""},
        {"unit": "cohort"},
        {"relation": "implied"},
        {"participations": 0},
    ],
)
def test_a_ledger_is_not_created_from_nonsense(path: Path, options: dict) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        Ledger.create(path, **{"budget": BUDGET, "task": "task", **options})
    assert not path.exists()


def test_a_charge_must_be_a_charge(path: Path) -> None:
    with create(path) as ledger, pytest.raises(InvalidInput, match="charge = 0.1"):
        ledger.spend(0.1, "a")  # type: ignore[arg-type]


def test_a_ledger_is_never_created_over_another(path: Path) -> None:
    create(path).close()
    with pytest.raises(InvalidInput, match="a ledger was here"):
        create(path)
    head_of(path).unlink()
    with pytest.raises(InvalidInput, match="ledger exists"):
        create(path)
    with pytest.raises(InvalidInput, match="no ledger at missing"):
        Ledger.open(path.with_name("missing"))


def test_a_ledger_of_another_task_is_refused(path: Path) -> None:
    create(path).close()
    with pytest.raises(InvalidInput, match="another task"):
        Ledger.open(path, task="other")
    Ledger.open(path, task="task").close()


def test_the_report_is_for_people(path: Path) -> None:
    with create(path) as ledger:
        ledger.spend(TENTH, "a")
        report = verify(path)  # while it is open elsewhere
        assert report.sound and report.as_json()["summary"] == ledger.as_json()
        assert str(report) == (
            f"Sound: 2 records, head {ledger.head}, task task.\n"
            "Budget per user (replace-one, 1 participation(s)): epsilon = 1, delta = 1e-05 "
            "(mu^2 0.02 and epsilon 0.5).\n"
            "Spent: mu^2 0 and epsilon 0.1.\nReserved: mu^2 0 and epsilon 0.\nOpen."
        )
    path.write_bytes(path.read_bytes() + b"{")
    assert str(verify(path)).endswith("\n1 bytes of an unfinished append follow.")
    path.write_bytes(path.read_bytes()[:-2])
    assert str(verify(path)).startswith("DAMAGED: ledger has ")
    assert not verify(path.with_name("missing")).sound


# --- one writer ------------------------------------------------------------------------------


def test_only_one_opener_may_write(path: Path) -> None:
    with create(path):
        with pytest.raises(LedgerUnavailable, match="open already"):
            Ledger.open(path)
        code = "import sys; from tacit.privacy.ledger import Ledger; Ledger.open(sys.argv[1])"
        other = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        assert other.returncode == 1 and "LedgerUnavailable" in other.stderr
    Ledger.open(path).close()


def test_closed_and_forked_ledgers_are_unusable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = create(path)
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        with pytest.raises(LedgerUnavailable, match="before a fork"):
            ledger.spend(TENTH, "a")
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="was closed; open it again"):
        ledger.spend(TENTH, "a")


def test_threads_take_turns(path: Path, no_sync: None) -> None:
    with create(path) as ledger:

        def work(name: str) -> None:
            for i in range(10):
                ledger.spend(GaussianCharge(1e-4), f"{name}{i}")

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.filter.spent == Cost(mu_squared=Fraction(40, 10**4))
        assert verify(path).summary == ledger.as_json()


# --- tampering -------------------------------------------------------------------------------


@pytest.fixture
def full(path: Path, no_sync: None) -> Path:
    with create(path) as ledger:
        ledger.spend(GaussianCharge(0.01), "a")
        ledger.reserve(TENTH, "b")
        ledger.cancel("b")
    assert verify(path).sound
    return path


@pytest.mark.parametrize("mask", [0x01, 0x20])
def test_flipping_any_byte_of_either_file_is_noticed(full: Path, mask: int) -> None:
    for file in (full, head_of(full)):
        raw = file.read_bytes()
        for i in range(len(raw)):
            file.write_bytes(raw[:i] + bytes([raw[i] ^ mask]) + raw[i + 1 :])
            assert not verify(full).sound, (file.name, i)
        file.write_bytes(raw)
    assert verify(full).sound


def test_adding_and_dropping_bytes_is_noticed(full: Path) -> None:
    for file in (full, head_of(full)):
        raw = file.read_bytes()
        for i in range(len(raw)):
            changed = raw[:i] + raw[i + 1 :] if i % 2 else raw[:i] + b" " + raw[i:]
            file.write_bytes(changed)
            assert not verify(full).sound, (file.name, i)
        file.write_bytes(raw)


def test_cutting_acknowledged_bytes_is_always_refused(full: Path) -> None:
    for file in (full, head_of(full)):
        raw = file.read_bytes()
        for length in range(len(raw)):
            file.write_bytes(raw[:length])
            with pytest.raises(LedgerDamaged):
                Ledger.open(full)
        file.write_bytes(raw)
    head_of(full).unlink()
    with pytest.raises(LedgerDamaged, match="head is missing"):
        Ledger.open(full)


@pytest.mark.parametrize(
    "shuffle",
    [
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [*lines[:2], lines[1], *lines[2:]],
        lambda lines: [*lines[:3], *lines[4:]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: lines[1:],
        lambda lines: [*lines[:-1], lines[-1][:-1] + b" \n"],
    ],
    ids=["swapped", "doubled", "dropped", "appended", "headless", "respelled"],
)
def test_moving_whole_lines_is_refused(full: Path, shuffle: Callable) -> None:
    lines = full.read_bytes().splitlines(keepends=True)
    raw = b"".join(shuffle(lines))
    full.write_bytes(raw)
    with pytest.raises(LedgerDamaged):
        Ledger.open(full)
    last = json.loads(lines[-1])["hash"]
    head_of(full).write_bytes(line_of({"format": FORMAT, "length": len(raw)}, last))
    with pytest.raises(LedgerDamaged):  # also with a head made to fit
        Ledger.open(full)


def test_a_line_that_is_sound_in_itself_cannot_be_slipped_in(full: Path) -> None:
    lines = full.read_bytes().splitlines(keepends=True)
    other = json.loads(lines[1])
    previous = other.pop("previous")
    del other["hash"]
    lines[1] = line_of({**other, "node": "b"}, previous)
    assert len(lines[1]) == len(full.read_bytes().splitlines(keepends=True)[1])
    full.write_bytes(b"".join(lines))
    with pytest.raises(LedgerDamaged, match="line 3: number 2 here: a line is missing"):
        Ledger.open(full)


def test_another_history_of_the_same_length_does_not_fit_the_head(full: Path) -> None:
    head = head_of(full).read_bytes()
    forge(full, lambda records: records[0].update(task="tusk"))
    assert verify(full).sound
    head_of(full).write_bytes(head)
    with pytest.raises(LedgerDamaged, match="does not end where its head file says"):
        Ledger.open(full)


def change(i: int, **fields: object) -> Callable[[list[dict[str, Any]]], object]:
    return lambda records: records[i].update(fields)


@pytest.mark.parametrize(
    ("alter", "says"),
    [
        (change(0, format="tacit-ledger-2"), "this version reads tacit-ledger-1 only"),
        (change(0, colour="red"), "not those of a header"),
        (change(0, kind="reserve"), "kind 'reserve' where one of header"),
        (change(0, budget={"epsilon": 1.0}), "line 1"),
        (
            change(0, budget={"epsilon": 1.0, "delta": 1e-5, "pure": 0.5, "mu_squared": 9.0}),
            "does not keep delta",
        ),
        (change(1, charge={"kind": "renyi", "alpha": 2}), "unknown kind of charge 'renyi'"),
        (change(1, charge={"kind": "gaussian", "mu_squared": -1.0}), "mu_squared = -1"),
        (change(1, cost={"mu_squared": 0.001, "epsilon": 0.0}), "does not cover the charge"),
        (change(1, cost={"mu_squared": 0.03, "epsilon": 0.0}), "does not fit"),
        (change(1, cost=[0.01]), "line 2"),
        (change(1, kind="refund"), "kind 'refund'"),
        (change(1, sequence=2), "missing, doubled or moved"),
        (change(2, node="c"), "'c' has no open reservation"),
        (change(3, node="a"), "'a' is charged a second time"),
        (change(3, extra=1), "not those of a reserve"),
        (lambda records: records.pop(2), "missing, doubled or moved"),
    ],
)
def test_what_makes_no_sense_is_refused_even_with_perfect_hashes(
    full: Path, alter: Callable, says: str
) -> None:
    forge(full, alter)
    with pytest.raises(LedgerDamaged, match=says):
        Ledger.open(full)
    assert not verify(full).sound


def test_a_perfect_forgery_or_an_older_copy_is_noticed_by_the_head_noted_elsewhere(
    full: Path, tmp_path: Path
) -> None:
    old = copy_to(full, tmp_path / "old")
    with Ledger.open(full) as ledger:
        ledger.spend(TENTH, "c")
        noted = ledger.head
    with Ledger.open(full, head=noted) as ledger:
        ledger.spend(TENTH, "d")  # later lines keep earlier heads valid
    assert verify(full, head=noted).sound
    assert verify(old).sound and not verify(old, head=noted).sound
    with pytest.raises(LedgerDamaged, match="that was noted"):
        Ledger.open(old, head=noted)
    forge(full, lambda records: records[1].update(time="earlier"))
    assert verify(full).sound and not verify(full, head=noted).sound


def test_an_old_head_file_is_refused(full: Path, tmp_path: Path) -> None:
    old = copy_to(full, tmp_path / "old")
    with Ledger.open(full) as ledger:
        ledger.spend(TENTH, "c")  # two lines
    shutil.copy(head_of(old), head_of(full))
    with pytest.raises(LedgerDamaged, match="head file is an old copy"):
        Ledger.open(full)


# --- crashes ---------------------------------------------------------------------------------


def test_a_crash_before_the_head_loses_nothing_acknowledged(full: Path, tmp_path: Path) -> None:
    """Every prefix of the one line that may lie beyond the head."""
    with Ledger.open(full) as ledger:
        acknowledged, before = full.read_bytes(), ledger.as_json()
        head = head_of(full).read_bytes()
        ledger.reserve(TENTH, "c")
        after = ledger.as_json()
    line = full.read_bytes()[len(acknowledged) :]
    for cut in range(len(line) + 1):
        full.write_bytes(acknowledged + line[:cut])
        head_of(full).write_bytes(head)
        assert verify(full).unacknowledged_bytes == cut
        with Ledger.open(full) as ledger:
            assert ledger.as_json() == (after if cut == len(line) else before)
            assert full.read_bytes() == acknowledged + (line if cut == len(line) else b"")
            ledger.spend(TENTH, "c", replay=True)  # and it can go on
        assert verify(full).summary["records"] == before["records"] + 2
    full.write_bytes(acknowledged + line[:-2] + b"\n")
    head_of(full).write_bytes(head)
    with pytest.raises(LedgerDamaged):  # a whole line that no append can have left
        Ledger.open(full)


def test_every_append_is_durable_before_it_is_acknowledged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is synced before the head names it, the head before it is moved, then the folder."""
    calls: list[str] = []

    def spy(name: str) -> None:
        real = getattr(os, name)

        def call(*args: Any) -> Any:
            inode = os.fstat(args[0]).st_ino if name != "replace" else None
            calls.append(f"{name} {names.get(inode, 'head')}")
            return real(*args)

        monkeypatch.setattr(os, name, call)

    with create(path) as ledger:
        names = {path.stat().st_ino: "line", path.parent.stat().st_ino: "folder"}
        for name in ("pwrite", "fsync", "replace"):
            spy(name)
        ledger.reserve(TENTH, "a")
    assert calls == ["pwrite line", "fsync line", "fsync head", "replace head", "fsync folder"]


class Crash(BaseException):
    pass


def test_a_crash_at_any_system_call_loses_nothing_acknowledged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(path).close()
    expected: dict[str, bool] = {}
    for name in ("pwrite", "fsync", "replace"):
        real = getattr(os, name)
        for nth in range(1, 7):
            calls = iter(range(1, 100))

            def dying(*args: Any, name=name, real=real, nth=nth, calls=calls) -> Any:
                if next(calls) == nth:
                    if name == "pwrite":
                        real(args[0], args[1][:7], args[2])  # half a line
                    raise Crash
                return real(*args)

            node = f"{name} {nth}"
            ledger = Ledger.open(path)
            with monkeypatch.context() as patch:
                patch.setattr(os, name, dying)
                try:
                    ledger.spend(GaussianCharge(1e-4), node)
                    expected[node] = True
                except Crash:
                    with pytest.raises(LedgerUnavailable, match="failed while writing"):
                        ledger.spend(GaussianCharge(1e-4), "next")
            ledger.close()
            with Ledger.open(path) as again:
                committed = {n for n, e in again.entries.items() if e.status == "committed"}
                assert set(expected) <= committed
                again.spend(GaussianCharge(1e-4), node, replay=True)
                expected[node] = True
    assert verify(path).summary["spent"]["mu_squared"] == pytest.approx(1e-4 * len(expected))


def test_an_interrupt_after_the_write_leaves_the_ledger_to_be_reopened(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = create(path)
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr("tacit.privacy.book.Book.read", mock.Mock(side_effect=Crash))
        ledger.reserve(TENTH, "a")
    with pytest.raises(LedgerUnavailable, match="failed while writing"):
        ledger.commit("a")
    ledger.close()
    with Ledger.open(path) as ledger:
        assert ledger.entries["a"].status == "reserved"


def test_a_full_disk_is_reported_and_survived(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    ledger = create(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full_disk)
        with pytest.raises(LedgerUnavailable, match="No space left on device"):
            ledger.spend(TENTH, "a")
    with pytest.raises(LedgerUnavailable, match="failed while writing"):
        ledger.spend(TENTH, "a")
    ledger.close()
    with Ledger.open(path) as ledger:
        assert ledger.spend(TENTH, "a").sequence == 2


APPENDER = """
import itertools, sys
from tacit.privacy.charges import GaussianCharge
from tacit.privacy.ledger import Ledger
with Ledger.open(sys.argv[1]) as ledger:
    start = len(ledger.entries)
    for i in itertools.count(start):
        print(ledger.spend(GaussianCharge(1e-9), f"node {i}", replay=True).node, flush=True)
"""


def test_a_killed_process_has_kept_every_acknowledged_charge(path: Path) -> None:
    create(path).close()
    acknowledged: set[str] = set()
    for lines in (1, 4, 9):
        with subprocess.Popen(
            [sys.executable, "-c", APPENDER, str(path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            acknowledged |= {process.stdout.readline().strip() for _ in range(lines)}
            process.send_signal(signal.SIGKILL)
            acknowledged |= {line.strip() for line in process.stdout if line.endswith("\n")}
        assert process.returncode == -signal.SIGKILL
        with Ledger.open(path) as ledger:
            committed = {n for n, entry in ledger.entries.items() if entry.status == "committed"}
        assert acknowledged <= committed and len(committed) <= len(acknowledged) + 3


# --- any order of calls ----------------------------------------------------------------------

COIN = FiniteCharge((math.log(0.6), math.log(0.4)), (math.log(0.4), math.log(0.6)))
ASKED = st.one_of(
    st.floats(1e-4, 0.2).map(PureCharge),
    st.floats(1e-6, 0.01).map(GaussianCharge),
    st.builds(CopiesCharge, st.just(PureCharge(0.003)), st.integers(1, 9)),
    st.sampled_from([COIN, TENTH, PureCharge(5e-324), GaussianCharge(0.0)]),
)


class Life(RuleBasedStateMachine):
    """A ledger through any sequence of requests, restarts and torn appends."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = mock.patch.object(os, "fsync")
        self.patch.start()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger"
        self.ledger = create(self.path)
        self.status: dict[str, tuple[str, Charge]] = {}
        self.closed = False
        self.made = 0

    def teardown(self) -> None:
        self.ledger.close()
        self.folder.cleanup()
        self.patch.stop()
        charges = [charge for _, charge in self.status.values()]
        slack = 1e-3 * len(charges)  # the grid on which losses are composed rounds up
        assert total(charges).delta(BUDGET.epsilon + slack) <= BUDGET.delta

    def ask(self, call: Callable[[Charge, str], object], charge: Charge, outcome: str) -> None:
        self.made += 1
        node, admitted = f"node {self.made}", self.ledger.filter.admits([charge])
        try:
            call(charge, node)
        except BudgetExhausted as refusal:
            assert self.closed or not admitted
            assert not (refusal.spent + refusal.reserved + refusal.asked).within(BUDGET.caps) or (
                self.closed
            )
            self.closed = True
        else:
            assert admitted and not self.closed
            self.status[node] = (outcome, charge)

    @rule(charge=ASKED)
    def reserve(self, charge: Charge) -> None:
        self.ask(self.ledger.reserve, charge, "reserved")

    @rule(charge=ASKED)
    def spend(self, charge: Charge) -> None:
        self.ask(self.ledger.spend, charge, "committed")

    def held(self) -> list[str]:
        return [node for node, (outcome, _) in self.status.items() if outcome == "reserved"]

    @precondition(held)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.held()))
        self.ledger.commit(node)
        self.status[node] = ("committed", self.status[node][1])

    @precondition(held)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.held()))
        self.ledger.cancel(node)
        del self.status[node]

    @rule(torn=st.sampled_from([b"", b"{", b'{"charge":{"kind":"pure"']))
    def restart(self, torn: bytes) -> None:
        before, entries = self.ledger.as_json(), self.ledger.entries
        self.ledger.close()
        self.path.write_bytes(self.path.read_bytes() + torn)
        self.ledger = Ledger.open(self.path, task="task", head=before["head"])
        assert self.ledger.as_json() == before and self.ledger.entries == entries

    @invariant()
    def the_ledger_agrees(self) -> None:
        filter, entries = self.ledger.filter, self.ledger.entries
        assert {n: (e.status, e.charge) for n, e in entries.items()} == self.status
        assert filter.closed == self.closed
        for outcome, amount in (("committed", filter.spent), ("reserved", filter.reserved)):
            assert amount == sum((e.cost for e in entries.values() if e.status == outcome), Cost())
        assert (filter.spent + filter.reserved).within(BUDGET.caps)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
