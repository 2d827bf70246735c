"""What is spent and what is to come: users, policies and privacy budget, in words that fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.privacy.accounting import gaussian_epsilon
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.sentences import at_most
from tacit_service.dashboard.facts import Facts
from tacit_service.dashboard.words import counted, whole
from tacit_service.planning.publications import Version

Schedule = Callable[[int], int]
"""Users until the next policy, given how many were served: public."""

WINDOW = 7 * 86_400.0
"""The pace is an average over at least so many seconds, or since the start if that is shorter."""

CENTURY = 100 * 365.25 * 86_400.0

MOST = 1_000_000
"""Policies that are counted one by one."""


@dataclass(frozen=True)
class Outlook:
    """What is left.

    Attributes:
        users_left: until the population is reached.
        policies_left: that will still be published, None where there are too many to count.
        users_per_day: the present pace, None before there is one.
        since: the version since whose publication that pace is an average; None likewise.
        next_policy_at: unix time of the next policy at that pace.
        finished_at: unix time at which the population is reached at that pace; both are None
            where they are a century away.
    """

    users_left: int
    policies_left: int | None
    users_per_day: float | None
    since: Version | None
    next_policy_at: float | None
    finished_at: float | None


def outlook(
    versions: Sequence[Version],
    accepted: int,
    population: int,
    next_batch: int | None,
    schedule: Schedule,
    now: float,
) -> Outlook:
    """From public numbers: the schedule, and when which policy was published."""
    left = population - accepted
    policies = policies_left(versions[-1].users, population, schedule)
    since = _since(versions, now) if left > 0 and accepted > 0 else None
    if since is None:
        return Outlook(left, policies, None, None, None, None)
    pace = (accepted - since.users) / (now - since.published_at)
    soon = _when(next_batch, pace, now) if next_batch else None
    return Outlook(left, policies, 86_400.0 * pace, since, soon, _when(left, pace, now))


def _when(users: int, pace: float, now: float) -> float | None:
    """When so many more users have come, if anybody can still wait for it."""
    return now + users / pace if users < CENTURY * pace else None


def policies_left(served: int, population: int, schedule: Schedule) -> int | None:
    """Batches that still close, the last user's included: each leads to a policy."""
    count = 0
    while served < population:
        served += schedule(served)
        count += 1
        if count > MOST:
            return None
    return count


def _since(versions: Sequence[Version], now: float) -> Version | None:
    """The newest version that is a week old, or the first: whoever came since makes the pace.

    Nothing says when people came between two publications, so the pace of the very last week is not
    known; after silence this one falls to 0.
    """
    known = [v for v in versions if v.published_at < now]
    old = [v for v in known if v.published_at <= now - WINDOW]
    return old[-1] if old else known[0] if known else None


def outlook_of(facts: Facts) -> Outlook:
    """The outlook of a deployment."""
    return outlook(
        facts.versions,
        facts.status.accepted,
        facts.deployment.task.users,
        facts.next_batch,
        facts.deployment.bound.schedule,
        facts.now,
    )


@dataclass(frozen=True)
class Spending:
    """The budget of one person, and what the deployment has used of it.

    Attributes:
        epsilon: of everything one unit loses, at most.
        delta: likewise.
        spent_epsilon: what one report cost its sender (local), or what releases cost so far.
        left_epsilon: what is left after that.
        labels: names of the two.
        share: part of the deployment's budget that is used, for a bar.
        share_of: what the share is a part of.
        words: sentences.
    """

    epsilon: float
    delta: float
    spent_epsilon: float
    left_epsilon: float
    labels: tuple[str, str]
    share: float
    share_of: str
    words: tuple[str, ...]


def spending(facts: Facts, policies_left: int | None) -> Spending:
    """The budget as far as public numbers tell."""
    return _joint(facts, policies_left) if facts.deployment.model == "joint" else _local(facts)


def _local(facts: Facts) -> Spending:
    """Devices spend their own budget, before anything is sent."""
    d = facts.deployment
    stated, times = d.guarantee, d.task.participations
    each = _cost(stated, 1, times)
    who = "Every device" if d.unit == "user" else "Every participation"
    words = [
        f"{who} spends its own budget before it sends anything: epsilon {at_most(each)} per report"
        + (f", {times} reports at most." if times > 1 else f", one report{_in_a_period(stated)}."),
        f"{whole(facts.status.accepted)} of {counted(d.task.users, 'report')} are used; report "
        f"{whole(d.task.users + 1)} is refused.",
    ]
    if d.unit == "participation":
        words.append(
            "All devices share one token, so nobody counts how often a person takes part: the "
            "budget is that of one participation, not of one person."
        )
    return Spending(
        epsilon=stated.epsilon,
        delta=stated.delta,
        spent_epsilon=each,
        left_epsilon=_cost(stated, times - 1, times),
        labels=("One report costs its sender", "Left after one report"),
        share=facts.status.accepted / d.task.users,
        share_of="reports",
        words=tuple(words),
    )


def _in_a_period(stated: Guarantee) -> str:
    return " in a period" if stated.rule is not None and stated.rule.period else ""


def _cost(stated: Guarantee, reports: int, times: int) -> float:
    """Epsilon of some of the reports that a guarantee covers, never too small."""
    if stated.mu is not None:
        return gaussian_epsilon(stated.mu * math.sqrt(reports / times), stated.delta)
    if stated.delta == 0.0:
        return stated.epsilon * reports / times
    return stated.epsilon if reports else 0.0


def _joint(facts: Facts, policies_left: int | None) -> Spending:
    """One charge, before the first noise, pays for all releases."""
    d = facts.deployment
    stated = d.guarantee
    made = sum(v.users > 0 for v in facts.versions)
    charged = any((facts.status.budget["spent"] or {}).values())
    total, within = made + (policies_left or 0), _in_a_period(stated)
    words = [
        f"One charge of epsilon {at_most(stated.epsilon)}, delta {at_most(stated.delta, 2)}, "
        f"written to the ledger before the first noise is drawn, pays for every release{within} of "
        "this deployment.",
        f"{counted(made, 'release')} made, {whole(policies_left or 0)} to come; a release that was "
        "made is never drawn again.",
    ]
    if not charged:
        words.append("Nothing is charged before the first release with reports in it.")
    return Spending(
        epsilon=stated.epsilon,
        delta=stated.delta,
        spent_epsilon=stated.epsilon if charged else 0.0,
        left_epsilon=0.0 if charged else stated.epsilon,
        labels=("Spent", "Left"),
        share=made / total if total else 0.0,
        share_of="releases",
        words=tuple(words),
    )
