"""The same tasks on a Ray cluster: scheduling, retries and transport of results are Ray's."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import Any

from tacit.errors import TacitError, need
from tacit_lab.sweep.pool import ONE_THREAD, TRIES, Done
from tacit_lab.sweep.task import SweepTask, run_task

AHEAD = 2
"""Tasks handed to Ray per slot: one runs, one waits at the node; the rest stays here."""


class TryAgain(RuntimeError):
    """Tells Ray that a task failed for a reason that may pass: message and traceback."""


def attempt(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Run a task; raise where trying again may help, so that Ray does."""
    outcome = run_task(payload)
    if outcome.get("again"):
        raise TryAgain(outcome["error"], outcome["traceback"])
    return outcome


@contextmanager
def connected(address: str, processes: int) -> Iterator[int]:
    """Connect to a cluster, or start a local one and end it afterwards.

    Args:
        address: of the cluster, or "local".
        processes: how many a local cluster has.

    Yields:
        The number of tasks it runs at once.
    """
    need("--ray", "cluster")
    ray: Any = importlib.import_module("ray")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as future versions do
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    where: dict[str, Any] = {"address": address}
    if address == "local":
        where |= {
            "num_cpus": processes,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
        }
    try:
        ray.init(
            **where,
            logging_level=logging.ERROR,
            log_to_driver=False,
            runtime_env={"env_vars": dict(ONE_THREAD)},
        )
    except Exception as error:  # Ray raises bare exceptions, for example when starting takes long
        ray.shutdown()
        raise TacitError(f"cannot start or reach Ray at {address!r}: {error}") from None
    # Ray prints about each retry on stdout; what failed in the end is reported by us.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        try:
            yield max(1, int(ray.cluster_resources().get("CPU", 1)))
        finally:
            ray.shutdown()


def run_on_ray(tasks: Iterable[SweepTask], slots: int) -> Generator[Done, None, None]:
    """Run tasks as they come; yields them as they finish. Needs a connection."""
    ray: Any = importlib.import_module("ray")
    remote = ray.remote(num_cpus=1, max_retries=TRIES - 1, retry_exceptions=[TryAgain])(attempt)
    waiting = iter(tasks)
    running: dict[Any, SweepTask] = {}
    while True:
        for task in islice(waiting, AHEAD * slots - len(running)):
            running[remote.remote(task.payload())] = task
        if not running:
            return
        ready, _ = ray.wait(list(running), num_returns=1)
        yield _done(running.pop(ready[0]), ready[0])


def _done(task: SweepTask, reference: Any) -> Done:
    ray: Any = importlib.import_module("ray")
    try:
        return Done(task, ray.get(reference))
    except TryAgain as error:  # Ray's error is of this kind as well, and holds ours as its cause
        message, trace = error.cause.args  # type: ignore[attr-defined]
    except ray.exceptions.RayError as error:  # a node or a process was lost, more than once
        message, trace = " ".join(str(error).split()), ""
    return Done(task, {"error": message, "again": True, "traceback": trace}, TRIES)
