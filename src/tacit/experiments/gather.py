"""Compute the parts of a figure, or take them from the store."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from tacit.agents.catalogue import make_agent
from tacit.errors import InvalidInput
from tacit.experiments.evidence import Evidence, Measured, Runs
from tacit.experiments.figure import Curve, Measurement, Part, Size
from tacit.experiments.store import Store, curve_digest, measurement_digest
from tacit.problems.catalogue import make_problem
from tacit.simulation import Result, simulate
from tacit.validate import integer

_GLANCE_SECONDS = 0.1


@dataclass(frozen=True)
class Step:
    """How far the work is: part number ``part`` (from 0) of ``parts``, and the share of it done."""

    part: int
    parts: int
    label: str
    share: float


Watch = Callable[[Step], None]
"""Told now and then how far the work is."""


def gather(
    parts: Sequence[Part], size: Size, store: Store, workers: int | None, watch: Watch | None
) -> Evidence:
    """Finish every part in turn; each is stored as soon as it is finished.

    Ctrl-C loses the part in progress, at most, and is passed on.
    """
    keys = [part.key for part in parts]
    if len(set(keys)) < len(keys):
        raise InvalidInput(f"the parts of a figure need different keys, got {', '.join(keys)}")
    threads = integer(workers, "workers", low=1) if workers is not None else os.cpu_count() or 1
    curves: dict[str, Runs] = {}
    measurements: dict[str, Measured] = {}
    for i, part in enumerate(parts):
        tell = _teller(watch, i, len(parts), part.label)
        tell(0.0)
        if isinstance(part, Curve):
            curves[part.key] = _curve(part, store, threads, tell)
        else:
            measurements[part.key] = _measurement(part, store)
        tell(1.0)
    return Evidence(size, curves, measurements)


def _teller(watch: Watch | None, part: int, parts: int, label: str) -> Callable[[float], None]:
    def tell(share: float) -> None:
        if watch is not None:
            watch(Step(part, parts, label, share))

    return tell


def _measurement(part: Measurement, store: Store) -> Measured:
    digest = measurement_digest(part)
    kept = store.measured(digest, part)
    if kept is None:
        began = time.perf_counter()
        arrays = part.measure(**part.parameters)
        kept = Measured(part, arrays, time.perf_counter() - began)
        store.keep_measured(digest, kept)
    return kept


def _curve(curve: Curve, store: Store, threads: int, tell: Callable[[float], None]) -> Runs:
    """All problems of a curve, side by side on a few threads."""
    stop = threading.Event()
    shares = dict.fromkeys(range(len(curve.problems)), 0.0)
    inner = max(1, threads // len(curve.problems))

    def one(problem: int) -> Result | None:
        digest = curve_digest(curve, problem)
        kept = store.result(digest)
        if kept is None and not stop.is_set():
            kept = _simulate(curve, problem, inner, stop, shares)
            if kept.interrupted:
                return None
            store.keep_result(digest, kept)
        shares[problem] = 1.0
        return kept

    with ThreadPoolExecutor(threads, thread_name_prefix="tacit-figure") as pool:
        pending = [pool.submit(one, problem) for problem in range(len(curve.problems))]
        try:
            while wait(pending, timeout=_GLANCE_SECONDS).not_done:
                tell(sum(shares.values()) / len(shares))
                if any(future.done() and future.exception() for future in pending):
                    stop.set()
        except BaseException:
            stop.set()
            raise
        results = [future.result() for future in pending]
    return Runs(curve, tuple(result for result in results if result is not None))


def _simulate(
    curve: Curve,
    problem: int,
    threads: int,
    stop: threading.Event,
    shares: dict[int, float],
) -> Result:
    on = curve.problems[problem]

    def note(done: int, regret: float) -> None:
        shares[problem] = done / curve.episodes

    return simulate(
        make_problem(on.name, **on.parameters),
        make_agent(curve.agent.name, **curve.agent.parameters),
        curve.episodes,
        curve.runs,
        seed=curve.seed + problem,
        workers=threads,
        reveal=curve.reveal,
        progress=note,
        stop=stop,
    )
