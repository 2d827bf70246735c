"""Looks at a collector's public numbers; what never changes is worked out once and remembered."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.service.answers import Status
from tacit.service.dashboard.estimate import Estimate, estimate
from tacit.service.dashboard.facts import Facts, Version

if TYPE_CHECKING:
    from tacit.service.collector import Collector

GROWTH = 1.15
"""Values are estimated for the newest version and for versions that grow by this factor."""

PATIENCE = 0.5
"""Seconds one look spends on estimates of older versions; later looks do the rest."""

FRESH = 1.0
"""Seconds for which estimates and the action map are used again: many watchers cost little more
than one. Numbers of users and versions are always those of now."""


class Watch:
    """The dashboard's eyes. Safe to share between threads."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._lock = threading.Lock()
        self._versions: list[Version] = []
        self._estimates: dict[int, Estimate] = {}
        self._looks: dict[int | None, tuple[float, Facts]] = {}

    def look(self, version: int | None) -> Facts:
        """Public numbers of now, with the action map of a version (None, or unknown: newest)."""
        with self._lock:
            status = self._collector.status()
            at, facts = self._looks.get(version, (-FRESH, None))
            old = time.monotonic() - at >= FRESH
            if facts is None or old or status.version >= len(facts.versions):
                facts = self._look(version, status)
                fresh = time.monotonic()
                self._looks = {v: x for v, x in self._looks.items() if fresh - x[0] < FRESH}
                self._looks[version] = (fresh, facts)
            return replace(
                facts,
                now=self._collector.clock(),
                accepted=status.accepted,
                next_batch=None if status.finished else status.next_batch,
                planner_alive=status.planner_alive,
            )

    def _look(self, version: int | None, status: Status) -> Facts:
        collector = self._collector
        self._catch_up(status.version)
        newest = len(self._versions) - 1
        shown = newest if version is None or not 0 <= version <= newest else version
        return Facts(
            deployment=collector.deployment,
            now=collector.clock(),
            accepted=status.accepted,
            next_batch=None if status.finished else status.next_batch,
            planner_alive=status.planner_alive,
            versions=tuple(self._versions),
            shown=collector.published(shown).publication if newest >= 0 else None,
            before=collector.published(shown - 1).publication if shown > 0 else None,
            estimates=dict(self._estimates),
            ledger=status.budget,
            schema=collector.schema(),
        )

    def _catch_up(self, newest: int) -> None:
        """Read new versions, and work out what is said about them."""
        if newest >= len(self._versions):
            for entry in self._collector.timeline(after=len(self._versions) - 1):
                self._versions.append(Version(*entry))
        wanted = chosen(len(self._versions))
        for forgotten in set(self._estimates) - set(wanted):
            del self._estimates[forgotten]
        started = time.monotonic()
        for version in wanted:
            if version not in self._estimates and version == wanted[0]:
                self._estimates[version] = self._estimate(version)
            elif version not in self._estimates and time.monotonic() - started < PATIENCE:
                self._estimates[version] = self._estimate(version)

    def _estimate(self, version: int) -> Estimate:
        bound, entry = self._collector.deployment.bound, self._collector.published(version)
        return estimate(bound.task, bound.planner, entry.release, entry.publication, version)


def chosen(count: int) -> list[int]:
    """Versions whose value is estimated, the newest first: few, however many there are."""
    found, version = {count - 1} if count else set(), 1
    while version < count:
        found.add(version)
        version = max(version + 1, round(GROWTH * version))
    return sorted(found, reverse=True)
