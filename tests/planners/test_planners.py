"""Every planner goes through the contract; what each computes is in tests/kernels."""

from typing import ClassVar

import numpy as np
import pytest

from contracts.planner import PlannerContract
from contracts.privatizer import no_questions, streams
from tacit.agents import OBI, PSRL, Agent, LdpOBI, LdpPSRL, Optimal, UcbVI, Uniform
from tacit.planners import (
    ObiPlanner,
    OptimalPlanner,
    PosteriorPlanner,
    UcbViPlanner,
    UniformPlanner,
)
from tacit.privacy import Exact, Query, Silence
from tacit.problems import Problem, TabularMDP, make_problem
from tacit.statistics import VisitCounts


class TabularContract(PlannerContract):
    def problem(self) -> Problem:
        return make_problem("random-mdp", states=3, actions=2, horizon=3, seed=4)

    def other_problem(self) -> Problem:
        return make_problem("random-mdp", states=3, actions=2, horizon=3, seed=5)


class TestUcbVi(TabularContract):
    subject: ClassVar[type] = UcbViPlanner

    def agent(self) -> Agent:
        return UcbVI(bonus_scale=0.01)


class TestPosterior(TabularContract):
    subject: ClassVar[type] = PosteriorPlanner

    def agent(self) -> Agent:
        return PSRL()


class TestObi(TabularContract):
    subject: ClassVar[type] = ObiPlanner

    def agent(self) -> Agent:
        return LdpOBI(epsilon=2.0)


class TestObiGaussian(TestObi):
    def agent(self) -> Agent:
        return LdpOBI(epsilon=2.0, delta=1e-5, randomizer="gaussian", calibration="paper")


class TestObiResponse(TestObi):
    def agent(self) -> Agent:
        return LdpOBI(epsilon=20.0, randomizer="randomized-response")


class TestObiBounded(TestObi):
    def agent(self) -> Agent:
        return LdpOBI(epsilon=2.0, delta=0.1, randomizer="bounded", calibration="paper")


class TestObiTight(TestObi):
    def agent(self) -> Agent:
        return LdpOBI(epsilon=20.0, width="tight")


class TestObiExact(TestObi):
    def agent(self) -> Agent:
        return OBI()


class TestLocalPosterior(TestPosterior):
    def agent(self) -> Agent:
        return LdpPSRL(epsilon=2.0)


class TestUniform(TabularContract):
    subject: ClassVar[type] = UniformPlanner

    def agent(self) -> Agent:
        return Uniform()


class TestOptimal(TabularContract):
    """Told transitions and rewards: another truth with the same task differs in its start."""

    subject: ClassVar[type] = OptimalPlanner

    def agent(self) -> Agent:
        return Optimal()

    def other_problem(self) -> Problem:
        same = self.problem()
        return TabularMDP(same.P[0], same.R[0], same.horizon, initial=2)


class TestUcbViPerStage(TestUcbVi):
    """The same with one table per stage."""

    def problem(self) -> Problem:
        return make_problem("river-swim", states=3, horizon=4, inhomogeneous=True, seed=1)

    def other_problem(self) -> Problem:
        return make_problem("river-swim", states=3, horizon=4, inhomogeneous=True, seed=2)


class TestPosteriorPerStage(TestUcbViPerStage):
    subject: ClassVar[type] = PosteriorPlanner

    def agent(self) -> Agent:
        return PSRL()


def test_ucb_vi_width_is_seven_h_l() -> None:
    task = make_problem("river-swim").task(users=1000)
    planner = UcbViPlanner(bonus_scale=0.5, beta=0.1)
    # L = ln(5 S A T / beta) with S = 6, A = 2, T = 1000 * 20
    assert planner.width(task) == pytest.approx(0.5 * 7 * 20 * np.log(5 * 12 * 20_000 / 0.1))


def test_ucb_vi_never_raises_its_q_and_starts_at_h() -> None:
    problem = make_problem("random-mdp", seed=1)
    bound = UcbVI(bonus_scale=0.001).bind(problem.task(users=500))
    rng, coin = np.random.default_rng(0), streams()
    privatizer, statistic = bound.privatizer, bound.statistic
    secret, publication, out = privatizer.init(), None, np.zeros(statistic.layout.size, np.int64)
    last = np.full((problem.horizon, problem.states, problem.actions), float(problem.horizon))
    for k in range(500):
        release = privatizer.release(secret, Query(k), Silence())
        publication = bound.planner.plan(bound.task, release, no_questions, publication, coin)
        assert (publication.context["Q"] <= last).all()
        last = publication.context["Q"]
        statistic.contribute(problem.rollout(publication.policy, rng), publication, k, out)
        secret = privatizer.absorb(secret, privatizer.encode(out, publication, Silence()), k)
    assert last.min() < problem.horizon


def test_a_revealed_reward_is_used_as_it_is() -> None:
    problem = make_problem("random-mdp", states=3, seed=5)
    told = problem.task(users=10, reveal=["reward"])
    statistic = VisitCounts(told, squares=True)
    exact = Exact(statistic, told)
    release = exact.release(exact.init(), Query(0), Silence())
    bound = UcbVI().bind(told)
    publication = bound.planner.plan(told, release, no_questions, None, streams())
    # with no data at all, the last stage needs no transitions: Q is exactly the known reward
    assert np.array_equal(publication.context["Q"][-1], problem.R[0])
