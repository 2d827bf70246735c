"""Several tasks in one process: every TOML file of a folder is one, with a database of its own.

The folder is the truth: a file that is put there is served within a second or two, by every process
that serves the folder. A file with a mistake in it keeps no other task from being served.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tacit.errors import InvalidInput
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.http.readiness import trouble_of
from tacit_service.log_lines import event
from tacit_service.planning.loop import PlannerLoop
from tacit_service.responses import Exists, Trouble, Unavailable

NAME = "[a-z0-9][a-z0-9_-]{0,39}"
"""What a task may be called: it is part of addresses, file names and labels."""
LOOK_SECONDS = 1.0
"""Between two looks at the folder."""
_OURS = ("database", "key_file", "witness")


@dataclass(eq=False)
class Folder:
    """The tasks of a folder, each with its collector and, if this process plans, its planner.

    Attributes:
        path: the folder.
        plans: whether this process plans.
        sqlite: whether tasks on SQLite may be served, which several workers must not.
        opened: told of every task before its planner starts.
        collectors: tasks that are served, by name.
        problems: files that cannot be, and why.
    """

    path: Path
    plans: bool = True
    sqlite: bool = True
    opened: Callable[[str, Collector, PlannerLoop | None], None] = lambda *task: None
    collectors: dict[str, Collector] = field(default_factory=dict)
    problems: dict[str, Trouble] = field(default_factory=dict)
    _planners: list[PlannerLoop] = field(default_factory=list)
    _tried: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Open what is there, and keep looking."""
        self.look()
        self._thread = threading.Thread(target=self._watch, name="tacit-folder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop planning and let go of every database."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for planner in self._planners:
            planner.stop()
        for collector in self.collectors.values():
            collector.close()
        self._planners = []

    def look(self) -> None:
        """Open files that are new, changed after a mistake, or whose database was away."""
        with self._lock:
            files = {file.stem: file for file in sorted(self.path.glob("*.toml"))}
            for name in self.problems.keys() - files.keys():
                del self.problems[name]
            for name, file in files.items():
                with contextlib.suppress(FileNotFoundError):  # gone again
                    changed = file.stat().st_mtime_ns
                    if name not in self.collectors and self._tried.get(name) != changed:
                        self._tried[name] = changed
                        self._try(name, file)

    def create(self, name: str, text: str) -> Collector:
        """A new task from the content of its file; refused in a sentence, or served at once."""
        file = self.path / f"{name}.toml"
        _check_paths(text)
        with self._lock:
            if file.exists():
                raise Exists(f"there is a task {name} already; choose another name")
            deployment = Deployment.parse(text, file, os.environ)
            collector = self._open(name, deployment)
            try:
                _write_new(file, text)
            except BaseException:
                collector.close()
                raise
            self._serve(name, collector)
        return collector

    def _try(self, name: str, file: Path) -> None:
        try:
            self._serve(name, self._open(name, Deployment.load(file)))
            self.problems.pop(name, None)
        except Exception as error:
            found = trouble_of(error)
            if isinstance(error, InvalidInput):
                found = Trouble("file", str(error))
            if isinstance(error, Unavailable):
                del self._tried[name]
            if self.problems.get(name) != found:
                event("task_failed", found.sentence, level="error", task=name, reason=found.reason)
            self.problems[name] = found

    def _open(self, name: str, deployment: Deployment) -> Collector:
        if not re.fullmatch(NAME, name):
            raise InvalidInput(
                f"a task cannot be called {name!r}: rename its file to 1 to 40 small letters, "
                "digits, - and _"
            )
        if not self.sqlite and deployment.database.startswith("sqlite"):
            raise InvalidInput("several workers need PostgreSQL: set database in [storage]")
        return Collector.open(deployment)

    def _serve(self, name: str, collector: Collector) -> None:
        planner = PlannerLoop(collector) if self.plans else None
        self.opened(name, collector, planner)
        if planner is not None:
            planner.start()
            self._planners.append(planner)
        self.collectors[name] = collector
        event("task", "a task is served", task=name, task_id=collector.deployment.task_id)

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            with contextlib.suppress(OSError):  # the folder is away for a moment
                self.look()


def _check_paths(text: str) -> None:
    """Hold a task that was sent to the folder: it names no file outside, and none of another."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"this is not TOML: {error}") from None
    storage, task = data.get("storage"), data.get("task")
    for key in _OURS:
        if isinstance(storage, dict) and key in storage:
            raise InvalidInput(
                f"{key} in [storage] is the server's to choose for a task that is sent to it: "
                "leave it out, or put the file into the server's folder yourself"
            )
    features = task.get("features") if isinstance(task, dict) else None
    if isinstance(features, str) and not re.fullmatch(r"[\w-][\w.-]*\.npy", features):
        raise InvalidInput("features in [task] must name a .npy file in the server's folder")


def _write_new(file: Path, text: str) -> None:
    """The whole file or none, and never in place of another."""
    descriptor, draft = tempfile.mkstemp(suffix=".draft", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.link(draft, file)
    except FileExistsError:
        raise Exists(f"there is a task {file.stem} already; choose another name") from None
    finally:
        os.unlink(draft)
