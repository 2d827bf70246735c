"""What the stated pace of people means: how often policies come, and who would be too late.

Computed from the file alone. People begin evenly at the pace; a policy lasts until its batch is
full and its cadence is over; a device sends when its report is due, or up to ``LATE`` after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.util.durations import DAY
from tacit_service.dashboard.words import length, percent, real

if TYPE_CHECKING:
    from tacit_service.config.deployment import Deployment

LATE = DAY
"""How late an app can be that is opened once a day."""

MOST_LOST = 0.5
"""A larger share of late reports lost is refused: most people would take part for nothing."""

_FINE = (np.arange(200) + 0.5) / 200
"""Even points of [0, 1], to average over."""


@dataclass(frozen=True)
class ArrivalForecast:
    """A deployment at its pace; times in seconds.

    Attributes:
        per_day: people who begin in a day.
        policy_every: from one policy to the next, at the earliest.
        first_policy: from the first person to the first policy that learned something.
        complete: from the first person to the last report of the population.
        lost_on_time: share of reports lost whose devices send when they are due; None where the
            task has no duration, because it depends on how long episodes take.
        lost_late: likewise of those that come up to ``LATE`` later, evenly.
        arriving: share of the population whose reports are due before the task closes.
        spared: an episode without a declared duration that takes no longer is never stale.
        stale: one that takes longer always is.
    """

    per_day: float
    policy_every: float
    first_policy: float
    complete: float
    lost_on_time: float | None
    lost_late: float | None
    arriving: float
    spared: float | None
    stale: float | None


def pacing(deployment: Deployment) -> ArrivalForecast | None:
    """What follows from the pace; None where none is stated."""
    pace = deployment.settings.population.pace
    if pace is None:
        return None
    task, delay, versions = deployment.task, deployment.delay, deployment.accepted_versions
    batch = first_batch(deployment)
    updates = deployment.settings.updates
    filling = (batch if deployment.ticketed else updates.minimum_batch) / pace
    every = max(filling, updates.cadence)
    on_the_way = task.duration + delay / 2
    waited = task.duration + delay + deployment.grace
    timed = versions is None
    room = _room(deployment)
    first, complete = batch / pace + on_the_way, task.users / pace + on_the_way
    if deployment.ticketed:  # batches one after the other, each waited for
        every = max(filling + waited, updates.cadence)
        first, complete = batch / pace + waited, math.ceil(task.users / batch) * every
    return ArrivalForecast(
        per_day=pace * DAY,
        policy_every=every,
        first_policy=first,
        complete=complete,
        lost_on_time=_lost(deployment, filling, 0.0) if timed else None,
        lost_late=_lost(deployment, filling, LATE) if timed else None,
        arriving=1.0 if room is None else min(1.0, max(0.0, room) * pace / task.users),
        spared=None if versions is None else (versions - 1) * every,
        stale=None if versions is None else versions * every,
    )


def first_batch(deployment: Deployment) -> int:
    """Reports before the first policy that learned something."""
    return min(deployment.bound.schedule(0), deployment.task.users)


def _lost(deployment: Deployment, every: float, late: float) -> float:
    """Share of reports that come after their version has ended, if they are up to so late.

    A version ends duration + delay + grace after it was replaced. Its readers began up to ``every``
    before that, and drew up to ``delay``: by so much they may be later than the grace.
    """
    slack = every * _FINE[:, None] + deployment.delay * _FINE + deployment.grace
    if not late:
        return float((slack < 0.0).mean())
    return float(np.clip(1.0 - slack / late, 0.0, 1.0).mean())


def _room(deployment: Deployment) -> float | None:
    """How long people can begin after it opened and still report; None if it does not close."""
    window = deployment.settings.window
    if window.opens is None or window.closes is None:
        return None
    return window.closes - window.opens - deployment.task.duration - deployment.delay


def impossible(deployment: Deployment) -> list[str]:
    """What cannot be meant, in sentences: each says what to change."""
    mistakes, room, task = [], _room(deployment), deployment.task
    cadence, window = deployment.settings.updates.cadence, deployment.settings.window
    batch, now = first_batch(deployment), pacing(deployment)
    if room is not None and room <= 0.0:
        mistakes.append(
            "no report can be due before the task closes: duration and delay are longer than "
            "[window]; close later, or make the episode shorter"
        )
    if window.opens is not None and window.closes is not None:
        if cadence >= window.closes - window.opens:
            mistakes.append(
                "no policy would follow the first one: cadence in [updates] is longer than "
                "[window]; make it shorter, or close later"
            )
    if batch >= task.users:
        mistakes.append(
            f"nothing would be learned: the first batch takes {batch:,} reports and there are "
            f"{task.users:,}; lower minimum_batch in [updates]"
        )
    if now is None:
        return mistakes
    if room is not None and 0.0 < room * now.per_day / DAY < batch:
        mistakes.append(
            f"the first batch of {batch:,} would never fill: at {real(now.per_day)} people a day "
            f"{int(room * now.per_day / DAY):,} can report before the task closes; lower "
            "minimum_batch, or close later"
        )
    if now.lost_late is not None and now.lost_late > MOST_LOST:
        mistakes.append(
            f"{percent(now.lost_late)} of the reports that come up to {length(LATE)} late would "
            "be lost, and apps are not opened in the second that is due; make grace in [updates] "
            "longer, or leave it out"
        )
    return mistakes


def sentences(now: ArrivalForecast, users: int) -> list[str]:
    """What to expect, for the operator."""
    lines = [
        f"At {real(now.per_day)} people a day: the first policy that learned something after "
        f"{length(now.first_policy)}, then at most one every {length(now.policy_every)}; all "
        f"{users:,} reports after {length(now.complete)}, if nobody drops out"
    ]
    if now.lost_on_time is not None and now.lost_late is not None:
        lines.append(
            f"Lost because they come too late: {percent(now.lost_on_time)} of reports on time, "
            f"{percent(now.lost_late)} of those that come up to {length(LATE)} late"
        )
    elif now.spared is not None and now.stale is not None:
        lines.append(
            f"Without duration in [task]: an episode that takes up to {length(now.spared)} is "
            f"never lost, one that takes longer than {length(now.stale)} always is"
        )
    if now.arriving < 1.0:
        lines.append(
            f"The task closes when {percent(now.arriving)} of the population can have reported"
        )
    return lines
