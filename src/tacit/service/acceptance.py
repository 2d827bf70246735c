"""Which versions of the policy a report may name, by time or by number.

A device that fetched version v did so before version v + 1 was published, and its report is due at
most duration + delay later. So a task with a duration takes v until

    (moment v + 1 was published) + duration + delay + grace

on the server's clock, however many versions have come out since. Without a duration nobody knows
how long an episode takes, and the newest ``accepted_versions`` are taken.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable

import sqlalchemy as sa

from tacit.service.deployment import Deployment
from tacit.service.publishing import timeline


class Acceptance:
    """The rule of one deployment. Times of publications never change, so they are remembered."""

    def __init__(self, deployment: Deployment, clock: Callable[[], float]) -> None:
        self._versions = deployment.accepted_versions
        self._window = deployment.task.duration + deployment.delay + deployment.grace
        self._clock = clock
        self._published: list[float] = []
        self._lock = threading.Lock()

    def oldest(self, connection: sa.Connection, newest: int) -> int:
        """The oldest version that a report may name now."""
        if self._versions is not None:
            return newest - self._versions + 1
        with self._lock:
            if len(self._published) <= newest:
                for _, _, time in timeline(connection, len(self._published) - 1):
                    # Never decreasing: a clock that was set back makes no version end sooner.
                    self._published.append(max([time, *self._published[-1:]]))
            still = bisect.bisect_left(self._published, self._clock() - self._window)
            return max(0, min(still - 1, newest))
