"""Audit of an agent as it is shipped: what devices send, what learners publish, by both sources."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from tacit.agents.base import Agent
from tacit.auditing import targets
from tacit.auditing.auditor import MIN_TRIALS, Target, audit_target
from tacit.auditing.findings import AuditReport
from tacit.auditing.lifetimes import LifeTarget, batches_of, steps_needed, worst_lives
from tacit.auditing.neighbours import NeighbourPair, canaries, worst_cases
from tacit.auditing.targets import AuditedSource
from tacit.errors import InvalidInput
from tacit.experiment import bind, resolve
from tacit.learner import BoundAgent, Learner
from tacit.planners.base import Streams
from tacit.privacy import Guarantee, SimulatedNoise
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.simulation.runs.base import require_counts
from tacit.statistics.base import bounds_lifetimes
from tacit.streams import stream
from tacit.task.participation import Participation
from tacit.validate import integer, number

OTHER_USERS = 2
"""Users of an audited learner besides the audited person: later releases must meet their data."""

_ROUNDING = 1e-12
"""Relative error of an exact epsilon that is worked out in floats."""

SHUFFLED_USERS = 1000
"""Users per step that a shuffled agent is fitted to: its batches are then small by default."""

_ORDER = ("violated", "no evidence", "consistent", "no claim")


@dataclass(frozen=True)
class AgentAudit:
    """All reports of one audit; the first is the headline.

    Attributes:
        reports: one per target, each at its share of the error probability.
        confidence: the probability that every bound in ``reports`` is right.
        beside: those of ``reports`` whose outputs follow from what others already audit.
        exact_epsilon: of one person's reports, from their probabilities, where a report has
            finitely many outputs.
        remarks: what was not audited, and why.
    """

    reports: tuple[AuditReport, ...]
    confidence: float
    beside: tuple[AuditReport, ...] = ()
    exact_epsilon: float | None = None
    remarks: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The worst verdict of all, the exact one included.

        Paths ``beside`` the claim can refute it; that they show nothing says nothing about it.
        """
        claimed = self.reports[0].claimed_epsilon
        if self.exact_epsilon is not None and self.exact_epsilon > claimed * (1 + _ROUNDING):
            return "violated"
        counted = [r for r in self.reports if r not in self.beside or r.verdict == "violated"]
        return min((report.verdict for report in counted), key=_ORDER.index)

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
    problem: Problem | str,
    agent: Agent | str,
    *,
    trials: int = 1_000_000,
    confidence: float = 0.95,
    participations: int | Participation = 1,
    seconds: float = 180.0,
    seed: int = 0,
    secure: bool = True,
    service: bool = False,
    progress: Callable[[str], None] | None = None,
) -> AgentAudit:
    """Try to refute an agent's guarantee by running its mechanism on worst-case neighbours.

    Args:
        problem: what its whole learner runs on, or its name.
        agent: whose guarantee, or its name.
        trials: of each path at most; fewer if a bound is violated, or nearly reached, before.
        confidence: that no bound of the audit is above the truth.
        participations: how often one person takes part, or the whole rule
            (``tacit.Participation``); all that one person does is audited together. Where budgets
            are renewed, two periods are audited too.
        seconds: how long all of it may take, roughly; trials are cut to what fits.
        seed: of the simulated runs; secure noise takes none.
        secure: also audit the noise that protects people (needs the ``secure`` extra).
        service: also audit what a running service publishes (needs the ``service`` extra).
        progress: told what is audited, and how far it has come.

    Example::

        found = tacit.audit("river-swim", tacit.agent("tacit-local", epsilon=1.0), trials=10_000)
        assert found.verdict != "violated"
    """
    problem, agent = resolve(problem, agent)
    trials = integer(trials, "trials", low=MIN_TRIALS)
    confidence = number(confidence, "confidence", low=0.5, high=1.0, high_open=True)
    rule = Participation.of(participations)
    bound = _small(problem, agent, rule)
    require_counts(bound)
    if bound.statistic.layout.size == 0:
        raise InvalidInput(f"{agent.name} collects nothing, so there is nothing to audit")
    seconds = number(seconds, "seconds", low=0.0, low_open=True)
    rng, until = stream(seed, 0, "audit"), time.monotonic() + seconds
    sources, remarks = _sources(bound, secure)
    if bounds_lifetimes(bound.statistic):
        plans = _life_plans(problem, agent, rule, sources, rng)
    else:
        plans = _plans(problem, bound, sources, rng)
    if service:
        plans = [*plans, *_service_plans(problem, agent, bound, rng)]
    each = 1 - (1 - confidence) / len(plans)
    reports, beside = [], []
    for left, (target, claim) in zip(range(len(plans), 0, -1), plans, strict=True):
        about = f"{target.name}, {target.source} noise"
        share = max(until - time.monotonic(), 1.0) / left
        watch = None if progress is None else _telling(progress, about)
        bounded = target, claim.epsilon, claim.delta, trials, each
        reports.append(audit_target(*bounded, rng=rng, seconds=share, progress=watch))
        if claim.model == "local" and type(target) is targets.LearnerTarget:
            beside.append(reports[-1])
    laws = [float(pair.epsilon) for pair in bound.privatizer.channels()]
    exact = bound.task.participations * max(laws) if laws else None
    return AgentAudit(tuple(reports), confidence, tuple(beside), exact, remarks)


def _small(problem: Problem, agent: Agent, rule: Participation) -> BoundAgent:
    """The agent with as few users as show what one person does: a crowd, or a full first batch."""
    people = (rule.times or 1) + OTHER_USERS
    bound = bind(problem, agent, people, participation=rule)
    users = bound.task.users
    if bound.guarantee.model == "shuffle":
        users = SHUFFLED_USERS * bound.task.horizon
    elif bound.guarantee.model == "joint":  # nothing is released before the first batch is full
        users = max(users, bound.schedule(0) + OTHER_USERS)
    if users == bound.task.users:
        return bound
    return bind(problem, agent, users, participation=rule)


def _with_steps(problem: Problem, agent: Agent, rule: Participation, periods: int) -> BoundAgent:
    """The agent with as few users as make enough steps of its counter for lives of so long."""
    users, bound = OTHER_USERS, bind(problem, agent, OTHER_USERS, participation=rule)
    while len(batches_of(bound)) < steps_needed(bound, periods):
        users = math.ceil(1.1 * users) + 1
        bound = bind(problem, agent, users, participation=rule)
    return bound


def _telling(progress: Callable[[str], None], about: str) -> Callable[[str], None]:
    progress(about)
    return lambda words: progress(f"{about}: {words}")


def _sources(bound: BoundAgent, secure: bool) -> tuple[list[AuditedSource], tuple[str, ...]]:
    """Which noise to audit, and what to say where there is no secure one."""
    if not bound.privatizer.secure:
        why = "this noise has no exact sampler, so there is no secure path to audit"
        return ["simulated"], (why,)
    if not secure or bound.guarantee.model == "none":
        return ["simulated"], ()
    if bound.privatizer.channels() or find_spec("opendp") is not None:  # finitely many need none
        return ["simulated", "secure"], ()
    why = (
        "the noise that protects people, because OpenDP draws it and is not installed: "
        "pip install 'tacit[secure]'; simulated noise was audited"
    )
    return ["simulated"], (why,)


Plans = list[tuple[Target, Guarantee]]
"""What is audited, and what is claimed of it."""


def _plans(
    problem: Problem, bound: BoundAgent, sources: list[AuditedSource], rng: np.random.Generator
) -> Plans:
    publication = _first_publication(bound, rng)
    claim = bound.guarantee
    if claim.model == "shuffle" and bound.privatizer.device is not None:
        device = dataclasses.replace(bound, privatizer=bound.privatizer.device)
        cases = worst_cases(device, publication, rng)
        batch: Plans = [(targets.BatchTarget(bound, cases[0]), claim)]
        return [*batch, *_device_plans(device, cases, sources, claim.also[0])]
    cases = worst_cases(bound, publication, rng)
    if claim.model == "local":
        learner: Plans = [(targets.LearnerTarget(problem, bound, cases[:1], "simulated"), claim)]
        if bound.privatizer.device is not None:
            return [*_device_plans(bound, cases, sources, claim), *learner]
        pairs = product(cases, sources)
        alone = [(targets.PersonTarget(problem, bound, *pair), claim) for pair in pairs]
        return [*alone, *learner]
    people = _people(bound, cases[0], rng)
    return [(targets.LearnerTarget(problem, bound, people, source), claim) for source in sources]


def _device_plans(
    bound: BoundAgent, cases: list[NeighbourPair], sources: list[AuditedSource], claim: Guarantee
) -> Plans:
    pairs = product(cases, sources)
    return [(targets.DeviceTarget(bound, *pair), claim) for pair in pairs]


def _life_plans(
    problem: Problem,
    agent: Agent,
    rule: Participation,
    sources: list[AuditedSource],
    rng: np.random.Generator,
) -> Plans:
    """Whole lives, and where budgets are renewed those of two periods against twice the claim."""
    if problem.task(OTHER_USERS).family != "tabular":
        raise InvalidInput(
            "audits of people who come back know the batches beforehand, and here the planner "
            "chooses them; audit one participation: leave participations out"
        )
    plans: Plans = []
    for periods in (1, 2) if rule.period else (1,):
        bound = _with_steps(problem, agent, rule, periods)
        case = worst_lives(bound, _first_publication(bound, rng), rng, periods)
        claim = bound.guarantee.compose(periods)
        plans += [(LifeTarget(problem, bound, case, source), claim) for source in sources]
    return plans


def _service_plans(
    problem: Problem, agent: Agent, bound: BoundAgent, rng: np.random.Generator
) -> Plans:
    """The running service, which is not the library's: it is found by its entry point."""
    (point,) = entry_points(group="tacit.audit_targets", name="service")
    service: Any = point.load()
    first = _first_publication(bound, rng)
    case = worst_cases(bound, first, rng)[0]
    service.require_servable(agent, bound, case, first)
    people = [case] if bound.guarantee.mu is None else canaries(bound, case, service.PEOPLE, rng)
    target = service(problem, agent, people, bound.task)
    return [(target, target.guarantee)]


def _people(
    bound: BoundAgent, case: NeighbourPair, rng: np.random.Generator
) -> list[NeighbourPair]:
    """As many audited people as the first batch holds, where one does not disturb another."""
    first = case.publication.users or bound.schedule(0)
    room = min(first, bound.task.users) // bound.task.participations
    if bound.guarantee.mu is None or room < 2 or not bound.privatizer.has_likelihood:
        return [case]
    return canaries(bound, case, room, rng)


def _first_publication(bound: BoundAgent, rng: np.random.Generator) -> Publication:
    return Learner(bound, SimulatedNoise(rng)).publish(Streams(ties=rng, posterior=rng))
