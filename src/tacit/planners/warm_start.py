"""A planner that does not begin with nothing: what a release about a log shows is planned on too.

The inner planner sees one release, merged from what the log shows and what the newest online
release shows. People of the log count for it as users who came before the first one, so it explores
less the more the log tried. All of it is post-processing of public numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from tacit.arrays import Array
from tacit.planners.base import Ask, Planner, Streams
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task

TRIED_DEVIATIONS = 2.0
"""Standard deviations of its number of visits above which the log has tried a pair.

Chosen on small chains, queues and inventories (docs/results/coach.md); no script of it is kept.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class WarmStartPlanner:
    """Another planner, on releases that were merged with one about a log.

    Attributes:
        inner: plans.
        merge: an online release -> the same with what the log shows; before the first one, what the
            log shows alone.
        task: the public task, with the people of the log among its users.
    """

    inner: Planner
    merge: Callable[[Release], Release]
    task: Task
    _merged: WeakKeyDictionary[Release, Release] = field(default_factory=WeakKeyDictionary)

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """What the inner planner makes of both; several plans on one release share one merger."""
        if release not in self._merged:
            self._merged[release] = self.merge(release)
        return self.inner.plan(self.task, self._merged[release], ask, previous, streams)


def share_tried(task: Task, totals: Array, std: float) -> float:
    """In the states that people of a log were in, the share of further actions that they tried.

    Further than one per state: a log of one habit says nothing about what else could be done,
    however long it is. Its people then do not count, and exploring goes on.

    Args:
        task: says what could be done.
        totals: noisy numbers of visits of the pairs [X].
        std: of their noise.
    """
    seen = np.bincount(task.pairs.state, totals > TRIED_DEVIATIONS * std, len(task.pairs.number))
    met = seen > 0.0
    further = np.diff(task.pairs.first)[met] - 1
    return float((seen[met] - 1.0).sum() / max(further.sum(), 1))
