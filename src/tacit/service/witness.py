"""The witness: a small file outside the database that knows which noise was drawn last.

A database brought back from a backup has forgotten noise that was drawn after it was copied. To
draw again for the same node would let anybody average the noise away. The witness is advanced after
noise is stored and before anything made with it is published; a database that is behind it, or that
holds other noise for the same release, is refused. Back it up apart from the database, or not at
all: an old witness is refused as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tacit.service.answers import Refused


class Mark(NamedTuple):
    """Noise has been drawn for this many releases; the digest is of the last one as stored."""

    releases: int
    digest: str


START = Mark(0, "")


@dataclass(frozen=True)
class Witness:
    """The file of one task, and its judgement about a database."""

    _path: Path
    _task: str

    def read(self) -> Mark | None:
        """The mark in the file, None if there is no file."""
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            mark = Mark(int(data["releases"]), str(data["digest"]))
            task = data["task_id"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise Refused(
                f"the witness {self._path.name} cannot be read; put back its newest copy"
            ) from None
        if task != self._task:
            raise Refused(f"the witness {self._path.name} belongs to another task")
        return mark

    def check(self, stored: Mark) -> None:
        """Refuse a database that is not the newest one this witness has seen."""
        mark = self.read()
        if mark is None:
            raise Refused(
                f"the witness {self._path.name} is missing, so nobody can tell whether this "
                "database is the newest one: put the witness back, or begin a new task (another "
                "name, database and population)"
            )
        if mark.releases > stored.releases or (
            mark.releases == stored.releases and mark.digest != stored.digest
        ):
            raise Refused(
                f"this database was restored from before release {mark.releases}, whose noise was "
                "drawn already; drawing it again would let the noise be averaged away. Put back "
                "the newest copy of the database, or begin a new task (another name, database and "
                "population)"
            )
        if stored.releases > mark.releases + 1:
            raise Refused(
                f"the witness {self._path.name} is an old copy: it knows {mark.releases} releases, "
                f"the database {stored.releases}. Put back the newest witness"
            )

    def create(self) -> None:
        """The file of a new database; one that is there already must be as new."""
        with self._alone():
            if self.read() is None:
                self._write(START)
            self.check(START)

    def advance(self, stored: Mark) -> None:
        """Note the newest mark, durably, in one step."""
        with self._alone():
            self.check(stored)
            self._write(stored)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process writes meanwhile: its newer mark must not be overwritten."""
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
            os.fsync(folder)
        finally:
            os.close(folder)

    def _write(self, stored: Mark) -> None:
        content = {"task_id": self._task, "releases": stored.releases, "digest": stored.digest}
        new = self._path.with_name(self._path.name + ".new")
        with open(new, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)
