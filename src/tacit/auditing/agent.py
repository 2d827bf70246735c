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
from tacit.auditing.shuffle import BatchTarget
from tacit.auditing.targets import LearnerTarget, ReportTarget
from tacit.driver import BoundAgent, every_user
from tacit.errors import InvalidInput
from tacit.planners.base import Streams
from tacit.privacy import Guarantee, Query, SimulatedNoise
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.simulation.streams import stream
from tacit.validate import integer, number

LEARNER_USERS = 3
"""Users of the whole-learner audit: enough for two reports to meet in the releases."""

_ROUNDING = 1e-12
"""Relative error of an exact epsilon that is worked out in floats."""

SHUFFLED_USERS = 1000
"""Users per step that a shuffled agent is fitted to: its batches are then small by default."""

_SECURE_SHARE, _LEARNER_SHARE = 10, 100
_SECURE_CELLS = 4_000_000


@dataclass(frozen=True)
class AgentAudit:
    """All reports of one audit; the first is the headline.

    Attributes:
        reports: one per target, each at its share of the error probability.
        confidence: the probability that every bound in ``reports`` is right.
        exact_epsilon: of one report, from its probabilities, where it has finitely many outputs.
        remarks: what was not audited, and why.
    """

    reports: tuple[AuditReport, ...]
    confidence: float
    exact_epsilon: float | None = None
    remarks: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The worst verdict of all, the exact one included."""
        verdicts = {report.verdict for report in self.reports}
        claimed = self.reports[0].claimed_epsilon
        if self.exact_epsilon is not None and self.exact_epsilon > claimed * (1 + _ROUNDING):
            return "violated"
        return "violated" if "violated" in verdicts else self.reports[0].verdict

    def to_json(self) -> dict[str, Any]:
        """The report with the largest bound, with the others under ``also``."""
        first, *others = sorted(self.reports, key=lambda r: r.lower_bound, reverse=True)
        return {
            **first.to_json(),
            "confidence": self.confidence,
            "verdict": self.verdict,
            "exact_epsilon": self.exact_epsilon,
            "remarks": list(self.remarks),
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
        trials: runs of one report per world on simulated noise; secure reports and the learner of a
            curator get a tenth of them, a learner on secure or local noise a hundredth.
        confidence: that no bound of the audit is above the truth.
        seed: of the simulated runs; secure noise takes none.
        secure: also audit the noise that protects people (needs the ``secure`` extra).
        progress: told what is audited next.
    """
    trials = integer(trials, "trials", low=1000)
    confidence = number(confidence, "confidence", low=0.5, high=1.0, high_open=True)
    bound = agent.bind(problem.task(users=LEARNER_USERS, reveal=sorted(agent.needs)))
    if bound.guarantee.model == "shuffle":
        users = SHUFFLED_USERS * bound.task.horizon
        bound = agent.bind(problem.task(users=users, reveal=sorted(agent.needs)))
    bound = dataclasses.replace(bound, schedule=every_user)
    if bound.statistic.layout.size == 0:
        raise InvalidInput(f"{agent.name} collects nothing, so there is nothing to audit")
    rng = stream(seed, 0, "audit")
    secure, remarks = _secure_path(bound, secure and bound.guarantee.model != "none")
    if bound.guarantee.model == "joint":
        plans = _joint_plans(problem, bound, trials, secure)
    elif bound.guarantee.model == "shuffle":
        plans = _shuffle_plans(bound, trials, secure, _first_publication(bound, rng))
    else:
        plans = _local_plans(problem, bound, trials, secure, _first_publication(bound, rng))
    each = 1 - (1 - confidence) / len(plans)
    reports = []
    for target, runs in plans:
        if progress is not None:
            progress(f"{target.name}, {target.source} noise, {runs:,} trials")
        claim = _claim(bound.guarantee, target)
        reports.append(
            audit_target(target, claim.epsilon, claim.delta, runs, confidence=each, rng=rng)
        )
    return AgentAudit(tuple(reports), confidence, _exact_epsilon(bound), remarks)


def _secure_path(bound: BoundAgent, wanted: bool) -> tuple[bool, tuple[str, ...]]:
    """Whether to audit secure noise, and what to say where there is none."""
    if getattr(bound.privatizer, "kind", None) != "bounded":
        return wanted, ()
    return False, ("bounded noise has no exact sampler, so there is no secure path to audit",)


def _exact_epsilon(bound: BoundAgent) -> float | None:
    """Epsilon of one report by its worst pairs of output laws, where the privatizer has them."""
    channels = getattr(bound.privatizer, "channels", None)
    return None if channels is None else max(float(pair.epsilon) for pair in channels())


AnyTarget = ReportTarget | LearnerTarget | BatchTarget
Plans = list[tuple[AnyTarget, int]]


def _claim(guarantee: Guarantee, target: AnyTarget) -> Guarantee:
    """What is said of a target: before the shuffler a report has its local guarantee only."""
    if guarantee.model == "shuffle" and isinstance(target, ReportTarget):
        return guarantee.also[0]
    return guarantee


def _report_plans(bound: BoundAgent, trials: int, secure: bool, publication: Publication) -> Plans:
    """One report, by both sources."""
    plans: Plans = [(ReportTarget(bound, publication, "simulated"), trials)]
    if secure:
        affordable = max(_SECURE_CELLS // bound.statistic.layout.size, 1000)
        runs = min(max(trials // _SECURE_SHARE, 1000), affordable)
        plans.append((ReportTarget(bound, publication, "secure"), runs))
    return plans


def _shuffle_plans(bound: BoundAgent, trials: int, secure: bool, publication: Publication) -> Plans:
    """The report before the shuffler, and a batch after it."""
    plans = _report_plans(bound, trials, secure, publication)
    return [*plans, (BatchTarget(bound, publication), max(trials // _LEARNER_SHARE, 300))]


def _local_plans(
    problem: Problem, bound: BoundAgent, trials: int, secure: bool, publication: Publication
) -> Plans:
    """The report, by both sources, and the learner."""
    plans = _report_plans(bound, trials, secure, publication)
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
