"""What the dashboard may know: public numbers of the collector, and nothing else.

What never changes is worked out once and remembered.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.planners.evaluation.by_release import ValueBand, value_band, value_of_played_batch
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.publication import Publication
from tacit.task.task import table_sizes
from tacit_service.planning.publications import Version
from tacit_service.responses import Status

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.config.deployment import Deployment, Ids


@dataclass(frozen=True)
class Facts:
    """A deployment at one moment.

    Attributes:
        deployment: what the operator declared.
        now: the moment, in unix time.
        status: public numbers of that moment.
        versions: every publication, oldest first; there is at least one.
        shown: the publication whose action map is shown.
        before: the one before it, None for the first.
        estimates: by version, as far as they were worked out.
        schema: version of the database's schema.
        ids: who decides the ids of reports.
    """

    deployment: Deployment
    now: float
    status: Status
    versions: Sequence[Version]
    shown: Publication
    before: Publication | None
    estimates: Mapping[int, ValueBand]
    schema: str
    ids: Ids

    @property
    def next_batch(self) -> int | None:
        """Further reports until the next policy can be planned; None after the last."""
        return None if self.status.finished else self.status.next_batch


GROWTH = 1.15
"""Values are estimated for the newest version and for versions that grow by this factor."""

PATIENCE = 0.5
"""Seconds one reading spends on estimates of older versions; later ones do the rest."""

FRESH = 1.0
"""Seconds for which estimates are used again: many watchers cost little more than one. Numbers of
users and versions are always those of now."""


class FactReader:
    """Reads facts from a collector. Safe to share between threads."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._lock = threading.Lock()
        self._versions: list[Version] = []
        self._estimates: dict[int, ValueBand] = {}
        self._schema = ""
        self._caught_up = -math.inf

    def read(self, version: int | None) -> Facts:
        """Public numbers of now, with the action map of a version (None, or unknown: newest)."""
        collector, publications = self._collector, self._collector.publications
        with self._lock:
            status = collector.status()
            old = time.monotonic() - self._caught_up >= FRESH
            if old or status.version >= len(self._versions):
                self._catch_up(status.version)
                self._caught_up = time.monotonic()
            newest = len(self._versions) - 1
            shown = newest if version is None or not 0 <= version <= newest else version
            return Facts(
                deployment=collector.deployment,
                now=collector.clock(),
                status=status,
                versions=tuple(self._versions),
                shown=publications.publication(shown),
                before=publications.publication(shown - 1) if shown else None,
                estimates=dict(self._estimates),
                schema=self._schema,
                ids=collector.ids,
            )

    def _catch_up(self, newest: int) -> None:
        """Read new versions, and work out what is said about them."""
        self._schema = self._collector.schema()
        if newest >= len(self._versions):
            self._versions += self._collector.publications.timeline(len(self._versions) - 1)
        wanted = chosen(len(self._versions))
        self._estimates = {v: e for v, e in self._estimates.items() if v in wanted}
        started = time.monotonic()
        for version in wanted:
            now = version == wanted[0] or time.monotonic() - started < PATIENCE
            if now and version not in self._estimates:
                self._estimates[version] = self._estimate(version)

    def _estimate(self, version: int) -> ValueBand:
        deployment, publications = self._collector.deployment, self._collector.publications
        if deployment.ticketed:
            return value_of_played_batch(publications.publication(version))
        H, S, A = table_sizes(deployment.task)
        names = deployment.labels["actions"]
        same = f"{names[0]!r} always" if names else "action 0 always"
        baselines: dict[str, Policy] = {  # all of it public
            same: TabularPolicy(np.zeros((H, S), dtype=np.int64)),
            "an action at random": uniform_policy(H, S, A),
            "the first policy": publications.published(0).publication.policy,
        }
        planner, made = deployment.bound.planner, publications.published(version)
        return value_band(
            deployment.task, planner, made.release, made.publication, version, baselines
        )


def chosen(count: int) -> list[int]:
    """Versions whose value is estimated, the newest first: few, however many there are."""
    versions, version = {count - 1} if count else set(), 1
    while version < count:
        versions.add(version)
        version = max(version + 1, round(GROWTH * version))
    return sorted(versions, reverse=True)
