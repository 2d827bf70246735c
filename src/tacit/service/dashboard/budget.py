"""What of the privacy budget is spent and left, in words that fit the privacy model."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.privacy.accounting import gaussian_epsilon
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.sentences import at_most
from tacit.service.dashboard.facts import Facts
from tacit.service.dashboard.words import counted, whole


@dataclass(frozen=True)
class Budget:
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


def budget(facts: Facts, policies_left: int | None) -> Budget:
    """The budget as far as public numbers tell."""
    if facts.deployment.model == "joint":
        return _joint(facts, policies_left)
    return _local(facts)


def _local(facts: Facts) -> Budget:
    """Devices spend their own budget, before anything is sent."""
    d = facts.deployment
    stated, times = d.guarantee, d.task.participations
    each = _cost(stated, 1, times)
    who = "Every device" if d.unit == "user" else "Every participation"
    words = [
        f"{who} spends its own budget before it sends anything: epsilon {at_most(each)} per report"
        + (f", {times} reports at most." if times > 1 else ", one report."),
        f"{whole(facts.accepted)} of {counted(d.task.users, 'report')} are used; report "
        f"{whole(d.task.users + 1)} is refused.",
    ]
    if d.unit == "participation":
        words.append(
            "All devices share one token, so nobody counts how often a person takes part: the "
            "budget is that of one participation, not of one person."
        )
    return Budget(
        epsilon=stated.epsilon,
        delta=stated.delta,
        spent_epsilon=each,
        left_epsilon=_cost(stated, times - 1, times),
        labels=("One report costs its sender", "Left after one report"),
        share=facts.accepted / d.task.users,
        share_of="reports",
        words=tuple(words),
    )


def _cost(stated: Guarantee, reports: int, times: int) -> float:
    """Epsilon of some of the reports that a guarantee covers, never too small."""
    if stated.mu is not None:
        return gaussian_epsilon(stated.mu * math.sqrt(reports / times), stated.delta)
    if stated.delta == 0.0:
        return stated.epsilon * reports / times
    return stated.epsilon if reports else 0.0


def _joint(facts: Facts, policies_left: int | None) -> Budget:
    """One charge, before the first noise, pays for all releases."""
    d = facts.deployment
    stated = d.guarantee
    made = sum(v.users > 0 for v in facts.versions)
    charged = any((facts.ledger.get("spent") or {}).values())
    total = made + (policies_left or 0)
    words = [
        f"One charge of epsilon {at_most(stated.epsilon)}, delta {at_most(stated.delta, 2)}, "
        "written to the ledger before the first noise is drawn, pays for every release of this "
        "deployment.",
        f"{counted(made, 'release')} made, {whole(policies_left or 0)} to come; a release that was "
        "made is never drawn again.",
    ]
    if not charged:
        words.append("Nothing is charged before the first release with users in it.")
    return Budget(
        epsilon=stated.epsilon,
        delta=stated.delta,
        spent_epsilon=stated.epsilon if charged else 0.0,
        left_epsilon=0.0 if charged else stated.epsilon,
        labels=("Spent", "Left"),
        share=made / total if total else 0.0,
        share_of="releases",
        words=tuple(words),
    )
