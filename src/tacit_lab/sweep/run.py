"""Run a sweep: what is not finished yet, then choose, then the rest, then the tables.

A parameter is chosen on seeds that are never reported, and said to be chosen: a value picked by its
regret and reported on the same seeds would look better than it is. Choosing also uses a simulator
that knows the true problem: in front of real people it would cost privacy.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.agents.catalogue import agents
from tacit.errors import InvalidInput
from tacit.util.files import require_folder
from tacit_lab.sweep.pool import Done
from tacit_lab.sweep.spec import Choose, Planned, Spec, plan
from tacit_lab.sweep.tables import MANIFEST, SPEC, TASKS, Sweep, load, write
from tacit_lab.sweep.task import ResultStore, SweepTask

Backend = Callable[[Sequence[SweepTask]], Generator[Done, None, None]]
"""Runs tasks somewhere, takes them as it can, yields each when it will not be tried again."""


Watch = Callable[["SweepProgress"], None]


@dataclass(frozen=True, eq=False)
class SweepResult:
    """A sweep that came to its end.

    Attributes:
        sweep: its results.
        files: the files they are in.
        progress: how many tasks there were, and what became of them.
        seconds: wall-clock time of this call.
    """

    sweep: Sweep
    files: tuple[Path, ...]
    progress: SweepProgress
    seconds: float


def run(
    spec: Spec,
    out: Path,
    backend: Backend,
    *,
    resume: bool = False,
    watch: Watch = lambda progress: None,
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
    reported = run_all(planned, work)
    files = write(out, spec.name, reported, work.finished, work.failures)
    return SweepResult(load(out), tuple(files), work, time.perf_counter() - began)


def run_all(planned: Sequence[Planned], work: SweepProgress) -> list[Planned]:
    """Run what a choice needs, choose, and run what is reported."""
    choosing = [task for item in planned for task in item.choosing()]
    work.total = len(choosing) + sum(len(item.seeds) for item in planned)
    work.finish(choosing + _seed_by_seed([item for item in planned if not item.candidates]))
    reported = [_decide(item, work) for item in planned]
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
    turns = itertools.zip_longest(*(item.tasks() for item in items))
    return [task for turn in turns for task in turn if task is not None]


def _decide(item: Planned, work: SweepProgress) -> Planned:
    """A configuration with its chosen parameter; without one if the choice was not possible."""
    if item.choose is None:
        return item
    missing = [task for task in item.choosing() if task not in work.finished]
    if missing:
        why = f"{item.choose.parameter} was not chosen: {len(missing)} of its tasks failed"
        for task in item.tasks():
            work.note(Done(task, {"error": why, "traceback": ""}, tries=0))
        return item
    return pick(item, item.choose, work.finished)


def pick(planned: Planned, choose: Choose, finished: ResultStore) -> Planned:
    """The candidate of least mean final regret, of equal ones the first; and how it was chosen."""
    regret = np.array(
        [
            [finished.outcome(SweepTask(candidate.at(seed)))["regret"][-1] for seed in choose.seeds]
            for candidate in planned.candidates
        ]
    )
    best = planned.candidates[int(regret.mean(axis=1).argmin())]
    values = [c.agent.parameters[choose.parameter] for c in planned.candidates]
    value = best.agent.parameters[choose.parameter]
    tried = ", ".join(f"{value}" for value in values)
    chosen: dict[str, Any] = {
        "parameter": choose.parameter,
        "value": value,
        "default": agents.entry(best.agent.name).parameters[choose.parameter].default,
        "seeds": list(choose.seeds),
        "candidates": [
            {"value": each, "mean": float(row.mean()), "per_seed": row.tolist()}
            for each, row in zip(values, regret, strict=True)
        ],
        "brief": f"{choose.parameter} = {value} was chosen among {tried} by mean regret on "
        f"{len(choose.seeds)} root seeds that are not reported",
        "deviation": _deviation(choose.parameter),
    }
    return replace(planned, configuration=best, chosen=chosen)


def _deviation(parameter: str) -> str:
    """What a reader must know; the bonus scale does not touch the noise."""
    theory = (
        "a bonus scale other than the theorem's deviates from the theory: its regret bound does "
        "not hold for it; the privacy guarantee does not depend on it. "
    )
    return (
        f"{theory if parameter == 'bonus_scale' else ''}{parameter} was chosen by a scorer that "
        "knows the true problem; a choice on real people's data would have to be paid for from the "
        "privacy budget"
    )


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
    backend: Backend
    watch: Watch = lambda progress: None
    total: int = 0
    kept: int = 0
    ran: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def done(self) -> int:
        """Finished tasks, now or before."""
        return self.kept + self.ran

    def finish(self, tasks: Sequence[SweepTask]) -> None:
        """Bring tasks to their end: what is stored is not run again, what is done is stored."""
        missing = [task for task in tasks if task not in self.finished]
        self.kept += len(tasks) - len(missing)
        self.watch(self)
        if missing:
            with contextlib.closing(self.backend(missing)) as running:  # interrupted, it ends now
                for done in running:
                    if not done.failed:
                        self.finished.keep(done.task, done.outcome)
                    self.note(done)

    def note(self, done: Done) -> None:
        """Count a task that was run, or that cannot be tried."""
        if done.failed:
            spec, outcome = done.task.spec, done.outcome
            facts = {"label": spec.label, "seed": spec.seed, "error": outcome["error"]}
            self.failures.append({**facts, "tries": done.tries, "traceback": outcome["traceback"]})
        else:
            self.ran += 1
        self.watch(self)
