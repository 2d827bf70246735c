"""Run a sweep: what is not finished yet, then choose, then the rest, then the tables."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import InvalidInput
from tacit.util.files import require_folder
from tacit_lab.sweep.choose import pick, tasks_of
from tacit_lab.sweep.pool import Done
from tacit_lab.sweep.spec import Choose, Planned, Spec, plan
from tacit_lab.sweep.store import Job, ResultStore
from tacit_lab.sweep.tables import MANIFEST, SPEC, TASKS, Sweep, load, write
from tacit_lab.sweep.task import SweepTask

J = TypeVar("J", bound=Job)
Backend = Callable[[Sequence[J]], Generator[Done[J], None, None]]
"""Runs jobs somewhere, takes them as it can, yields each when it will not be tried again."""


def finish(
    jobs: Sequence[J],
    finished: ResultStore,
    backend: Backend[J],
    note: Callable[[Done[J]], object] = lambda done: None,
) -> None:
    """Bring jobs to their end: what is stored is not run again, what is done is stored at once.

    Args:
        jobs: what is wanted.
        finished: where it is kept.
        backend: where the missing ones are run.
        note: told of each that was run, after it was stored or has failed.
    """
    missing = [job for job in jobs if job not in finished]
    if not missing:
        return
    with contextlib.closing(backend(missing)) as running:  # an interrupted backend ends now
        for done in running:
            if not done.failed:
                finished.keep(done.task, done.outcome)
            note(done)


Watch = Callable[["SweepProgress"], None]


@dataclass(frozen=True, eq=False)
class SweepResult:
    """A sweep that came to its end.

    Attributes:
        sweep: its results.
        files: the files they are in.
        total: number of tasks, of which
        kept: had been finished before, and
        ran: were finished now.
        failures: tasks that failed, with their messages.
        seconds: wall-clock time of this call.
    """

    sweep: Sweep
    files: tuple[Path, ...]
    total: int
    kept: int
    ran: int
    failures: tuple[dict[str, Any], ...]
    seconds: float


def run(
    spec: Spec,
    out: Path,
    backend: Backend[SweepTask],
    *,
    resume: bool = False,
    watch: Watch | None = None,
) -> SweepResult:
    """Run what is missing and write the tables.

    Args:
        spec: what to run.
        out: folder for tables, manifest and finished tasks.
        backend: where to run it.
        resume: go on in a folder that holds a sweep; finished tasks are never run again.
        watch: told how far it is.
    """
    began = time.perf_counter()
    planned = plan(spec)
    prepare(out, resume=resume)
    (out / SPEC).write_text(spec.text)
    work = SweepProgress(ResultStore(out / TASKS), backend, watch)
    reported = run_all(planned, spec.choose, work)
    files = write(out, spec.name, reported, work.finished, work.failures)
    return SweepResult(
        sweep=load(out),
        files=tuple(files),
        total=work.total,
        kept=work.kept,
        ran=work.ran,
        failures=tuple(work.failures),
        seconds=time.perf_counter() - began,
    )


def run_all(
    planned: Sequence[Planned], choose: Choose | None, work: SweepProgress
) -> list[Planned]:
    """Run what a choice needs, choose, and run what is reported."""
    choosing = [task for item in planned for task in tasks_of(item, choose)]
    work.total = len(choosing) + sum(len(item.seeds) for item in planned)
    work.finish(choosing + _seed_by_seed([item for item in planned if not item.candidates]))
    reported = [_decide(choose, item, work) for item in planned]
    work.finish(_seed_by_seed([item for item in reported if item.chosen]))
    return reported


def prepare(out: Path, *, resume: bool) -> None:
    """Make a folder ready; refuse one that holds something, unless it is to be gone on with."""
    ours = (out / SPEC).exists()
    if ours and not resume:
        state = "a sweep" if (out / MANIFEST).exists() else "an unfinished sweep"
        raise InvalidInput(f"{out} holds {state}: --resume goes on with it, --out takes another")
    if not ours and (out / MANIFEST).exists():
        raise InvalidInput(f"{out} holds other results; choose another folder with --out")
    require_folder(out)


def _seed_by_seed(items: Iterable[Planned]) -> list[SweepTask]:
    """In this order something is known early on about every configuration."""
    listed = [
        (place, SweepTask(item.configuration.at(seed)))
        for item in items
        for place, seed in enumerate(item.seeds)
    ]
    return [task for _, task in sorted(listed, key=lambda pair: pair[0])]


def _decide(choose: Choose | None, item: Planned, work: SweepProgress) -> Planned:
    """A configuration with its chosen parameter; without one if the choice was not possible."""
    if choose is None or not item.candidates:
        return item
    missing = [task for task in tasks_of(item, choose) if task not in work.finished]
    if missing:
        why = f"{choose.parameter} was not chosen: {len(missing)} of its tasks failed"
        work.give_up([SweepTask(item.configuration.at(seed)) for seed in item.seeds], why)
        return item
    return pick(item, choose, work.finished)


@dataclass
class SweepProgress:
    """How far a sweep is: what is finished, what failed, and who is told.

    Attributes:
        finished: the store of outcomes.
        backend: where tasks run.
        watch: told whenever something changes.
        total: number of tasks.
        kept: how many had been finished before.
        ran: how many were finished now.
        failures: those that were given up, with their messages.
    """

    finished: ResultStore
    backend: Backend[SweepTask]
    watch: Watch | None
    total: int = 0
    kept: int = 0
    ran: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def done(self) -> int:
        """Finished tasks, now or before."""
        return self.kept + self.ran

    def finish(self, tasks: Sequence[SweepTask]) -> None:
        """Bring tasks to their end, as far as they can be."""
        missing = [task for task in tasks if task not in self.finished]
        self.kept += len(tasks) - len(missing)
        self._tell()
        finish(missing, self.finished, self.backend, self._note)

    def _note(self, done: Done[SweepTask]) -> None:
        if done.failed:
            self._fail(done.task, done.outcome, done.tries)
        else:
            self.ran += 1
        self._tell()

    def give_up(self, tasks: Sequence[SweepTask], why: str) -> None:
        """Report tasks that cannot be tried."""
        for task in tasks:
            self._fail(task, {"error": why, "traceback": ""}, 0)
        self._tell()

    def _fail(self, task: SweepTask, outcome: dict[str, Any], tries: int) -> None:
        self.failures.append(
            {
                "label": task.spec.label,
                "seed": task.seed,
                "error": outcome["error"],
                "tries": tries,
                "traceback": outcome["traceback"],
            }
        )

    def _tell(self) -> None:
        if self.watch is not None:
            self.watch(self)
