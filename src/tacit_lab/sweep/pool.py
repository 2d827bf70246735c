"""Tasks on this machine: on processes of their own, or on threads of this one.

The processes are started afresh (not forked), keep one thread each, and load compiled kernels from
the cache on disk. Each has a pipe of its own, so that when one dies it is known which task it took
along: that task is tried again, and nobody else notices. (The executors of the standard library
give up every task when one process dies.)

Threads start at once, tell how far each task is and raise its errors as they are; compiled loops
release the GIL. They suit a few long tasks, processes many short ones.
"""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_threads
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from tacit_lab.sweep.task import SweepTask, run_task

Tried = tuple[SweepTask, int]
"""A task, and how often it was tried."""

TRIES = 3
"""How often a task is tried before it is reported as failed."""

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""Environment of a worker: n workers use n cores, and sums are added up in one order."""


_GLANCE_SECONDS = 0.1


@dataclass(frozen=True)
class Done:
    """A task that will not be tried again now.

    Attributes:
        task: which.
        outcome: what :func:`tacit_lab.sweep.task.run_task` returned.
        tries: how often it was tried.
    """

    task: SweepTask
    outcome: dict[str, Any]
    tries: int = 1

    @property
    def failed(self) -> bool:
        """Whether the outcome is an error."""
        return "error" in self.outcome


def run_on_threads(
    tasks: Sequence[SweepTask], workers: int, watch: Callable[[float], None]
) -> Generator[Done, None, None]:
    """Run tasks side by side on so many threads; yields them as they finish.

    An error of one task, Ctrl-C, or closing the iterator stops the others early.

    Args:
        tasks: what to run.
        workers: threads; tasks share those that would be idle.
        watch: told now and then which share of all tasks is done.
    """
    stop, shares = threading.Event(), [0.0] * len(tasks)

    def run(place: int, task: SweepTask) -> dict[str, Any]:
        def note(episodes: int, regret: float) -> None:
            shares[place] = episodes / task.spec.episodes

        return task.run(max(1, workers // len(tasks)), note, stop)

    with ThreadPoolExecutor(workers, thread_name_prefix="tacit-task") as pool:
        try:
            pending = {pool.submit(run, i, task): task for i, task in enumerate(tasks)}
            while pending:
                done = wait_for_threads(pending, _GLANCE_SECONDS, FIRST_COMPLETED).done
                watch(sum(shares) / len(shares))
                for future in done:
                    yield Done(pending.pop(future), future.result())
        finally:  # the executor waits for its threads: let them end now
            stop.set()
            pool.shutdown(cancel_futures=True)


def run_on_processes(tasks: Iterable[SweepTask], workers: int) -> Generator[Done, None, None]:
    """Run tasks as they come, on at most that many processes; yields them as they finish."""
    waiting, retries = iter(tasks), deque[Tried]()
    pool: list[Worker] = []

    def occupy() -> None:
        """Give tasks to idle workers, and start more of these while there are tasks for them."""
        idle = [worker for worker in pool if not worker.busy]
        while idle or len(pool) < workers:
            task, tries = next(waiting, None), 0
            if task is None and not retries:
                return
            if task is None:  # those that failed come last
                task, tries = retries.popleft()
            if not idle:
                pool.append(Worker())
                idle = pool[-1:]
            idle.pop().give(task, tries)

    try:
        occupy()
        while busy := [worker for worker in pool if worker.busy]:
            ready = wait([worker.pipe for worker in busy])
            over = []
            for done in [worker.take() for worker in busy if worker.pipe in ready]:
                if done.failed and done.outcome["again"] and done.tries < TRIES:
                    retries.append((done.task, done.tries))
                else:
                    over.append(done)
            pool[:] = [worker for worker in pool if worker.alive]
            occupy()  # before anybody looks at what is over: workers should not wait for that
            yield from over
    finally:
        for worker in pool:
            worker.stop()


class Worker:
    """One process and our end of its pipe."""

    def __init__(self) -> None:
        context = mp.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _environment(ONE_THREAD):
            self._process.start()
        theirs.close()
        self._now: Tried | None = None

    @property
    def busy(self) -> bool:
        """Whether it has a task."""
        return self._now is not None

    @property
    def alive(self) -> bool:
        """Whether it can be given another task."""
        return not self.pipe.closed

    def give(self, task: SweepTask, tries: int) -> None:
        """Start a task."""
        self._now = (task, tries + 1)
        with contextlib.suppress(BrokenPipeError):  # it died meanwhile: take() will say so
            self.pipe.send(task.payload())

    def take(self) -> Done:
        """What became of its task; a process that died leaves an error."""
        assert self._now is not None
        task, tries = self._now
        self._now = None
        try:
            return Done(task, self.pipe.recv(), tries)
        except (EOFError, OSError):
            self.pipe.close()
            self._process.join()
            code = self._process.exitcode or 0
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
            error = f"the process that ran it ended with {how} (out of memory, or killed?)"
            return Done(task, {"error": error, "again": True, "traceback": ""}, tries)

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    """The life of a worker process: until the pipe closes, or its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, who then ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(run_task(pipe.recv()))


def _end_with_parent() -> None:
    parent = mp.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.update(before)
        for name in variables.keys() - before.keys():
            del os.environ[name]
