"""Every planner goes through the contract; what each computes is in tests/kernels."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest

from contracts.planner import PlannerContract
from contracts.privatizer import no_questions, streams
from tacit.agents import OBI, PSRL, Agent, LdpOBI, LdpPSRL, Optimal, TacitLocal, UcbVI, Uniform
from tacit.kernels.public.questions import WEIGHT_STEPS
from tacit.learner import drive
from tacit.planners.obi import ObiPlanner, UcbViPlanner
from tacit.planners.posterior import PosteriorPlanner
from tacit.planners.references import OptimalPlanner, UniformPlanner
from tacit.planners.tacit_local import DirectionalPlanner, NoisyPosteriorPlanner
from tacit.privacy import Exact, Query, SimulatedNoise, ZeroNoise
from tacit.problems import Problem, TabularMDP, make_problem
from tacit.statistics.counts import VisitCounts


def ending(seed: int) -> TabularMDP:
    """A random table in which two of five states end."""
    made = make_problem("random-mdp", states=5, actions=2, horizon=4, seed=seed)
    return TabularMDP(made.P[0], made.R[0], 4, terminal=[1, 4])


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


class TestNoisyPosterior(TabularContract):
    subject: ClassVar[type] = NoisyPosteriorPlanner

    def agent(self) -> Agent:
        return TacitLocal(epsilon=2.0, batch=5)


class TestNoisyPosteriorListed(TestNoisyPosterior):
    """With terminal states next states are listed, and there is one place for all that end."""

    def problem(self) -> Problem:
        return ending(4)

    def other_problem(self) -> Problem:
        return ending(5)


class TestDirectional(TabularContract):
    subject: ClassVar[type] = DirectionalPlanner

    def agent(self) -> Agent:
        return TacitLocal(epsilon=2.0, batch=5, exploration="optimistic")


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


class TestNoisyPosteriorPerStage(TestUcbViPerStage):
    subject: ClassVar[type] = NoisyPosteriorPlanner

    def agent(self) -> Agent:
        return TacitLocal(epsilon=2.0, batch=5)


class TestDirectionalEnding(TestNoisyPosteriorListed):
    subject: ClassVar[type] = DirectionalPlanner

    def agent(self) -> Agent:
        return TacitLocal(epsilon=2.0, batch=5, exploration="optimistic")


class TestDirectionalPerStage(TestUcbViPerStage):
    subject: ClassVar[type] = DirectionalPlanner

    def agent(self) -> Agent:
        return TacitLocal(epsilon=2.0, batch=5, exploration="optimistic")


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
        release = privatizer.release(secret, Query(k), ZeroNoise())
        publication = bound.planner.plan(bound.task, release, no_questions, publication, coin)
        assert (publication.context["Q"] <= last).all()
        last = publication.context["Q"]
        statistic.contribute(problem.rollout(publication.policy, rng), publication, k, out)
        secret = privatizer.absorb(secret, privatizer.encode(out, publication, ZeroNoise()), k)
    assert last.min() < problem.horizon


def test_a_revealed_reward_is_used_as_it_is() -> None:
    problem = make_problem("random-mdp", states=3, seed=5)
    told = problem.task(users=10, reveal=["reward"])
    statistic = VisitCounts(told, squares=True)
    exact = Exact(statistic, told)
    release = exact.release(exact.init(), Query(0), ZeroNoise())
    bound = UcbVI().bind(told)
    publication = bound.planner.plan(told, release, no_questions, None, streams())
    # with no data at all, the last stage needs no transitions: Q is exactly the known reward
    assert np.array_equal(publication.context["Q"][-1], problem.R[0])


def local_publications(exploration: str, epsilon: float, users: int):
    """Of tacit-local where all start in state 0; action 1 pays and leads there, 0 neither."""
    problem = TabularMDP([[[0, 1], [1, 0]]] * 2, [[0.0, 1.0]] * 2, 3)
    bound = TacitLocal(epsilon, exploration=exploration, batch=20).bind(problem.task(users))
    rng, noise = np.random.default_rng(0), SimulatedNoise(np.random.default_rng(1))
    lives = drive(bound, lambda p: problem.rollout(p.policy, rng), noise, streams())
    return list(lives)


@pytest.mark.parametrize("exploration", ["posterior", "optimistic"])
def test_local_planners_start_with_weight_one_and_then_predict_who_is_where(exploration) -> None:
    first, *rest = local_publications(exploration, 8.0, 600)
    chances = first.context["occupancy"]
    assert (chances == WEIGHT_STEPS).all() and chances.shape == (3, 2)
    assert set(first.context) == {"occupancy"}  # all steps are asked about in turn
    assert [p.version for p in rest] == list(range(1, len(rest) + 1))
    last = rest[-1]
    assert (last.policy.actions[:, 0] == 1).all()  # it has learned
    chances = last.context["occupancy"]
    assert chances.dtype == np.int64 and chances.min() == round(0.02 * WEIGHT_STEPS)
    assert (chances[:, 0] > 0.88 * WEIGHT_STEPS).all()
    assert (chances[:, 1] < 0.12 * WEIGHT_STEPS).all()


@pytest.mark.parametrize("exploration", ["posterior", "optimistic"])
def test_local_planners_choose_the_questions(exploration) -> None:
    """Shares of all kinds; every step keeps a part, the last one is asked for rewards only."""
    _, *rest = local_publications(exploration, 2.0, 600)
    for publication in rest:
        asked = publication.context["questions"]
        shares = np.diff(asked, prepend=0.0).reshape(3, 3)
        assert asked.shape == (9,) and shares.min() >= 0.0
        assert asked[-1] == pytest.approx(1.0, abs=1e-12)
        assert not shares[-1, :2].any() and (shares.sum(axis=1) > 0.1 / 3 - 1e-12).all()
    assert len({p.context["questions"].tobytes() for p in rest}) == len(rest)


def test_an_optimist_without_weighing_asks_in_turn() -> None:
    problem = make_problem("random-mdp", states=3, actions=2, horizon=3, seed=4)
    bound = TacitLocal(2.0, exploration="optimistic", batch=20).bind(problem.task(100))
    silent = DirectionalPlanner(bonus_scale=0.1, beta=0.1)
    rng = np.random.default_rng(0)
    found = {}
    for planner in (bound.planner, silent):
        noise = SimulatedNoise(np.random.default_rng(1))
        agent = dataclasses.replace(bound, planner=planner)
        lives = drive(agent, lambda p: problem.rollout(p.policy, rng), noise, streams())
        found[planner] = [set(publication.context) for publication in lives]
    assert found[bound.planner][1:] == [{"occupancy", "questions"}] * 4
    assert found[silent] == [{"occupancy"}] * 5


def test_the_first_policies_of_local_planners_are_drawn_at_random() -> None:
    problem = make_problem("random-mdp", states=3, actions=2, horizon=3, seed=4)
    for exploration in ("posterior", "optimistic"):
        bound = TacitLocal(1.0, exploration=exploration).bind(problem.task(10))
        release = bound.privatizer.release(bound.privatizer.init(), Query(0), ZeroNoise())
        tables = [
            bound.planner.plan(bound.task, release, no_questions, None, streams(seed)).policy
            for seed in range(200)
        ]
        share = np.mean([table.actions for table in tables], axis=0)
        assert np.abs(share - 0.5).max() < 6 * 0.5 / np.sqrt(200)  # chance below 1e-7
