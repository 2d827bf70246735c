"""Every mistake of the corpus is caught by its detector, and the shipped code is not."""

import numpy as np
import pytest

import tacit
from contracts.planner import PlannerContract
from contracts.privatizer import PrivatizerContract
from tacit.auditing import audit_target
from tacit.auditing.broken import CORPUS, Mutant, same_claim
from tacit.auditing.targets import LearnerTarget, ReportTarget
from tacit.driver import BoundAgent
from tacit.kernels.planning import greedy
from tacit.planners import UniformPlanner
from tacit.policy import uniform_policy
from tacit.privacy import Exact, Secret, SimulatedNoise
from tacit.privacy.counters import Tree
from tacit.privacy.finite import Channel, KaryResponse
from tacit.privacy.local import LocalAdditive
from tacit.publication import Publication
from tacit.statistics import Relation, VisitCounts
from tacit.task import Task
from tacit.trajectory import Trajectory

PROBLEM = tacit.problem("random-mdp", seed=1)
TASK = PROBLEM.task(users=3)
EPSILON = 3.0


def bound_with(privatizer, statistic=None) -> BoundAgent:
    return BoundAgent(TASK, statistic or VisitCounts(TASK), privatizer, UniformPlanner())


def audited(privatizer) -> str:
    """Verdict on one report; a false alarm on a right mechanism has probability below 0.001."""
    publication = Publication(0, uniform_policy(TASK.horizon, 2, 2))
    target = ReportTarget(bound_with(privatizer), publication, "simulated")
    rng = np.random.default_rng(3)
    return audit_target(target, EPSILON, 0.0, 60_000, confidence=0.999, rng=rng).verdict


def audited_learner(privatizer) -> str:
    target = LearnerTarget(PROBLEM, bound_with(privatizer))
    rng = np.random.default_rng(4)
    return audit_target(target, EPSILON, 0.0, 1500, confidence=0.999, rng=rng).verdict


def contract_fails(broken: type[LocalAdditive]) -> bool:
    """Whether any check of the privatizer contract fails."""

    class Case(PrivatizerContract):
        subject = broken
        rng = np.random.default_rng(0)

        def make(self, statistic):
            return same_claim(broken, TASK, EPSILON)

        def statistic(self):
            return VisitCounts(TASK)

        def noise(self):
            return SimulatedNoise(self.rng if broken.__name__ == "Redrawn" else fresh())

    for name in dir(Case):
        if name.startswith("test_"):
            try:
                getattr(Case(), name)()
            except AssertionError:
                return True
    return False


def fresh() -> np.random.Generator:
    return np.random.default_rng(5)


def exceeds_sensitivity(statistic: VisitCounts) -> bool:
    """Whether adversarial trajectories move the statistic by more than it declares."""
    H = TASK.horizon
    publication = Publication(0, uniform_policy(H, 2, 2))
    vectors = []
    for s in (0, 1):
        for a in (0, 1):
            for r in (0.0, 1.0, 1000.0, -1000.0, np.nan):
                states = np.full(H + 1, s)
                trajectory = Trajectory(states, np.full(H, a), np.full(H, r))
                out = np.zeros(statistic.layout.size, dtype=np.int64)
                statistic.contribute(trajectory, publication, 0, out)
                vectors.append(out * statistic.layout.units)
    points = np.array(vectors)
    apart = points[:, None] - points[None]
    l1 = np.abs(apart).sum(axis=-1).max()
    l2 = np.sqrt((apart**2).sum(axis=-1)).max()
    return bool(
        l1 > statistic.sensitivity("l1", Relation.REPLACE_ONE) * (1 + 1e-9)
        or l2 > statistic.sensitivity("l2", Relation.REPLACE_ONE) * (1 + 1e-9)
    )


def reads_raw_sums(make_planner) -> bool:
    """Whether the poison check of the planner contract fails."""

    class Spy(Exact):
        def init(self) -> Secret:
            self.last = super().init()
            return self.last

    class Peeking(tacit.Agent):
        name = "peeking"

        def bind(self, task: Task) -> BoundAgent:
            statistic = VisitCounts(task)
            spy = Spy(statistic, task)
            planner = make_planner(lambda: statistic.layout.views(spy.last.sums)["visits"][0])
            return BoundAgent(task, statistic, spy, planner)

    class Case(PlannerContract):
        def agent(self):
            return Peeking()

        def problem(self):
            return tacit.problem("random-mdp", states=3, horizon=3, seed=4)

    try:
        Case().test_destroying_the_raw_sums_before_planning_changes_nothing()
    except AssertionError:
        return True
    return False


def hides_negative_regret(transform) -> bool:
    """A learner scored against the wrong optimum must show it: regret has to stay negative."""
    scored_wrongly = np.array([-1.0, -2.0, -3.0])
    return not np.array_equal(transform(scored_wrongly), scored_wrongly)


def prefers_the_first_action(argmax) -> bool:
    """Over 200 draws of a two-way tie, action 0 every time (probability 2^-200 if fair)."""
    rng, chosen = np.random.default_rng(0), set()
    for _ in range(200):
        actions = np.ones((1, 1), dtype=np.int64)
        argmax(np.ones((1, 1, 2)), rng, actions)
        chosen.add(int(actions[0, 0]))
    return chosen == {0}


def counts_wrongly(counter) -> bool:
    """Whether the declared column norm is below the true one, or a prefix is not a prefix sum."""
    for n in (1, 3, 7, 8, 9, 16, 100):
        candidate = counter(n)
        _, C = Tree(n).factors()
        if candidate.column_norm() < np.sqrt((C**2).sum(axis=0).max()) - 1e-9:
            return True
        state, total = candidate.init(2, 10), np.zeros(2)
        for t in range(n):
            item = np.array([t % 7, 1])
            total += item
            prefix, state = candidate.step(state, item, lambda node: np.zeros(2, dtype=np.int64))
            if not np.array_equal(prefix, total):
                return True
    return False


def more_than_claimed(response) -> bool:
    """Whether the exact epsilon, by enumeration of all outputs, exceeds the claim."""
    return Channel(response(1.0, 5).pmf()).epsilon > 1.0 + 1e-9


DETECTORS = {
    "exact pmf": more_than_claimed,
    "counter algebra": counts_wrongly,
    "audit of one report": lambda b: audited(same_claim(b, TASK, EPSILON)) == "violated",
    "audit of the learner": lambda b: audited_learner(same_claim(b, TASK, EPSILON)) == "violated",
    "contract": contract_fails,
    "sensitivity search": lambda b: exceeds_sensitivity(b(TASK)),
    "blindness": reads_raw_sums,
    "regret check": hides_negative_regret,
    "tie check": prefers_the_first_action,
}


@pytest.mark.parametrize("mutant", CORPUS, ids=lambda mutant: mutant.name)
def test_the_detector_fires(mutant: Mutant) -> None:
    assert DETECTORS[mutant.detector](mutant.broken), mutant.mistake


def test_the_detectors_are_silent_on_the_shipped_code() -> None:
    assert not DETECTORS["audit of one report"](LocalAdditive)
    assert not DETECTORS["audit of the learner"](LocalAdditive)
    assert not contract_fails(LocalAdditive)
    assert not exceeds_sensitivity(VisitCounts(TASK))
    assert not prefers_the_first_action(greedy)
    assert not counts_wrongly(Tree)
    assert not more_than_claimed(KaryResponse.calibrate)
    assert not hides_negative_regret(lambda regret: regret)


def test_every_known_mistake_is_in_the_corpus() -> None:
    assert len({mutant.name for mutant in CORPUS}) == len(CORPUS) >= 17
