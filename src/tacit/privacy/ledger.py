"""The ledger: every charge on disk, in order, before its noise is drawn.

One JSON object per line, the header first. Every line carries the SHA-256 of its own content, which
includes the hash of the line before, and has one canonical spelling: changing, moving, doubling or
dropping any byte shows. Format rules: a field never changes its meaning, anything new gets a new
format name, and what is not known is refused.

Beside the ledger lies a small head file: how many bytes, up to which hash, were acknowledged. An
append is (1) the line written and fsynced, (2) the head replaced atomically and fsynced, (3) the
call returns. So bytes beyond the head were never acknowledged to anybody, they are one line at
most, and no noise was drawn for it; a ledger shorter than its head has lost something.

The hashes are not signatures. Whoever may write both files can also forge both consistently, or
bring back older copies of both: note :attr:`Ledger.head` elsewhere and pass it when opening to
notice. Node names, times and charges are public and must not depend on anybody's data.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from tacit.errors import InvalidInput, TacitError
from tacit.privacy import ledger_lines
from tacit.privacy.charges import Charge
from tacit.privacy.filter import Budget, Cost
from tacit.privacy.ledger_lines import AlreadyCharged, ChargedNode, LedgerDamaged, LedgerState
from tacit.util.files import lock_of, sync_folder

__all__ = ["AlreadyCharged", "ChargedNode", "Ledger", "Verification", "verify"]


class LedgerUnavailable(TacitError):
    """The ledger cannot be used from here, now: locked, closed, forked, or a write failed."""


class Ledger(ledger_lines.LedgerWriter, contextlib.AbstractContextManager["Ledger"]):
    """A ledger in a file; see :class:`~tacit.privacy.ledger_lines.LedgerWriter` for its moves."""

    def __init__(
        self,
        path: Path,
        opened: tuple[int, FileLock],
        book: LedgerState,
        length: int,
        clock: Callable[[], str] | None,
    ) -> None:
        self._path, self._book, self._length = path, book, length
        self._fd, self._lock = opened
        self._clock = clock
        self._pid = os.getpid()
        self._thread = threading.RLock()
        self._unusable = ""

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        budget: Budget,
        task: str,
        unit: str = "user",
        relation: str = "replace-one",
        participations: int = 1,
        clock: Callable[[], str] | None = None,
    ) -> Self:
        """Start a ledger where there is none.

        Args:
            path: the file; the head file gets ``.head`` added to its name.
            budget: what one unit may lose, over everything this ledger will ever admit.
            task: digest of the task; opening for another one can be refused.
            unit: "user", or "participation" where a person may come back unaccounted for.
            relation: which datasets must look alike.
            participations: how often one person may take part. A charge is what one unit pays for
                all of them: use ``CopiesCharge`` where each has noise of its own.
            clock: makes the time stamps; without one there are none.
        """
        path = Path(path)
        if head_path(path).exists():
            raise InvalidInput(f"{head_path(path).name} exists: a ledger was here; open that one")
        book = LedgerState(ledger_lines.header(budget, task, unit, relation, participations))
        with contextlib.ExitStack() as failed:
            failed.callback(let_go, *(opened := locked(path, os.O_CREAT | os.O_EXCL)))
            ledger = cls(path, opened, book, 0, clock)
            ledger._store(book.header)
            failed.pop_all()
        return ledger

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        task: str | None = None,
        head: str | None = None,
        clock: Callable[[], str] | None = None,
    ) -> Self:
        """Verify the whole ledger and go on where it stopped.

        Refused: a ledger of another ``task``, or without the ``head`` that was noted earlier.
        """
        path = Path(path)
        with contextlib.ExitStack() as failed:
            failed.callback(let_go, *(opened := locked(path, 0)))
            book, length, tail = _load(path, head)
            if task is not None and task != book.header["task"]:
                raise InvalidInput(f"{path.name} is the ledger of another task")
            ledger = cls(path, opened, book, length, clock)
            ledger._recover(tail)
            failed.pop_all()
        return ledger

    def close(self) -> None:
        """Let go of the file, so that another process may open it. The budget stays as it is."""
        with self._thread:
            if self._fd >= 0:
                let_go(self._fd, self._lock)
            self._fd, self._unusable = -1, "was closed"

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One thread at a time, in the process that opened the file, and never after a failure."""
        with self._thread:
            if self._unusable or os.getpid() != self._pid:
                why = self._unusable or "was opened by another process, before a fork"
                raise LedgerUnavailable(f"{self._path.name} {why}; open it again")
            yield

    def _append(self, kind: str, node: str, **amounts: Charge | Cost) -> None:
        self._unusable = "failed while writing, so what is on disk is not known here"
        super()._append(kind, node, **amounts)
        self._unusable = ""

    def _store(self, record: Mapping[str, Any]) -> None:
        """The line, then the head; both durable before this returns."""
        line = ledger_lines.line_bytes(record)
        try:
            done = os.lseek(self._fd, self._length, os.SEEK_SET) - self._length
            while done < len(line):
                done += os.write(self._fd, line[done:])
            os.fsync(self._fd)
            write_head(self._path, self._length + len(line), record["hash"])
        except OSError as error:
            why = f"{self._path.name} could not be written ({error.strerror})"
            raise LedgerUnavailable(f"{why}; open it again once that is solved") from error
        self._length += len(line)

    def _recover(self, tail: bytes) -> None:
        """Finish or drop the one append that a crash interrupted before it was acknowledged."""
        if tail.endswith(b"\n"):
            self._store(ledger_lines.parse_line(tail))
        elif tail:
            os.ftruncate(self._fd, self._length)
            os.fsync(self._fd)


@dataclass(frozen=True)
class Verification:
    """What :func:`verify` found; ``summary`` is what a sound ledger says."""

    sound: bool
    problem: str
    unacknowledged_bytes: int
    summary: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dict(vars(self))

    def __str__(self) -> str:
        if not self.sound:
            return f"DAMAGED: {self.problem}"
        says = self.summary
        lines = [
            f"Sound: {says['records']} records, head {says['head']}, task {says['task']}.",
            f"Budget per {says['unit']} ({says['relation']}, {says['participations']} "
            f"participation(s)): {Budget.from_json(says['budget'])}.",
            f"Spent: {Cost.from_json(says['spent'])}.",
            f"Reserved: {Cost.from_json(says['reserved'])}.",
            "Closed for good." if says["closed"] else "Open.",
        ]
        if self.unacknowledged_bytes:
            lines.append(f"{self.unacknowledged_bytes} bytes of an unfinished append follow.")
        return "\n".join(lines)


def verify(path: str | Path, *, head: str | None = None) -> Verification:
    """Check a ledger without opening it for use; also while another process writes to it."""
    try:
        book, _, tail = _load(Path(path), head)
    except LedgerDamaged as damage:
        return Verification(False, str(damage), 0, {})
    return Verification(True, "", len(tail), book.as_json())


def _load(path: Path, witness: str | None) -> tuple[LedgerState, int, bytes]:
    """Read and verify both files: the book, its acknowledged length, and the bytes beyond.

    A whole line beyond is in the book: it was asked for, and counting it loses nothing.
    """
    length, last = read_head(path)
    raw = path.read_bytes() if path.exists() else b""
    if (length, last) != read_head(path):  # somebody is writing: what was there before is enough
        raw = raw[:length]
    if len(raw) < length:
        raise LedgerDamaged(
            f"{path.name} has {len(raw)} of {length} acknowledged bytes: it was cut"
        )
    lines, tail = raw[:length].splitlines(keepends=True), raw[length:]
    if b"\n" in tail[:-1]:
        raise LedgerDamaged(f"{path.name} has lines after its head: the head file is an old copy")
    pending = [tail] if tail.endswith(b"\n") else []
    book = ledger_lines.read_book([*lines, *pending], path.name)
    if book.hashes[len(lines) - 1] != last:
        raise LedgerDamaged(f"{path.name} does not end where its head file says")
    if witness is not None and witness not in book.hashes:
        raise LedgerDamaged(f"{path.name} does not contain the head {witness} that was noted")
    return book, length, tail


def head_path(path: Path) -> Path:
    """Where the head of a ledger lies."""
    return path.with_name(path.name + ".head")


def write_head(path: Path, length: int, last: str) -> None:
    """Replace the head in one step: after a crash there is the old one or the new one."""
    new = path.with_name(path.name + ".head.new")
    head = ledger_lines.seal({"format": ledger_lines.FORMAT, "length": length}, last)
    with open(new, "wb") as file:
        file.write(ledger_lines.line_bytes(head))
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, head_path(path))
    sync_folder(path.parent)


def read_head(path: Path) -> tuple[int, str]:
    """How many bytes were acknowledged, and the hash of the last line in them."""
    name = head_path(path).name
    try:
        head = ledger_lines.parse_line(head_path(path).read_bytes())
    except FileNotFoundError:
        raise LedgerDamaged(
            f"{name} is missing: it was removed, or creating the ledger was interrupted before "
            "anything could be charged (then delete the ledger and create it again)"
        ) from None
    except InvalidInput as error:
        raise LedgerDamaged(f"{name}: {error}") from error
    if (
        set(head) != {"format", "length", "previous", "hash"}
        or head["format"] != ledger_lines.FORMAT
    ):
        raise LedgerDamaged(f"{name} is not a head of format {ledger_lines.FORMAT}")
    return int(head["length"]), str(head["previous"])


def locked(path: Path, flags: int) -> tuple[int, FileLock]:
    """Open the file for this process alone."""
    lock = lock_of(path)
    try:
        if not flags and not path.exists():
            raise FileNotFoundError
        lock.acquire(timeout=0)
        return os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0) | flags, 0o644), lock
    except Timeout:
        raise LedgerUnavailable(f"{path.name} is open already, here or elsewhere") from None
    except OSError as error:
        lock.release()
        if isinstance(error, FileNotFoundError):
            raise InvalidInput(f"there is no ledger at {path.name}") from None
        if isinstance(error, FileExistsError):
            raise InvalidInput(f"{path.name} exists: open it, or choose another name") from None
        raise


def let_go(fd: int, lock: FileLock) -> None:
    """Close the file, then let others open it."""
    os.close(fd)
    lock.release()
