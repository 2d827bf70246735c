"""Advance many runs together, in chunks, on a few threads.

Compiled loops release the GIL, so threads use all cores with a single compilation. Every worker
takes its runs in turn, chunk by chunk: all seeds advance together, and an interrupt leaves them at
comparable episodes. Chunks only bound how long an interrupt waits; they cannot change a result.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from tacit.simulation import resume
from tacit.simulation.runs.base import Run

CHUNK_SECONDS = 0.1

Keep = Callable[[Run], None]
"""Keeps where a run stands."""

Progress = Callable[[int, float], None]
"""Told the mean number of episodes done and the mean cumulative regret, over runs."""


def advance_all(
    runs: Sequence[Run],
    episodes: int,
    workers: int,
    stop: threading.Event,
    progress: Progress | None = None,
    keep: Keep | None = None,
) -> bool:
    """Bring every run to ``episodes``, where it plans once more.

    ``keep`` is handed runs now and then, between two chunks, before a run is concluded, and when
    the runs are stopped.

    Returns:
        False if it was interrupted (Ctrl-C, or ``stop`` set elsewhere): every run then holds a
        valid prefix.
    """
    groups = [runs[i::workers] for i in range(min(workers, len(runs)))]
    with ThreadPoolExecutor(len(groups), thread_name_prefix="tacit-run") as pool:
        keep = keep or (lambda _: None)
        pending = [pool.submit(_advance_group, group, episodes, stop, keep) for group in groups]
        try:
            while wait(pending, timeout=CHUNK_SECONDS).not_done:
                _tell(runs, progress)
                if any(future.done() and future.exception() for future in pending):
                    stop.set()
        except KeyboardInterrupt:
            stop.set()
            print("stopping, keeping what was done", file=sys.stderr)
            _wait_patiently(pending)
        except BaseException:
            stop.set()
            raise
        for future in pending:
            future.result()
    _tell(runs, progress)
    return all(run.final is not None for run in runs)


def _wait_patiently(pending: Sequence[Future[None]]) -> None:
    """Until all runs have stopped, whatever is typed meanwhile."""
    while True:
        try:
            wait(pending)
            return
        except KeyboardInterrupt:
            continue


def _advance_group(runs: Sequence[Run], episodes: int, stop: threading.Event, keep: Keep) -> None:
    chunk, kept = [1] * len(runs), [time.perf_counter()] * len(runs)
    while not stop.is_set():
        if all(run.final for run in runs):
            return
        for i, run in enumerate(runs):
            if run.final or stop.is_set():
                continue
            left = episodes - int(run.score.at[0])
            if left == 0:
                keep(run)
                run.conclude()
                continue
            began = time.perf_counter()
            run.advance(min(chunk[i], left))
            took = time.perf_counter() - began
            if took < CHUNK_SECONDS / 2:
                chunk[i] *= 2
            elif took > CHUNK_SECONDS and chunk[i] > 1:
                chunk[i] //= 2
            if began + took - kept[i] > resume.SECONDS:
                keep(run)
                kept[i] = time.perf_counter()
    for run in runs:
        if run.final is None:
            keep(run)


def _tell(runs: Sequence[Run], progress: Progress | None) -> None:
    if progress is None:
        return
    done = sum(int(run.score.at[0]) for run in runs) / len(runs)
    regret = sum(float(run.score.now[1]) for run in runs) / len(runs)
    progress(int(done), regret)
