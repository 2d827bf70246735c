"""The book of a ledger: what its lines say, and the moves that add one. Where they are kept is not.

The lines are the same in a file (``ledger.py``) and in the service's database: hash-chained JSON,
one canonical spelling.
"""

from __future__ import annotations

import copy
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal

from tacit.errors import InvalidInput, TacitError
from tacit.privacy.charges import Charge, charge_from_json, rounded_down
from tacit.privacy.filter import Budget, BudgetExhausted, Cost, PrivacyFilter, Reservation
from tacit.statistics.base import Relation
from tacit.validate import choice, integer

FORMAT = "tacit-ledger-1"
START = "0" * 64  # what stands for the line before the header
_ALWAYS = {"sequence", "kind", "time", "previous", "hash"}
FIELDS = {
    "header": {"format", "budget", "unit", "relation", "participations", "task"},
    "reserve": {"node", "charge", "cost"},
    "commit": {"node"},
    "cancel": {"node"},
    "close": {"node", "charge", "cost"},
}


class LedgerDamaged(TacitError):
    """The files are not what was written: changed, cut, reordered, or of an unknown kind."""


def check_line(
    line: Mapping[str, Any], sequence: int, previous: str, kinds: tuple[str, ...]
) -> None:
    """Whether a line that is sound in itself may stand here."""
    kind = line.get("kind")
    if kind not in kinds:
        raise InvalidInput(f"kind {kind!r} where one of {', '.join(kinds)} must be")
    if kind == "header" and line.get("format") != FORMAT:
        raise InvalidInput(f"format {line.get('format')!r}; this version reads {FORMAT} only")
    if set(line) != _ALWAYS | FIELDS[kind]:
        raise InvalidInput(f"fields {', '.join(sorted(line))} are not those of a {kind}")
    if line["sequence"] != sequence or line["previous"] != previous:
        raise InvalidInput(f"number {line['sequence']} here: a line is missing, doubled or moved")


def line_bytes(data: Mapping[str, Any]) -> bytes:
    """The one spelling of a line."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii") + b"\n"


def seal(content: Mapping[str, Any], previous: str) -> dict[str, Any]:
    """The content with the hash of the line before and its own."""
    linked = {**content, "previous": previous}
    return {**linked, "hash": hashlib.sha256(line_bytes(linked)).hexdigest()}


def parse_line(line: bytes) -> dict[str, Any]:
    """A whole line as it was written, and no other spelling of it."""
    try:
        data = json.loads(line.decode("ascii"))
        canonical = isinstance(data, dict) and line_bytes(data) == line
    except (ValueError, RecursionError):
        canonical = False
    if not canonical:
        raise InvalidInput("not a line as this ledger writes them: it was changed or cut")
    content = {name: value for name, value in data.items() if name not in ("hash", "previous")}
    if data != seal(content, data.get("previous", "")):
        raise InvalidInput("the content does not match its hash: it was changed")
    return dict(data)


class AlreadyCharged(TacitError):
    """The node was charged before; a noisy value once released is never drawn again."""


@dataclass(frozen=True)
class ChargedNode:
    """The state of one node: what it was charged, and the number of the latest line about it."""

    node: str
    charge: Charge
    cost: Cost
    status: Literal["reserved", "committed"]
    sequence: int


class LedgerState:
    """What the lines say. Live and after a restart, the state is made by reading them."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        check_line(header, 0, START, ("header",))
        self.header = header
        self.filter = PrivacyFilter(Budget.from_json(header["budget"]))
        self.entries: dict[str, ChargedNode] = {}
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
            self.entries[node] = ChargedNode(node, charge, cost, "reserved", sequence)
        elif kind == "close":
            self.filter.close()
            self.closed = True
        elif node not in self.held:
            raise InvalidInput(f"node {node!r} has no open reservation")
        elif kind == "commit":
            self.filter.commit(self.held.pop(node))
            reserved = self.entries[node]
            self.entries[node] = replace(reserved, status="committed", sequence=sequence)
        else:
            self.filter.cancel(self.held.pop(node))
            del self.entries[node]
        self.hashes.append(line["hash"])

    def as_json(self) -> dict[str, Any]:
        """Header, amounts and head as plain values."""
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


def header(
    budget: Budget, task: str, unit: str, relation: str, participations: int
) -> dict[str, Any]:
    """The first line of a ledger, sealed."""
    content = {
        "format": FORMAT,
        "budget": budget.to_json(),
        "unit": choice(unit, "unit", ("user", "participation")),
        "relation": choice(relation, "relation", [r.value for r in Relation]),
        "participations": integer(participations, "participations", low=1),
        "task": printable(task, "task"),
    }
    return seal({**content, "sequence": 0, "kind": "header", "time": None}, START)


def read_book(lines: Iterable[bytes], name: str) -> LedgerState:
    """The book that these lines make; ``name`` says in errors where they were."""
    book: LedgerState | None = None
    for i, line in enumerate(lines, start=1):
        try:
            if book is None:
                book = LedgerState(parse_line(line))
            else:
                book.read(parse_line(line))
        except (InvalidInput, KeyError, TypeError) as error:
            raise LedgerDamaged(f"{name}, line {i}: {error}") from error
    if book is None:
        raise LedgerDamaged(f"{name} has no lines")
    return book


class LedgerWriter(ABC):
    """The only way to spend from a budget that must survive a restart.

    Order for the caller, per node: look whether its value is stored already and use it; else
    :meth:`spend`; draw the noise; store the value durably; release it. After a crash in between,
    ``spend(..., replay=True)`` returns the earlier entry without charging again.
    """

    _book: LedgerState
    _clock: Callable[[], str] | None

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """Nobody else adds a line meanwhile, and the book is up to date. May be entered twice."""

    @abstractmethod
    def _store(self, record: Mapping[str, Any]) -> None:
        """Make a line durable, or see to it that it is before :meth:`_writing` is left."""

    def spend(self, charge: Charge, node: str, *, replay: bool = False) -> ChargedNode:
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

    def reserve(self, charge: Charge, node: str) -> ChargedNode:
        """Hold budget for a node. Refused, and closed for good, if it would overspend."""
        with self._writing():
            printable(node, "node")
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

    def commit(self, node: str) -> ChargedNode:
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
    def entries(self) -> Mapping[str, ChargedNode]:
        """Every node that is reserved or committed."""
        return dict(self._book.entries)

    def as_json(self) -> dict[str, Any]:
        """Header, amounts and head as plain values."""
        return self._book.as_json()

    def _settle(self, kind: str, node: str) -> None:
        if node not in self._book.held:
            state = "committed already" if node in self._book.entries else "not reserved"
            raise AlreadyCharged(f"cannot {kind} node {node!r}: it is {state}")
        self._append(kind, node)

    def _append(self, kind: str, node: str, **amounts: Charge | Cost) -> None:
        time = None if self._clock is None else printable(self._clock(), "time")
        record = {"sequence": len(self._book.hashes), "kind": kind, "time": time, "node": node}
        record |= {name: amount.to_json() for name, amount in amounts.items()}
        sealed = seal(record, self.head)
        self._store(sealed)
        self._book.read(sealed)


def printable(value: object, what: str) -> str:
    """A short printable text."""
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise InvalidInput(f"{what} = {value!r}, but it must be 1 to 200 printable characters")
    return value
