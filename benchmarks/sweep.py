"""Sweeps: cost per task, Ray beside processes, and kill -9. Run: python benchmarks/sweep.py WHAT.

overhead: tasks that sleep for one second, so that all other time is the sweep's own: starting
processes, sending orders, running a one-episode simulation, storing outcomes, writing the tables.
ray: the same tasks on local processes and on a local Ray cluster, once both have started.
kills: a real sweep, killed with SIGKILL at a random moment and resumed, again and again; every file
but the times must have the bytes of a sweep that nobody killed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from tacit.agents.base import Agent
from tacit.agents.catalogue import agents
from tacit.agents.reference import Uniform
from tacit.learner import BoundAgent
from tacit.task.task import Task as Public
from tacit_lab.sweep.pool import Done, run_on_processes
from tacit_lab.sweep.ray import connected, run_on_ray
from tacit_lab.sweep.run import Backend, run
from tacit_lab.sweep.spec import parse
from tacit_lab.sweep.task import SweepTask

SAME = ("curves.parquet", "curves.csv", "runs.parquet", "manifest.json")


@dataclass(frozen=True)
class Sleeper(Agent):
    """Sleeps, then acts uniformly."""

    name: ClassVar[str] = "sleeper"
    seconds: float = 1.0

    def bind(self, task: Public) -> BoundAgent:
        """Wait, then do as the uniform agent."""
        time.sleep(self.seconds)
        return Uniform().bind(task)


if "sleeper" not in {entry.name for entry in agents}:
    agents.add("sleeper", Sleeper, "sleeps")

SLEEPING = """
episodes = 1
seeds = {tasks}
problems = "random-mdp"
agents = {{name = "sleeper", seconds = {seconds}}}
modules = "sweep"
"""

REAL = """
episodes = [5e3, 1e4]
seeds = 5
epsilon = [1, 4]
problems = [{name = "random-mdp", seed = [1, 2]}]
agents = ["psrl", "ldp-obi", "ucb-vi"]
[choose]
parameter = "bonus_scale"
candidates = [0.1, 1]
seeds = 2
"""


class Clock:
    """A backend that notes when its first and its last task were finished."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.at = backend, list[float]()

    def __call__(self, tasks: Iterable[SweepTask]) -> Iterator[Done]:
        """Run tasks, and look at the clock."""
        for done in self.backend(tasks):
            self.at.append(time.perf_counter())
            yield done

    @property
    def after_start(self) -> float:
        """Seconds from when a quarter of the tasks is finished to the last, per task."""
        first = len(self.at) // 4
        return (self.at[-1] - self.at[first]) / (len(self.at) - 1 - first)


def sleeping(tasks: int, seconds: float, backend: Backend) -> float:
    """Wall-clock seconds of a sweep of sleeping tasks, from reading the spec to the manifest."""
    text = SLEEPING.format(tasks=tasks, seconds=seconds)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        spec = parse(text, Path(__file__).resolve())
        done = run(spec, Path(folder) / "out", backend)
        assert done.progress.ran == tasks, done.progress.failures[:1]
        return time.perf_counter() - began


def processor_seconds() -> float:
    """Of this process and of its children that have ended."""
    return sum(os.times()[:4])


def overhead(tasks: int, seconds: float, workers: int) -> None:
    before, load = processor_seconds(), os.getloadavg()[0]
    took = sleeping(tasks, seconds, partial(run_on_processes, workers=workers))
    busy = processor_seconds() - before
    ideal = tasks * seconds / workers
    print(
        f"{tasks} tasks of {seconds:g} s on {workers} processes: {took:.1f} s, of which asleep "
        f"{ideal:.1f} s; overhead {took / ideal - 1:.2%} (load average before: {load:.1f})\n"
        f"processor time of everything together: {busy:.1f} s, {busy / (tasks * seconds):.2%} of "
        "the time of the tasks"
    )


def ray(tasks: int, seconds: float, workers: int) -> None:
    load = os.getloadavg()[0]
    pool = Clock(partial(run_on_processes, workers=workers))
    sleeping(tasks, seconds, pool)
    began = time.perf_counter()
    with connected("local", workers) as slots:
        started = time.perf_counter() - began
        cluster = Clock(partial(run_on_ray, slots=slots))
        sleeping(tasks, seconds, cluster)
    print(
        f"{tasks} tasks of {seconds:g} s, seconds per task after the first quarter of them: "
        f"processes {pool.after_start:.3f}, Ray {cluster.after_start:.3f} "
        f"({cluster.after_start / pool.after_start - 1:+.1%}); Ray took {started:.1f} s to start; "
        f"load average {load:.0f} before, {os.getloadavg()[0]:.0f} after"
    )


def kills(times: int, seed: int) -> None:
    rng = random.Random(seed)
    command = [str(Path(sys.executable).with_name("tacit")), "sweep", "study.toml", "--json"]

    def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, *words], cwd=folder, stdout=subprocess.DEVNULL)

    def content(folder: Path) -> list[bytes]:
        return [(folder / name).read_bytes() for name in SAME]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(REAL)
        assert start(folder, "--out", "whole").wait() == 0
        tasks, equal = len(list((folder / "whole" / "tasks").glob("*.json"))), 0
        for number in range(times):
            out = folder / f"killed-{number}"
            running = start(folder, "--out", out.name)
            wanted = rng.randrange(tasks)
            while running.poll() is None and len(list(out.glob("tasks/*.json"))) < wanted:
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.05))
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
            finished = len(list(out.glob("tasks/*.json")))
            complete = (out / "manifest.json").exists()
            assert start(folder, "--out", out.name, "--resume").wait() == 0
            same = content(out) == content(folder / "whole")
            equal += same
            when = "after its end" if complete else f"with {finished} tasks finished"
            print(f"  killed {when}: {'identical' if same else 'DIFFERENT'}", flush=True)
    print(f"{equal} of {times} killed and resumed sweeps are identical to the one not killed")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("what", choices=("overhead", "ray", "kills"))
    options.add_argument("--tasks", type=int, help="1000 for overhead, 200 for ray")
    options.add_argument("--seconds", type=float, default=1.0, help="of one task")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--times", type=int, default=10, help="kills")
    options.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    chosen = options.parse_args()
    if chosen.what == "overhead":
        overhead(chosen.tasks or 1000, chosen.seconds, chosen.workers)
    elif chosen.what == "ray":
        ray(chosen.tasks or 200, chosen.seconds, chosen.workers)
    else:
        kills(chosen.times, chosen.seed)


if __name__ == "__main__":
    main()
