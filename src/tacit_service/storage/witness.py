"""The witness: a small file outside the database that knows which noise was drawn, and for what.

A database brought back from a backup has forgotten noise that was drawn after it was copied. To
draw again for the same release would let anybody average the noise away, and to use the same noise
on other sums would reveal their difference. So before anything made with noise is published, the
witness notes two things about the release:

- a keyed digest of the noise and of the exact content that it was drawn for;
- the noise, sealed under a key made of the key file *and* that content (see ``vault.py``). It opens
  for the same content alone, so it tells nobody anything who does not know the exact sums already.

A restored database that comes to the same content gets the same noise, hence publishes the same
value again; one that comes to other content is refused. An old copy of the witness has forgotten
too: keep it on another disk than the database, and never restore it together with that.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tacit.util.files import lock_of, sync_folder
from tacit_service.responses import Refused

BEGIN_ANEW = "begin a new task (another name, database and population)"


class Mark(NamedTuple):
    """Noise has been drawn for this many releases; the digest is of the last one."""

    releases: int
    digest: str


class Drawn(NamedTuple):
    """What is known of one release: its digest, and its noise, sealed."""

    digest: str
    noise: bytes


START = Mark(0, "")


@dataclass(frozen=True)
class Seen:
    """What the file says."""

    mark: Mark
    drawn: Mapping[int, Drawn] = field(default_factory=dict)


@dataclass(frozen=True)
class Witness:
    """The file of one task, and its judgement about a database."""

    _path: Path
    _task: str

    def read(self) -> Seen:
        """What the file says; it is refused if it is missing or of another task."""
        seen = self._find()
        if seen is None:
            raise Refused(
                f"the witness {self._path.name} is missing, so nobody can tell whether this "
                f"database is the newest one: put the witness back, or {BEGIN_ANEW}"
            )
        return seen

    def _find(self) -> Seen | None:
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            mark = Mark(int(data["releases"]), str(data["digest"]))
            drawn = {
                int(release): Drawn(str(digest), bytes.fromhex(noise))
                for release, (digest, noise) in data.get("drawn", {}).items()
            }
            task = data["task_id"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise Refused(
                f"the witness {self._path.name} cannot be read; put back its newest copy"
            ) from None
        if task != self._task:
            raise Refused(f"the witness {self._path.name} belongs to another task")
        return Seen(mark, drawn)

    def check(self, stored: Mark) -> Seen:
        """Refuse a database that this witness cannot vouch for.

        One that is behind may go on where the witness knows every release that it has forgotten:
        it will be held to the same content.
        """
        seen = self.read()
        mark = seen.mark
        if stored.releases > mark.releases + 1:
            raise Refused(
                f"the witness {self._path.name} is an old copy: it knows {mark.releases} releases, "
                f"the database {stored.releases}. Put back the newest witness"
            )
        forgotten = range(stored.releases + 1, mark.releases + 1)
        if any(release not in seen.drawn for release in forgotten):
            raise self.turned_back(mark.releases)
        known = mark.digest if stored.releases == mark.releases else None
        if stored.releases in seen.drawn:
            known = seen.drawn[stored.releases].digest
        if known is not None and known != stored.digest:
            raise self.turned_back(stored.releases)
        return seen

    @staticmethod
    def turned_back(release: int) -> Refused:
        """A database that would publish something else under a release that is out."""
        return Refused(
            f"this database was restored from before release {release}, whose noise was drawn "
            "already for other reports; drawing it again would let the noise be averaged away, and "
            "the same noise would reveal the difference. Put back the newest copy of the database, "
            f"or {BEGIN_ANEW}"
        )

    def create(self) -> None:
        """The file of a new database; one that is there already must be as new."""
        with self._alone():
            if self._find() is None:
                self._write(Seen(START))
            if self.read().mark.releases:
                raise self.turned_back(self.read().mark.releases)

    def note(self, stored: Mark, noise: bytes) -> None:
        """Note the newest mark and its sealed noise, durably, in one step; never another one."""
        with self._alone():
            seen = self.check(stored)
            if stored.releases > seen.mark.releases:
                drawn = {**seen.drawn, stored.releases: Drawn(stored.digest, noise)}
                self._write(Seen(stored, drawn))

    def forget(self) -> None:
        """Delete all sealed noise, when the task is over and nothing more is released."""
        with self._alone():
            self._write(Seen(self.read().mark))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process writes meanwhile: its newer mark must not be overwritten."""
        with lock_of(self._path):
            yield
            sync_folder(self._path.parent)

    def _write(self, seen: Seen) -> None:
        content = {
            "task_id": self._task,
            "releases": seen.mark.releases,
            "digest": seen.mark.digest,
            "drawn": {str(r): [one.digest, one.noise.hex()] for r, one in seen.drawn.items()},
        }
        new = self._path.with_name(self._path.name + ".new")
        with open(new, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)
