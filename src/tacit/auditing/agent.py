"""Audit of an agent as it is shipped: its reports, by both noise sources, and the whole learner.

The learner is made to publish after every user, whatever its schedule: nothing it releases is then
left unseen by an audit of a few users.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.agents.base import Agent
from tacit.auditing.auditor import AuditReport, audit_target
from tacit.auditing.targets import LearnerTarget, ReportTarget
from tacit.driver import BoundAgent, every_user
from tacit.errors import InvalidInput
from tacit.planners.base import Streams
from tacit.privacy import Query, SimulatedNoise
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.simulation.streams import stream
from tacit.validate import integer, number

LEARNER_USERS = 3
"""Users of the whole-learner audit: enough for two reports to meet in the releases."""

_SECURE_SHARE, _LEARNER_SHARE = 10, 100
_SECURE_CELLS = 4_000_000


@dataclass(frozen=True)
class AgentAudit:
    """All reports of one audit; the first is the headline.

    Attributes:
        reports: one per target, each at its share of the error probability.
        confidence: the probability that every bound in ``reports`` is right.
    """

    reports: tuple[AuditReport, ...]
    confidence: float

    @property
    def verdict(self) -> str:
        """The worst verdict of all."""
        verdicts = {report.verdict for report in self.reports}
        return "violated" if "violated" in verdicts else self.reports[0].verdict

    def to_json(self) -> dict[str, Any]:
        """The report with the largest bound, with the others under ``also``."""
        first, *others = sorted(self.reports, key=lambda r: r.lower_bound, reverse=True)
        return {
            **first.to_json(),
            "confidence": self.confidence,
            "verdict": self.verdict,
            "also": [report.to_json() for report in others],
        }


def audit(
    agent: Agent,
    problem: Problem,
    *,
    trials: int = 100_000,
    confidence: float = 0.95,
    seed: int = 0,
    secure: bool = True,
    progress: Callable[[str], None] | None = None,
) -> AgentAudit:
    """Try to refute an agent's guarantee by running its mechanism on worst-case neighbours.

    Args:
        agent: whose guarantee.
        problem: what its whole learner runs on.
        trials: runs per world on simulated noise; the secure path gets a tenth, the whole learner
            a hundredth of them.
        confidence: that no bound of the audit is above the truth.
        seed: of the simulated runs; secure noise takes none.
        secure: also audit the noise that protects people (needs the ``secure`` extra).
        progress: told what is audited next.
    """
    trials = integer(trials, "trials", low=1000)
    confidence = number(confidence, "confidence", low=0.5, high=1.0, high_open=True)
    bound = agent.bind(problem.task(users=LEARNER_USERS, reveal=sorted(agent.needs)))
    bound = dataclasses.replace(bound, schedule=every_user)
    if bound.statistic.layout.size == 0:
        raise InvalidInput(f"{agent.name} collects nothing, so there is nothing to audit")
    rng = stream(seed, 0, "audit")
    secure = secure and bound.guarantee.model != "none"
    if bound.guarantee.model == "joint":
        plans = _joint_plans(problem, bound, trials, secure)
    else:
        plans = _local_plans(problem, bound, trials, secure, _first_publication(bound, rng))
    each = 1 - (1 - confidence) / len(plans)
    reports = []
    for target, runs in plans:
        if progress is not None:
            progress(f"{target.name}, {target.source} noise, {runs:,} trials")
        reports.append(
            audit_target(
                target,
                bound.guarantee.epsilon,
                bound.guarantee.delta,
                runs,
                confidence=each,
                rng=rng,
            )
        )
    return AgentAudit(tuple(reports), confidence)


Plans = list[tuple[ReportTarget | LearnerTarget, int]]


def _local_plans(
    problem: Problem, bound: BoundAgent, trials: int, secure: bool, publication: Publication
) -> Plans:
    """The report, by both sources, and the learner."""
    plans: Plans = [(ReportTarget(bound, publication, "simulated"), trials)]
    if secure:
        affordable = max(_SECURE_CELLS // bound.statistic.layout.size, 1000)
        runs = min(max(trials // _SECURE_SHARE, 1000), affordable)
        plans.append((ReportTarget(bound, publication, "secure"), runs))
    return [*plans, (LearnerTarget(problem, bound), max(trials // _LEARNER_SHARE, 300))]


def _joint_plans(problem: Problem, bound: BoundAgent, trials: int, secure: bool) -> Plans:
    """What the curator publishes, by both sources."""
    plans: Plans = [(LearnerTarget(problem, bound), max(trials // 10, 1000))]
    if secure:
        plans.append((LearnerTarget(problem, bound, "secure"), max(trials // _LEARNER_SHARE, 300)))
    return plans


def _first_publication(bound: BoundAgent, rng: np.random.Generator) -> Publication:
    noise, privatizer = SimulatedNoise(rng), bound.privatizer
    secret = privatizer.init()
    release = privatizer.release(secret, Query(0), noise)
    return bound.planner.plan(
        bound.task,
        release,
        lambda query: privatizer.release(secret, query, noise),
        None,
        Streams(ties=rng, posterior=rng),
    )
