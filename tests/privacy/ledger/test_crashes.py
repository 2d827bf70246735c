"""Whatever goes down, no acknowledged charge is lost."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from privacy.ledger.files import TENTH, create, head_of
from tacit.privacy.charges import GaussianCharge
from tacit.privacy.ledger import (
    Ledger,
    LedgerDamaged,
    LedgerUnavailable,
    verify,
)


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
            assert name != "fsync" or os.fstat(args[0]).st_size, "synced before it was written"
            calls.append(f"{name} {names.get(inode, 'head')}")
            return real(*args)

        monkeypatch.setattr(os, name, call)

    with create(path) as ledger:
        names = {path.stat().st_ino: "line", path.parent.stat().st_ino: "folder"}
        for name in ("write", "fsync", "replace"):
            spy(name)
        ledger.reserve(TENTH, "a")
    assert calls == ["write line", "fsync line", "fsync head", "replace head", "fsync folder"]


class Crash(BaseException):
    pass


def test_a_crash_at_any_system_call_loses_nothing_acknowledged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(path).close()
    expected: dict[str, bool] = {}
    for name in ("write", "fsync", "replace"):
        real = getattr(os, name)
        for nth in range(1, 7):
            calls = iter(range(1, 100))

            def dying(*args: Any, name=name, real=real, nth=nth, calls=calls) -> Any:
                if next(calls) == nth:
                    if name == "write":
                        real(args[0], args[1][:7])  # half a line
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
        patch.setattr("tacit.privacy.ledger_lines.LedgerState.read", mock.Mock(side_effect=Crash))
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
        patch.setattr(os, "write", full_disk)
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
