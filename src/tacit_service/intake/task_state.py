"""Open, paused or closed: what its operator decided about a task, kept in its database.

A paused task stands still: no report is counted and no policy planned, devices keep their reports,
and the time of the pause makes none of them too old. A closed one takes no report any more: batches
that are full still lead to policies, and the rest is deleted.

Whoever counts a report looks here after it has locked the task's count, and whoever changes the
state holds that lock: no report is counted after the change.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from tacit_service.log_lines import event
from tacit_service.responses import Paused, TaskClosed
from tacit_service.storage import database as db
from tacit_service.storage.database import Store

Word = Literal["open", "paused", "closed"]
SAID: dict[Word, str] = {
    "open": "the task takes reports",
    "paused": "the task is paused: devices keep their reports, and nothing is planned",
    "closed": "the task is closed: it takes no report any more",
}
PAUSED = "this task is paused by its operator"


@dataclass(frozen=True)
class TaskState:
    """What was decided last, and every pause there was: (from, to) in unix time, by the server."""

    word: Word = "open"
    pauses: tuple[tuple[float, float], ...] = ()

    def worked(self, time: float) -> float:
        """A time with the pauses before it taken out; what is too late is judged by this clock."""
        return time - sum(max(0.0, min(time, end) - start) for start, end in self.pauses)


@functools.lru_cache(maxsize=64)
def parse(value: str | None) -> TaskState:
    """The state from its row; a database without one is open."""
    if not value:
        return TaskState()
    read = json.loads(value)
    pauses = tuple((start, math.inf if end is None else end) for start, end in read["pauses"])
    return TaskState(read["word"], pauses)


def read(connection: sa.Connection) -> TaskState:
    """The state of now."""
    return parse(db.read_meta(connection, db.STATE))


def going(connection: sa.Connection) -> TaskState:
    """The same; refused while the task is paused."""
    state = read(connection)
    if state.word == "paused":
        raise Paused(PAUSED)
    return state


def change(store: Store, word: Word, now: float, task: str) -> TaskState:
    """Pause, open again or close; what is so already stays so. A closed task stays closed."""
    with store.write() as connection:
        db.progress(connection, lock=True)
        was = read(connection)
        if was.word == word:
            return was
        if was.word == "closed":
            raise TaskClosed("the task is closed, and stays so: begin a new one")
        pauses = [(start, min(end, now)) for start, end in was.pauses]
        if word == "paused":
            pauses.append((now, math.inf))
        row = {"word": word, "pauses": [(a, None if b == math.inf else b) for a, b in pauses]}
        db.put_meta(connection, db.STATE, json.dumps(row))
    event("state", SAID[word], task=task, state=word)
    return TaskState(word, tuple(pauses))
