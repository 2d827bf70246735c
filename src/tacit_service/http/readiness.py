"""Whether the service does its work, and if not, why: in words, for every process that serves it.

Trouble of the planner is written to the database, so that all workers show it; where the database
itself is the trouble each of them finds out alone. A change is logged once, not at every try.
Nothing here depends on what a report says.
"""

from __future__ import annotations

import contextlib
import errno
import json
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

import sqlalchemy as sa

from tacit.errors import TacitError
from tacit_service.log_lines import event
from tacit_service.responses import Paused, Trouble
from tacit_service.storage import database as db
from tacit_service.storage.database import Store

ROW = "trouble"
"""The row of table ``meta`` that holds the planner's trouble; empty while it works."""
REMEMBERED_SECONDS = 3.0
"""How long one failed upload speaks against the service if no other upload comes to prove it."""
NOBODY = Trouble("no_planner", "nobody plans: reports are kept, but no new policy will appear")
LEDGER = Trouble("ledger", "the ledger of charges is damaged: stop the service, and restore it")


def place(error: BaseException) -> str:
    """Where in our own code it happened; the text of an exception may hold what was handled."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "tacit" in frame.filename] or list(frames)
    return f"{ours[-1].name}, line {ours[-1].lineno}" if ours else "unknown"


def trouble_of(error: Exception) -> Trouble:
    """An error as a word and a sentence. Only our own sentences are repeated."""
    if isinstance(error, TacitError):
        return Trouble(getattr(error, "reason", "planner"), str(error))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Trouble("disk", "the disk is full: make room; nothing that was acknowledged is lost")
    if isinstance(error, OSError):
        why = error.strerror or type(error).__name__
        return Trouble("files", f"a file of the service cannot be read or written: {why}")
    return Trouble(
        "exception",
        f"the planner failed ({type(error).__name__} in {place(error)}): this is a defect; reports "
        "are kept, and it tries again",
    )


@dataclass(eq=False)
class Readiness:
    """What one process knows about itself and about the planner, wherever that runs.

    Attributes:
        task: what log lines call the task.
        failed: told of every failure of the planner, to count it.
    """

    _store: Store
    _steady: Callable[[], float]
    task: str = ""
    failed: Callable[[], None] = lambda: None
    _planner: Trouble | None = None
    _uploads: Trouble | None = None
    _uploads_at: float = 0.0
    _written: str | None = field(default=None, repr=False)

    def planner_failed(self, error: Exception) -> None:
        """Note it, tell all processes, and log it if it is something new."""
        trouble = trouble_of(error)
        self.failed()
        if trouble != self._planner:
            self._log("planner_failed", trouble.sentence, level="error", reason=trouble.reason)
        self._planner = trouble
        self._tell(json.dumps(asdict(trouble)))

    def planner_works(self, leading: bool) -> None:
        """One round went well; whoever leads says so to all."""
        if self._planner is not None:
            self._log("planner_recovered", "the planner works again")
        self._planner = None
        if leading:
            self._tell("")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Around the transaction of uploads: what goes wrong in it is shown."""
        try:
            yield
        except Paused:
            raise
        except Exception as error:
            trouble = trouble_of(error)
            if self._uploads is None or trouble.reason != self._uploads.reason:
                self._log("uploads_failed", trouble.sentence, level="error", reason=trouble.reason)
            self._uploads, self._uploads_at = trouble, self._steady()
            raise
        if self._uploads is not None:
            self._log("uploads_recovered", "uploads are written again")
            self._uploads = None

    def trouble(self, connection: sa.Connection) -> Trouble | None:
        """What is wrong now, as far as this process and the database know."""
        if self._planner is not None:
            return self._planner
        fresh = self._steady() - self._uploads_at < REMEMBERED_SECONDS
        if self._uploads is not None and fresh:
            return self._uploads
        value = db.read_meta(connection, ROW)
        return Trouble(**json.loads(value)) if value else None

    def _log(self, name: str, sentence: str, **more: str) -> None:
        event(name, sentence, task=self.task, **more)

    def _tell(self, value: str) -> None:
        """Write it down if it changed; a database that cannot be written shows itself."""
        if value == self._written:
            return
        with contextlib.suppress(TacitError, sa.exc.SQLAlchemyError):
            with self._store.write() as connection:
                db.put_meta(connection, ROW, value)
            self._written = value
