"""What the dashboard may know: public numbers of the collector, and nothing else.

What never changes is worked out once and remembered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.planners.evaluation.by_release import Estimate, estimate, played
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.publication import Publication
from tacit.task.task import table_sizes
from tacit_service.responses import Status, Trouble

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.config.deployment import Deployment, Ids


@dataclass(frozen=True)
class Version:
    """When a policy was published, and how many users are in the release behind it."""

    version: int
    users: int
    published_at: float


@dataclass(frozen=True)
class Facts:
    """A deployment at one moment.

    Attributes:
        deployment: what the operator declared.
        now: the moment, in unix time.
        accepted: reports counted so far.
        next_batch: further reports until the next policy can be planned; None after the last.
        state: "open", "paused" or "closed".
        planner_alive: whether somebody plans.
        trouble: why the service is not ready, None if it is.
        versions: every publication, oldest first.
        shown: the publication whose action map is shown.
        before: the one before it, None for the first.
        estimates: by version, as far as they were worked out.
        ledger: its public summary.
        schema: version of the database's schema.
        ids: who decides the ids of reports.
    """

    deployment: Deployment
    now: float
    accepted: int
    next_batch: int | None
    state: str
    planner_alive: bool
    trouble: Trouble | None
    versions: Sequence[Version]
    shown: Publication | None
    before: Publication | None
    estimates: Mapping[int, Estimate]
    ledger: Mapping[str, Any]
    schema: str
    ids: Ids = "chosen"


GROWTH = 1.15
"""Values are estimated for the newest version and for versions that grow by this factor."""

PATIENCE = 0.5
"""Seconds one reading spends on estimates of older versions; later ones do the rest."""

FRESH = 1.0
"""Seconds for which estimates and the action map are used again: many watchers cost little more
than one. Numbers of users and versions are always those of now."""


class FactReader:
    """Reads facts from a collector. Safe to share between threads."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._lock = threading.Lock()
        self._versions: list[Version] = []
        self._estimates: dict[int, Estimate] = {}
        self._recent: dict[int | None, tuple[float, Facts]] = {}

    def read(self, version: int | None) -> Facts:
        """Public numbers of now, with the action map of a version (None, or unknown: newest)."""
        with self._lock:
            status = self._collector.status()
            at, facts = self._recent.get(version, (-FRESH, None))
            old = time.monotonic() - at >= FRESH
            if facts is None or old or status.version >= len(facts.versions):
                facts = self._read(version, status)
                fresh = time.monotonic()
                self._recent = {v: x for v, x in self._recent.items() if fresh - x[0] < FRESH}
                self._recent[version] = (fresh, facts)
            return replace(
                facts,
                now=self._collector.clock(),
                accepted=status.accepted,
                next_batch=None if status.finished else status.next_batch,
                state=status.state,
                planner_alive=status.planner_alive,
                trouble=status.trouble,
            )

    def _read(self, version: int | None, status: Status) -> Facts:
        collector = self._collector
        self._catch_up(status.version)
        newest = len(self._versions) - 1
        shown = newest if version is None or not 0 <= version <= newest else version
        return Facts(
            deployment=collector.deployment,
            now=collector.clock(),
            accepted=status.accepted,
            next_batch=None if status.finished else status.next_batch,
            state=status.state,
            planner_alive=status.planner_alive,
            trouble=status.trouble,
            versions=tuple(self._versions),
            shown=collector.billboard.published(shown).publication if newest >= 0 else None,
            before=collector.billboard.published(shown - 1).publication if shown > 0 else None,
            estimates=dict(self._estimates),
            ledger=status.budget,
            schema=collector.schema(),
            ids=collector.ids,
        )

    def _catch_up(self, newest: int) -> None:
        """Read new versions, and work out what is said about them."""
        if newest >= len(self._versions):
            for entry in self._collector.billboard.timeline(after=len(self._versions) - 1):
                self._versions.append(Version(*entry))
        wanted = chosen(len(self._versions))
        for forgotten in set(self._estimates) - set(wanted):
            del self._estimates[forgotten]
        started = time.monotonic()
        for version in wanted:
            now = version == wanted[0] or time.monotonic() - started < PATIENCE
            if now and version not in self._estimates:
                self._estimates[version] = self._estimate(version)

    def _estimate(self, version: int) -> Estimate:
        bound, entry = (
            self._collector.deployment.bound,
            self._collector.billboard.published(version),
        )
        if self._collector.deployment.ticketed:
            return played(entry.publication)
        return estimate(
            bound.task, bound.planner, entry.release, entry.publication, version, self._baselines()
        )

    def _baselines(self) -> dict[str, Policy]:
        """What a policy is compared with: all of it public."""
        deployment = self._collector.deployment
        task = deployment.task
        H, S, A = table_sizes(task)
        names = deployment.labels["actions"]
        same = f"{names[0]!r} always" if names else "action 0 always"
        return {
            same: TabularPolicy(np.zeros((H, S), dtype=np.int64)),
            "an action at random": uniform_policy(H, S, A),
            "the first policy": self._collector.billboard.published(0).publication.policy,
        }


def chosen(count: int) -> list[int]:
    """Versions whose value is estimated, the newest first: few, however many there are."""
    found, version = {count - 1} if count else set(), 1
    while version < count:
        found.add(version)
        version = max(version + 1, round(GROWTH * version))
    return sorted(found, reverse=True)
