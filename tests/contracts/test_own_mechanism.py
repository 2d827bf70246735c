"""Somebody's own mechanism says four things, and everything else is there or refuses."""

import numpy as np
import pytest

import tacit
from tacit.agents import Agent
from tacit.auditing.agent import audit
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.grid import GRID, whole_steps
from tacit.planners.obi import ObiPlanner
from tacit.privacy import GridLaw, Privatizer, Query, Report, Secret, SimulatedNoise
from tacit.privacy.events import PureEvent, guaranteed
from tacit.privacy.joint.batched import GaussianLaw
from tacit.release import Release
from tacit.service.serving import served_model
from tacit.statistics import Relation
from tacit.statistics.counts import VisitCounts
from tacit.task import Task


class Doubled(Privatizer[Secret]):
    """Two draws of Laplace noise on every report, where one would do."""

    def __init__(self, statistic: VisitCounts, task: Task, epsilon: float) -> None:
        self.layout = statistic.layout
        self.scale = statistic.sensitivity("l1", Relation.REPLACE_ONE) / epsilon
        self.grid_law = GridLaw("laplace", np.full(self.layout.size, self.scale / GRID))
        self.event = PureEvent(epsilon)
        self.guarantee = guaranteed(
            self.event,
            task,
            model="local",
            mechanism="two draws",
            accountant="pure",
            requested=(epsilon, 0.0),
        )

    def law(self, users: int) -> GaussianLaw:
        return GaussianLaw(2.0 * self.scale * users**0.5)

    def encode(self, contribution, publication, noise) -> Report:
        draws = np.empty((2, self.layout.size), dtype=np.int64)
        for draw in draws:
            noise.fill(self.grid_law, draw)
        return Report(contribution * whole_steps(self.layout.units) + draws.sum(axis=0))

    def moved(self, first, second, publication) -> float:
        return float(np.abs((second - first) * self.layout.units).sum()) / self.scale

    def release(self, secret: Secret, query: Query, noise) -> Release:
        blocks = self.layout.views(secret.sums * GRID)
        return Release(secret.users, blocks, self.law(secret.users), secret.source)


class Own(Agent):
    name = "own"

    def bind(self, task: Task) -> BoundAgent:
        statistic = VisitCounts(task)
        planner = ObiPlanner(alpha=2.0, beta=0.1, width="tight")
        return BoundAgent(task, statistic, Doubled(statistic, task, 1.0), planner)


PROBLEM = tacit.problem("random-mdp", states=2, actions=2, horizon=2, seed=1)


def test_it_learns_and_is_audited() -> None:
    result = tacit.simulate(PROBLEM, Own(), episodes=20, seeds=1)
    assert result.guarantee.epsilon == 1.0 and len(result.regret[0]) > 0
    found = audit(PROBLEM, Own(), trials=1000, seconds=20, secure=False)
    assert found.exact_epsilon is None and found.verdict != "violated"


def test_what_it_does_not_say_is_refused_and_not_guessed() -> None:
    bound = Own().bind(PROBLEM.task(users=5))
    own = bound.privatizer
    secret, noise = own.init(), SimulatedNoise(np.random.default_rng(0))
    assert not own.absorbs_sums and not own.explains and own.device is None
    for use in (
        lambda: own.absorb_sums(secret, secret.sums, 2, None, noise),
        lambda: own.draw(secret, noise),
        lambda: own.replay(secret, secret.sums),
        lambda: own.evidence(None),
        lambda: own.worst(secret.sums, secret.sums, 0),
    ):
        with pytest.raises(InvalidInput, match="two draws: "):
            use()
    with pytest.raises(InvalidInput, match="own cannot be served"):
        served_model(bound, Own())
    assert own.channels() == () and own.unasked(secret) == []
    assert own.event.charge().to_json() == {"kind": "pure", "epsilon": 1.0}
    assert np.array_equal(own.restore(own.state(secret)).sums, secret.sums)
