"""Agents that learn from a log: what each counts, and how it plans on the one release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tacit.errors import InvalidInput, UnknownName, suggestion
from tacit.logs.mapping import Mapped
from tacit.planners.apvi import apvi_policy
from tacit.planners.offline import improved_policy, pessimistic_policy
from tacit.policies.base import Policy
from tacit.release import Release
from tacit.statistics.log_sums import LoggedOutcomes, LoggedStages, LoggedVisits, LogStatistic
from tacit.task.task import Task
from tacit.validate import choice, number

LARGE = 200
"""States above which transitions drown in noise, and outcomes of pairs are counted instead."""


@dataclass(frozen=True)
class TacitOffline:
    """First visits of pairs and pessimistic planning; outcomes of pairs in large tables.

    Attributes:
        counts: "transitions" or "outcomes"; "auto" counts outcomes above 200 states.
    """

    counts: Literal["auto", "transitions", "outcomes"] = "auto"

    def __post_init__(self) -> None:
        choice(self.counts, "counts", ("auto", "transitions", "outcomes"))

    def statistic(self, mapped: Mapped) -> LogStatistic:
        """A person teaches as many pairs as one episode has steps; half as many outcomes."""
        task = mapped.task
        large = task.sizes["states"] > LARGE
        if self.counts == "outcomes" or (self.counts == "auto" and large):
            return LoggedOutcomes(task, max(1, task.horizon // 2), mapped.top)
        return LoggedVisits(task, task.horizon, mapped.top)

    def policy(self, task: Task, release: Release) -> Policy:
        """The best policy by its lower value, or the behaviour improved by one step."""
        if "outcomes" in release.blocks:
            return improved_policy(task, release)
        return pessimistic_policy(task, release)


@dataclass(frozen=True)
class DpApvi:
    """Published pessimism on counts of every stage (Qiao and Wang 2023).

    Attributes:
        bonus_scale: multiplies the penalty; 1 is the theorem.
    """

    bonus_scale: float = 1.0

    def __post_init__(self) -> None:
        number(self.bonus_scale, "bonus_scale", low=0.0, high=1e9)

    def statistic(self, mapped: Mapped) -> LogStatistic:
        """All steps of everybody's first episode, stage by stage."""
        return LoggedStages(mapped.task, mapped.top)

    def policy(self, task: Task, release: Release) -> Policy:
        """Pessimistic backward induction."""
        return apvi_policy(task, release, self.bonus_scale, regression=False)


@dataclass(frozen=True)
class DpVapvi(DpApvi):
    """The same by variance-weighted regression, with one feature per pair."""

    def policy(self, task: Task, release: Release) -> Policy:
        """Pessimistic backward induction."""
        return apvi_policy(task, release, self.bonus_scale, regression=True)


OfflineAgent = TacitOffline | DpApvi
AGENTS: Mapping[str, Callable[..., OfflineAgent]] = {
    "tacit-offline": TacitOffline,
    "dp-apvi": DpApvi,
    "dp-vapvi": DpVapvi,
}


def offline_agent(name: str, parameters: Mapping[str, Any] | None = None) -> OfflineAgent:
    """The agent of that name."""
    if name not in AGENTS:
        raise UnknownName("agent for logs", name, AGENTS)
    made, given = AGENTS[name], dict(parameters or {})
    known = list(made.__dataclass_fields__)  # type: ignore[attr-defined]
    for key in given:
        if key not in known:
            raise InvalidInput(f"{name} has no parameter {key!r}{suggestion(key, known)}")
    return made(**given)
