"""Each privacy error of the published algorithm is caught, and the shipped code is not."""

import itertools
import math

import numpy as np
import pytest

import tacit
from tacit.auditing import audit_target
from tacit.auditing.broken import Mutant
from tacit.auditing.broken_linear import LINEAR_CORPUS
from tacit.auditing.targets import LearnerTarget
from tacit.driver import BoundAgent
from tacit.planners.base import next_version
from tacit.policy import uniform_policy
from tacit.privacy.curator import Answers, Curator, Independent, Price
from tacit.publication import Publication
from tacit.release import ValueQuery
from tacit.statistics import Relation
from tacit.statistics.curated import CuratedTransitions
from tacit.trajectory import Trajectory

PROBLEM = tacit.problem("low-rank", states=2, actions=2, dimension=2, horizon=2, seed=1)
TASK = PROBLEM.task(users=3)


class AskAll:
    """Asks everything it may, for values that tell states apart."""

    def plan(self, task, release, ask, previous, streams):
        version = next_version(previous)
        if release.users:
            for h in (0, 1):
                ask(ValueQuery((version, "value", h), "value", h, np.array([0.0, 1.0])))
        return Publication(version, uniform_policy(2, 2, 2))


def violated(kind: type[Curator]) -> bool:
    """Whether an audit of everything published refutes the claim (false alarms: below 0.001)."""
    statistic = CuratedTransitions(TASK)
    answers = Answers(
        {"value": np.array([2.0, 1.0])}, {"value": np.full(2, 10.0)}, 2, {"value": True}
    )
    price = Price.joint(statistic.pairs, 1.0)
    mechanism = kind(
        statistic, TASK, Independent(3), 10.0, answers, price,
        requested_epsilon=1.0, requested_delta=1e-5,
    )  # fmt: skip
    assert 0.3 < mechanism.guarantee.epsilon < 2.0
    target = LearnerTarget(PROBLEM, BoundAgent(TASK, statistic, mechanism, AskAll()))
    rng = np.random.default_rng(4)
    found = audit_target(target, mechanism.guarantee.epsilon, 1e-5, 400, confidence=0.999, rng=rng)
    return found.verdict == "violated"


def exceeds(kind: type[CuratedTransitions]) -> bool:
    """Whether two users' Gram matrices are further apart than declared."""
    problem = tacit.problem("synthetic-linear", horizon=2, actions=3)
    statistic = kind(problem.task(users=3))
    publication, points = Publication(0, uniform_policy(2, 2, 3)), []
    for states in itertools.product(range(2), repeat=3):
        for actions in itertools.product(range(3), repeat=2):
            out = np.zeros(statistic.layout.size, dtype=np.int64)
            person = Trajectory(np.array(states), np.array(actions), np.zeros(2))
            statistic.contribute(person, publication, 0, out)
            points.append((out * statistic.layout.units)[: statistic.layout.blocks[0].size])
    found = max(math.dist(one, two) for one in points for two in points)
    only = {"table": 0.0, "reward": 0.0}
    return found > statistic.sensitivity("l2", Relation.REPLACE_ONE, only)


DETECTORS = {"audit of the learner": violated, "sensitivity search": exceeds}


@pytest.mark.parametrize("mutant", LINEAR_CORPUS, ids=lambda mutant: mutant.name)
def test_the_detector_fires(mutant: Mutant) -> None:
    assert DETECTORS[mutant.detector](mutant.broken), mutant.mistake


def test_the_detectors_are_silent_on_the_shipped_code() -> None:
    assert not violated(Curator)
    assert not exceeds(CuratedTransitions)


@pytest.mark.parametrize(
    ("agent", "parameters"),
    [
        ("tacit-linear", {}),
        ("tacit-linear", {"sums": "answered"}),
        ("dp-lsvi-batch", {}),
        ("dp-lsvi-adaptive", {}),
        ("dp-lsvi-ucb++", {}),
    ],
)
def test_every_private_agent_passes_its_audit(agent: str, parameters: dict) -> None:
    """Everything published, the first of three users replaced, by both sources of noise."""
    bound = tacit.agent(agent, epsilon=1.0, **parameters).bind(TASK)
    for source, trials in (("simulated", 200), ("secure", 100)):
        target, rng = LearnerTarget(PROBLEM, bound, source), np.random.default_rng(5)
        found = audit_target(target, 1.0, 1e-5, trials, confidence=0.999, rng=rng)
        assert found.verdict == "consistent"
