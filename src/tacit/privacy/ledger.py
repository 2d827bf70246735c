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
import copy
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from tacit.errors import InvalidInput, TacitError
from tacit.privacy.chain import (
    FIELDS,
    FORMAT,
    START,
    LedgerDamaged,
    LedgerUnavailable,
    check_line,
    head_path,
    line_bytes,
    locked,
    parse_line,
    read_head,
    seal,
    write_head,
)
from tacit.privacy.charges import Charge, charge_from_json
from tacit.privacy.decimals import rounded_down
from tacit.privacy.filter import Budget, BudgetExhausted, Cost, PrivacyFilter, Reservation
from tacit.statistics.base import Relation
from tacit.validate import choice, integer


class AlreadyCharged(TacitError):
    """The node was charged before; a noisy value once released is never drawn again."""


@dataclass(frozen=True)
class Entry:
    """The state of one node: what it was charged, and the number of the latest line about it."""

    node: str
    charge: Charge
    cost: Cost
    status: Literal["reserved", "committed"]
    sequence: int


class _Book:
    """What the lines say. Live and after a restart, the state is made by reading them."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        check_line(header, 0, START, ("header",))
        self.header = header
        self.filter = PrivacyFilter(Budget.from_json(header["budget"]))
        self.entries: dict[str, Entry] = {}
        self.hashes = [str(header["hash"])]
        self.closed = False
        self.held: dict[str, Reservation] = {}

    def read(self, line: Mapping[str, Any]) -> None:
        """Take in the next line, or refuse one that cannot follow."""
        check_line(
            line, len(self.hashes), self.hashes[-1], ("reserve", "commit", "cancel", "close")
        )
        node, kind, sequence = line["node"], line["kind"], line["sequence"]
        if kind == "reserve":
            if node in self.entries:
                raise InvalidInput(f"node {node!r} is charged a second time")
            charge, cost = charge_from_json(line["charge"]), Cost.from_json(line["cost"])
            self.held[node] = self.filter.restore(charge, cost)
            self.entries[node] = Entry(node, charge, cost, "reserved", sequence)
        elif kind == "close":
            self.filter.close()
            self.closed = True
        elif node not in self.held:
            raise InvalidInput(f"node {node!r} has no open reservation")
        elif kind == "commit":
            self.filter.commit(self.held.pop(node))
            old = self.entries[node]
            self.entries[node] = Entry(node, old.charge, old.cost, "committed", sequence)
        else:
            self.filter.cancel(self.held.pop(node))
            del self.entries[node]
        self.hashes.append(line["hash"])

    def as_json(self) -> dict[str, Any]:
        remaining = self.filter.remaining
        return {
            **{name: self.header[name] for name in sorted(FIELDS["header"])},
            "records": len(self.hashes) - 1,
            "spent": self.filter.spent.to_json(),
            "reserved": self.filter.reserved.to_json(),
            "remaining": {name: rounded_down(x) for name, x in vars(remaining).items()},
            "closed": self.filter.closed,
            "head": self.hashes[-1],
        }


class Ledger:
    """The only way to spend from a budget that must survive a restart.

    Order for the caller, per node: look whether its value is stored already and use it; else
    :meth:`spend`; draw the noise; store the value durably; release it. After a crash in between,
    ``spend(..., replay=True)`` returns the earlier entry without charging again.
    """

    def __init__(
        self, path: Path, fd: int, book: _Book, length: int, clock: Callable[[], str] | None
    ) -> None:
        self._path, self._fd, self._book, self._length = path, fd, book, length
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
                all of them: use ``CopiesCharge`` or ``grouped`` where there are several.
            clock: makes the time stamps; without one there are none.
        """
        path = Path(path)
        header = {
            "format": FORMAT,
            "budget": budget.to_json(),
            "unit": choice(unit, "unit", ("user", "participation")),
            "relation": choice(relation, "relation", [r.value for r in Relation]),
            "participations": integer(participations, "participations", low=1),
            "task": _name(task, "task"),
        }
        if head_path(path).exists():
            raise InvalidInput(f"{head_path(path).name} exists: a ledger was here; open that one")
        book = _Book(seal({**header, "sequence": 0, "kind": "header", "time": None}, START))
        with contextlib.ExitStack() as failed:
            failed.callback(os.close, fd := locked(path, os.O_CREAT | os.O_EXCL))
            ledger = cls(path, fd, book, 0, clock)
            ledger._write(book.header)
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
            failed.callback(os.close, fd := locked(path, 0))
            book, length, tail = _load(path, head)
            if task is not None and task != book.header["task"]:
                raise InvalidInput(f"{path.name} is the ledger of another task")
            ledger = cls(path, fd, book, length, clock)
            ledger._recover(tail)
            failed.pop_all()
        return ledger

    def spend(self, charge: Charge, node: str, *, replay: bool = False) -> Entry:
        """Charge a node for good. When this returns, its noise may be drawn, once.

        With ``replay``, a node that was committed with the same charge before is not charged again
        and its entry is returned: for a caller that crashed before it stored a value.
        """
        with self._writing():
            earlier = self._book.entries.get(node)
            if not (replay and earlier is not None and earlier.charge == charge):
                self.reserve(charge, node)
            elif earlier.status == "committed":
                return earlier
            return self.commit(node)

    def reserve(self, charge: Charge, node: str) -> Entry:
        """Hold budget for a node. Refused, and closed for good, if it would overspend."""
        with self._writing():
            _name(node, "node")
            if not isinstance(charge, Charge):
                raise InvalidInput(f"charge = {charge!r}, but it must be a charge")
            earlier = self._book.entries.get(node)
            if earlier is not None:
                raise AlreadyCharged(
                    f"node {node!r} is {earlier.status} already, and a value once released is "
                    "never drawn again: use the stored one, or, where a crash left none, spend the "
                    "same charge with replay=True"
                )
            try:
                cost = self._book.filter.price(charge)
            except BudgetExhausted as refusal:
                if not self._book.closed:
                    self._append("close", node, charge=charge, cost=refusal.asked)
                raise
            self._append("reserve", node, charge=charge, cost=cost)
            return self._book.entries[node]

    def commit(self, node: str) -> Entry:
        """Spend what is reserved for a node. When this returns, its noise may be drawn, once."""
        with self._writing():
            self._settle("commit", node)
            return self._book.entries[node]

    def cancel(self, node: str) -> None:
        """Give back a reservation for which no noise was drawn."""
        with self._writing():
            self._settle("cancel", node)

    @property
    def filter(self) -> PrivacyFilter:
        """A copy of the filter as it stands: it answers every question and spends nothing."""
        return copy.deepcopy(self._book.filter)

    @property
    def head(self) -> str:
        """The hash of the latest line: note it elsewhere to notice a forged or restored ledger."""
        return self._book.hashes[-1]

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every node that is reserved or committed."""
        return dict(self._book.entries)

    def as_json(self) -> dict[str, Any]:
        """Header, amounts and head as plain values."""
        return self._book.as_json()

    def close(self) -> None:
        """Let go of the file, so that another process may open it. The budget stays as it is."""
        with self._thread:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd, self._unusable = -1, "was closed"

    def __enter__(self) -> Self:
        return self

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

    def _settle(self, kind: str, node: str) -> None:
        if node not in self._book.held:
            state = "committed already" if node in self._book.entries else "not reserved"
            raise AlreadyCharged(f"cannot {kind} node {node!r}: it is {state}")
        self._append(kind, node)

    def _append(self, kind: str, node: str, **amounts: Charge | Cost) -> None:
        time = None if self._clock is None else _name(self._clock(), "time")
        record = {"sequence": len(self._book.hashes), "kind": kind, "time": time, "node": node}
        record |= {name: amount.to_json() for name, amount in amounts.items()}
        sealed = seal(record, self.head)
        self._unusable = "failed while writing, so what is on disk is not known here"
        self._write(sealed)
        self._book.read(sealed)
        self._unusable = ""

    def _write(self, record: Mapping[str, Any]) -> None:
        """The line, then the head; both durable before this returns."""
        line = line_bytes(record)
        try:
            done = 0
            while done < len(line):
                done += os.pwrite(self._fd, line[done:], self._length + done)
            os.fsync(self._fd)
            write_head(self._path, self._length + len(line), record["hash"])
        except OSError as error:
            why = f"{self._path.name} could not be written ({error.strerror})"
            raise LedgerUnavailable(f"{why}; open it again once that is solved") from error
        self._length += len(line)

    def _recover(self, tail: bytes) -> None:
        """Finish or drop the one append that a crash interrupted before it was acknowledged."""
        if tail.endswith(b"\n"):
            self._write(parse_line(tail))
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


def _load(path: Path, witness: str | None) -> tuple[_Book, int, bytes]:
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
    book = None
    for i, line in enumerate([*lines, *pending], start=1):
        try:
            if book is None:
                book = _Book(parse_line(line))
            else:
                book.read(parse_line(line))
        except (InvalidInput, KeyError, TypeError) as error:
            raise LedgerDamaged(f"{path.name}, line {i}: {error}") from error
    if book is None or book.hashes[len(lines) - 1] != last:
        raise LedgerDamaged(f"{path.name} does not end where its head file says")
    if witness is not None and witness not in book.hashes:
        raise LedgerDamaged(f"{path.name} does not contain the head {witness} that was noted")
    return book, length, tail


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise InvalidInput(f"{what} = {value!r}, but it must be 1 to 200 printable characters")
    return value
