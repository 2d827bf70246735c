"""What is measured: the share of the gap that is closed for the last users of simulated runs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.agents.base import Agent
from tacit.sample_size.settings import Setting
from tacit.simulation.api import new_run
from tacit.simulation.scheduler import advance_all
from tacit.util.intervals import Interval, mean_interval

Watch = Callable[[float | None, int, int], None]
"""Told which epsilon and how many users are simulated, and how many are done, mean over runs."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Runs of one agent with so many users.

    Attributes:
        users: how many took part; where people come back, how many different ones.
        closed: by run, the share of the gap between the baseline and the best policy that is closed
            in the last tenth of the participations: 1 minus their exact regret over that of the
            baseline.
        seconds: wall-clock time of all runs together.
    """

    users: int
    closed: tuple[float, ...]
    seconds: float

    @cached_property
    def interval(self) -> Interval:
        """The mean share; each end is missed with probability 5% (one-sided Student t)."""
        found = mean_interval(np.array(self.closed), 0.9)
        return Interval(found.value, found.low, min(found.high, 1.0))

    def words(self) -> str:
        """The mean share with its bounds, in percent."""
        found = self.interval
        ends = f" ({_percent(found.low)} to {_percent(found.high)})"
        return f"{_percent(found.value)}{ends if np.isfinite(found.low) else ''}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found = self.interval
        ends = [end if np.isfinite(end) else None for end in (found.low, found.high)]
        return {
            "users": self.users,
            "closed": found.value,
            "low": ends[0],
            "high": ends[1],
            "per_run": list(self.closed),
        }


def _percent(share: float) -> str:
    return f"{round(share, 2) + 0.0:.0%}"  # not -0%


def measure(
    setting: Setting,
    agent: Agent,
    users: int,
    seed: int,
    workers: int | None,
    stop: threading.Event,
    watch: Watch | None,
) -> Measured | None:
    """Run the agent with so many users on every problem; None if ``stop`` was set before the end.

    Runs of different epsilons meet the same users. A refusal of the agent is passed on.
    """
    count, came = len(setting.problems), setting.attendance(users, seed)
    episodes = users if came is None else len(came.who)
    grid = np.array([-(-episodes * 9 // 10), episodes], dtype=np.int64)
    bound = [setting.bind(run, agent, episodes, came) for run in range(count)]
    began = time.perf_counter()
    runs = [
        new_run(problem, fitted, seed, run, grid, stop, came=came)
        for run, (problem, fitted) in enumerate(zip(setting.problems, bound, strict=True))
    ]
    epsilon = agent.parameters().get("epsilon")

    def progress(done: int, regret: float) -> None:
        if watch is not None:
            watch(epsilon, episodes, done)

    if not advance_all(runs, episodes, workers or os.cpu_count() or 1, stop, progress):
        return None
    late = [float(np.diff(run.score.regret)[0]) / (episodes - int(grid[0])) for run in runs]
    closed = tuple(1.0 - lost / setting.gap(run) for run, lost in enumerate(late))
    return Measured(users, closed, time.perf_counter() - began)
