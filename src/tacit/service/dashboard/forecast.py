"""How many users and policies are still to come, and when, at the present pace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.service.dashboard.facts import Version

Schedule = Callable[[int], int]
"""Users until the next policy, given how many were served: public."""

WINDOW = 7 * 86_400.0
"""The pace is that of the last so many seconds, or since the version before if that is longer."""

CENTURY = 100 * 365.25 * 86_400.0

MOST = 1_000_000
"""Policies that are counted one by one."""


@dataclass(frozen=True)
class Forecast:
    """What is left.

    Attributes:
        users_left: until the population is reached.
        policies_left: that will still be published, None where there are too many to count.
        users_per_day: the present pace, None before there is one.
        next_policy_at: unix time of the next policy at that pace.
        finished_at: unix time at which the population is reached at that pace; both are None
            where they are a century away.
    """

    users_left: int
    policies_left: int | None
    users_per_day: float | None
    next_policy_at: float | None
    finished_at: float | None


def forecast(
    versions: Sequence[Version],
    accepted: int,
    population: int,
    next_batch: int | None,
    schedule: Schedule,
    now: float,
) -> Forecast:
    """From public numbers: the schedule, and when which policy was published."""
    left = population - accepted
    policies = policies_left(versions[-1].users if versions else 0, population, schedule)
    pace = _pace(versions, accepted, now) if left > 0 else None
    if pace is None:
        return Forecast(left, policies, None, None, None)
    soon = _when(next_batch, pace, now) if next_batch else None
    return Forecast(left, policies, 86_400.0 * pace, soon, _when(left, pace, now))


def _when(users: int, pace: float, now: float) -> float | None:
    """When so many more users have come, if anybody can still wait for it."""
    return now + users / pace if users / pace < CENTURY else None


def policies_left(served: int, population: int, schedule: Schedule) -> int | None:
    """Batches that still close before the last user; nobody would act on a policy after that."""
    count = 0
    while True:
        served += schedule(served)
        if served >= population:
            return count
        count += 1
        if count > MOST:
            return None


def _pace(versions: Sequence[Version], accepted: int, now: float) -> float | None:
    """Users per second since the oldest version in the window."""
    earlier = [v for v in versions if v.users < accepted and v.published_at < now]
    if not earlier:
        return None
    since = next((v for v in earlier if v.published_at >= now - WINDOW), earlier[-1])
    return (accepted - since.users) / (now - since.published_at)
