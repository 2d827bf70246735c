"""How long a sweep will still take, from what its tasks took so far.

A task is expected to take as long per episode as the finished ones of the same agent on the same
problem; where there is none yet, as long as the average of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tacit_lab.sweep.pool import Done
from tacit_lab.sweep.task import SweepTask


class TimeLeft:
    """Remembers sums only."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._expected: Counter[tuple[str, str]] = Counter()
        self._episodes: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[tuple[str, str], float] = {}
        self._listed = 0

    def expect(self, tasks: Sequence[SweepTask]) -> None:
        """These are still to be run."""
        for task in tasks:
            self._expected[_kind(task)] += task.configuration.episodes
        self._listed += len(tasks)

    def note(self, done: Done[SweepTask]) -> None:
        """This one is over."""
        kind, episodes = _kind(done.task), done.task.configuration.episodes
        self._expected[kind] -= episodes
        self._listed -= 1
        if not done.failed:
            seconds = done.outcome["timing"]["task"]
            self._episodes[kind] += episodes
            self._seconds[kind] = self._seconds.get(kind, 0.0) + seconds

    def seconds_left(self, tasks: int) -> float | None:
        """For the tasks that are listed, and as much again for each that is not listed yet."""
        known = sum(self._episodes.values())
        if known == 0:
            return None
        average = sum(self._seconds.values()) / known
        listed = sum(
            episodes
            * (self._seconds[kind] / self._episodes[kind] if kind in self._seconds else average)
            for kind, episodes in self._expected.items()
        )
        unlisted = max(0, tasks - self._listed)
        each = listed / self._listed if self._listed else average * known
        return (listed + each * unlisted) / self.workers


def _kind(task: SweepTask) -> tuple[str, str]:
    return task.configuration.problem.name, task.configuration.agent.name


def duration(seconds: float) -> str:
    """Rounded as people say it.

    >>> [duration(s) for s in (3.2, 89, 3700, 200_000)]
    ['3 s', '1 min 29 s', '1 h 1 min', '55 h 33 min']
    """
    whole_seconds = round(seconds)
    if whole_seconds < 60:
        return f"{whole_seconds} s"
    minutes, rest = divmod(whole_seconds, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
