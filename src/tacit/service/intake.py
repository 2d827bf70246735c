"""Uploads: each report once, never one more than the population, durable before the answer.

Uploads that arrive together share one transaction. The order inside it (ids, count, tokens,
content) is the same everywhere, so that transactions of several workers on PostgreSQL cannot block
each other in a circle.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import sqlalchemy as sa

from tacit.errors import InvalidInput
from tacit.service import store as db
from tacit.service.acceptance import Acceptance
from tacit.service.answers import Outcome, Token
from tacit.service.deployment import Deployment
from tacit.service.errors import Unavailable
from tacit.service.store import Store

_DOUBTFUL = ("stale", "invalid", "refused")


@dataclass(slots=True, eq=False)
class Entry:
    """A report on its way: decoded, not yet decided."""

    name: str
    identity: bytes
    version: int
    payload: Any = field(repr=False, default=None)
    fault: Outcome | None = None
    outcome: Outcome | None = None

    def spoil(self, outcome: Any, detail: str) -> None:
        """Note what is wrong with it in itself."""
        self.fault = Outcome(self.name, outcome, None, detail)

    @contextlib.contextmanager
    def judged(self) -> Iterator[None]:
        """What is found wrong in the block is wrong with this report alone."""
        try:
            yield
        except InvalidInput as error:
            self.spoil("invalid", str(error))

    def decide(self, outcome: Any, reason: Any = None, detail: str | None = None) -> None:
        """Settle what becomes of it."""
        self.outcome = Outcome(self.name, outcome, reason, detail)


class Keeper(Protocol):
    """What a privacy model does with accepted reports, inside the transaction that counts them."""

    def keep(self, connection: sa.Connection, first: int, entries: list[Entry]) -> None:
        """Store entries, which are numbers ``first``, ``first + 1``, ... of the task."""


@dataclass(slots=True, eq=False)
class Upload:
    """What one client sent at once."""

    entries: list[Entry]
    token: Token | None


class _NotPlain(Exception):
    """Ends a transaction that has to be done carefully."""


class Intake:
    """Decides about uploads, one transaction for all that come together."""

    def __init__(
        self,
        deployment: Deployment,
        store: Store,
        keeper: Keeper,
        accepted: Acceptance,
        clock: Callable[[], float],
    ) -> None:
        self._deployment = deployment
        self._store = store
        self._keeper = keeper
        self._accepted = accepted
        self._clock = clock

    def settle(self, group: Sequence[Upload]) -> int:
        """Decide about every entry; durable when this returns. The newest version is returned.

        If the database broke the transaction off it is tried again: each try starts anew.
        """
        try:
            return self._commit(group)
        except Unavailable:
            return self._commit(group)

    def _commit(self, group: Sequence[Upload]) -> int:
        entries = [entry for upload in group for entry in upload.entries]
        for entry in entries:
            entry.outcome = entry.fault
        version = None
        if self._closed() is None:
            version = self._commit_plain(group, entries)
        return self._commit_carefully(group) if version is None else version

    def _commit_plain(self, group: Sequence[Upload], entries: list[Entry]) -> int | None:
        """The common case: everything is new, sound, current, and fits. None if it is not so."""
        ids = {entry.identity for entry in entries}
        if len(ids) < len(entries) or any(entry.fault is not None for entry in entries):
            return None
        try:
            with self._store.write() as connection:
                counted = db.count_all(connection, list(ids))
                if counted is None:
                    raise _NotPlain
                accepted, version = counted
                oldest = self._accepted.oldest(connection, version)
                if any(not oldest <= entry.version <= version for entry in entries):
                    raise _NotPlain
                if not self._use_all_tokens(connection, group):
                    raise _NotPlain
                self._keeper.keep(connection, accepted - len(entries), entries)
        except _NotPlain:
            return None
        for entry in entries:
            entry.decide("accepted")
        return version

    def _use_all_tokens(self, connection: sa.Connection, group: Sequence[Upload]) -> bool:
        if self._deployment.settings.population.tokens != "per-device":
            return True
        wanted: Counter[int] = Counter()
        for upload in group:
            assert upload.token is not None
            wanted[upload.token.id] += len(upload.entries)
        return db.use_all_tokens(connection, wanted, self._deployment.task.participations)

    def _commit_carefully(self, group: Sequence[Upload]) -> int:
        with self._store.write() as connection:
            now = db.progress(connection)
            waiting = self._judge(group, now, self._accepted.oldest(connection, now.version))
            fresh = db.insert_ids(connection, [e.identity for e in waiting]) if waiting else set()
            for entry in waiting:
                if entry.identity not in fresh:
                    entry.decide("duplicate")
            refused = self._use_tokens(connection, group)
            entries = [e for upload in group for e in upload.entries if e.outcome is None]
            if entries:
                first, room = db.admit(connection, len(entries))
                for entry in entries[room:]:
                    entry.decide("refused", "population_reached", self._full())
                refused += entries[room:]
                if room:
                    self._keeper.keep(connection, first, entries[:room])
            db.forget_ids(connection, [entry.identity for entry in refused])
            self._recognise(connection, group)
        for entry in entries:
            if entry.outcome is None:
                entry.decide("accepted")
        return now.version

    def _judge(self, group: Sequence[Upload], now: db.Progress, oldest: int) -> list[Entry]:
        """Settle what can be settled without the database; the first of equal ids goes on."""
        waiting: dict[bytes, Entry] = {}
        closed = self._closed()
        for entry in (entry for upload in group for entry in upload.entries):
            if entry.identity in waiting:
                entry.decide("duplicate")
            elif closed is not None:
                entry.decide("refused", *closed)
            elif now.accepted >= now.population:
                entry.decide("refused", "population_reached", self._full())
            elif entry.outcome is None and not oldest <= entry.version <= now.version:
                entry.decide("stale", None, stale(entry.version, now.version))
            elif entry.outcome is None:
                waiting[entry.identity] = entry
        return list(waiting.values())

    def _closed(self) -> tuple[str, str] | None:
        time, window = self._clock(), self._deployment.settings.window
        if window.opens is not None and time < window.opens:
            return "not_open", "this task does not take reports yet"
        if window.closes is not None and time >= window.closes:
            return "closed", "this task no longer takes reports"
        return None

    def _full(self) -> str:
        return f"all {self._deployment.task.users} reports of this task have arrived"

    def _use_tokens(self, connection: sa.Connection, group: Sequence[Upload]) -> list[Entry]:
        """Count reports against their device's token; those beyond are refused."""
        if self._deployment.settings.population.tokens != "per-device":
            return []
        db.progress(connection, lock=True)
        most = self._deployment.task.participations
        by_token: dict[int, list[Entry]] = {}
        for upload in group:
            assert upload.token is not None
            mine = by_token.setdefault(upload.token.id, [])
            mine += [entry for entry in upload.entries if entry.outcome is None]
        refused: list[Entry] = []
        for token, entries in sorted(by_token.items()):
            room = db.use_token(connection, token, len(entries), most) if entries else 0
            for entry in entries[room:]:
                entry.decide("refused", "token_spent", f"this token may send {most} report(s)")
            refused += entries[room:]
        return refused

    @staticmethod
    def _recognise(connection: sa.Connection, group: Sequence[Upload]) -> None:
        """A report that was accepted earlier is a duplicate, whatever else could be said of it."""
        doubtful = [
            entry
            for upload in group
            for entry in upload.entries
            if entry.outcome is not None and entry.outcome.outcome in _DOUBTFUL
        ]
        if doubtful:
            seen = db.known_ids(connection, [entry.identity for entry in doubtful])
            for entry in doubtful:
                if entry.identity in seen:
                    entry.decide("duplicate")


def stale(version: int, newest: int) -> str:
    """Why a report under this version is not taken."""
    if version > newest:
        return f"version {version} has not been published; the newest is {newest}"
    return f"reports under version {version} are no longer taken; fetch version {newest}"
