"""The planners of linear mixtures go through the contract."""

from typing import ClassVar

import numpy as np

from contracts.planner import PlannerContract
from tacit.agents import Agent, make_agent
from tacit.planners.first_returns import FirstReturnPlanner
from tacit.planners.first_visits import FirstVisitPlanner
from tacit.planners.tacit_joint import JointCountsPlanner, VFreePlanner
from tacit.planners.vtr import MirrorPlanner, TransitionPlanner, ValueTargetedPlanner
from tacit.problems import LinearMixtureMDP, Problem, TabularMDP, make_problem


class MixtureContract(PlannerContract):
    """Two mixtures of the same known kernels, with the same rewards."""

    def problem(self) -> Problem:
        return make_problem("remap-walk", horizon=3)

    def other_problem(self) -> Problem:
        walk = make_problem("remap-walk", horizon=3)
        return LinearMixtureMDP(
            walk.features,
            [0.4, 0.3, 0.2, 0.1],
            horizon=3,
            initial=5,
            reward_features=walk.public["reward_features"],
            reward_theta=[0.05, 0.0, 0.1, 0.4, 1.0],
            simplex=True,
        )


class TestValueTargeted(MixtureContract):
    subject: ClassVar[type] = ValueTargetedPlanner

    def agent(self) -> Agent:
        return make_agent("ucrl-vtr", bonus_scale=0.01, calibration="tight")


class TestValueTargetedPrivate(MixtureContract):
    subject: ClassVar[type] = ValueTargetedPlanner

    def agent(self) -> Agent:
        return make_agent(
            "private-linopt-vi", epsilon=100.0, counter="toeplitz", calibration="tight"
        )


class TestMirror(MixtureContract):
    subject: ClassVar[type] = MirrorPlanner

    def agent(self) -> Agent:
        return make_agent(
            "private-linopt-po", epsilon=100.0, model="local", every=3, calibration="tight"
        )


class TestTransitions(PlannerContract):
    subject: ClassVar[type] = TransitionPlanner

    def agent(self) -> Agent:
        return make_agent("ldp-ucrl-vtr", epsilon=10.0, statistic="index", calibration="tight")

    def problem(self) -> Problem:
        return make_problem("random-mdp", states=3, actions=2, horizon=3, seed=4)

    def other_problem(self) -> Problem:
        other = make_problem("random-mdp", states=3, actions=2, horizon=3, seed=5)
        return TabularMDP(other.P[0], self.problem().R[0], 3)


class TestTransitionsPerStage(TestTransitions):
    def problem(self) -> Problem:
        return make_problem("river-swim", states=3, horizon=4, inhomogeneous=True, seed=1)

    def other_problem(self) -> Problem:
        return make_problem("river-swim", states=3, horizon=4, inhomogeneous=True, seed=2)


def test_ties_of_a_saturated_plan_are_drawn_at_random() -> None:
    """All values at their cap: always right would look learned (docs/papers/mixture_ldp.md#e9)."""
    from tacit.experiment import bind
    from tacit.privacy import Query, ZeroNoise

    problem = make_problem("river-swim", states=3, horizon=6, kernel="vtr", reward_scale=1 / 6)
    agent = make_agent("ldp-ucrl-vtr", epsilon=1.0, delta=0.1, calibration="paper", bonus_scale=1.0)
    bound = bind(problem, agent, 100)
    release = bound.privatizer.release(bound.privatizer.init(), Query(0), ZeroNoise())
    from contracts.privatizer import no_questions, streams

    tables = [
        bound.planner.plan(bound.task, release, no_questions, None, streams(seed)).policy.actions
        for seed in range(200)
    ]
    share = np.mean(tables, axis=0)[:5]  # the last stage is not tied
    assert 0.3 < share.min() and share.max() < 0.7


class TestVFree(MixtureContract):
    subject: ClassVar[type] = VFreePlanner

    def agent(self) -> Agent:
        return make_agent("tacit-joint", epsilon=100.0, first=5)


class TestVFreeKnownRewards(TestVFree):
    """Rewards revealed, stage by stage."""

    def task(self, problem: Problem):
        return problem.task(users=30, reveal=["reward"])

    def problem(self) -> Problem:
        return make_problem("hard-mixture", dimension=3, horizon=3, gap=0.05, seed=1)

    def other_problem(self) -> Problem:
        hard = make_problem("hard-mixture", dimension=3, horizon=3, gap=0.05, seed=1)
        theta = hard.theta * np.array([1.0, 0.5, 0.5])
        return LinearMixtureMDP(hard.features, theta, hard.R[0], horizon=3)


class TestFirstVisits(TestTransitions):
    subject: ClassVar[type] = FirstVisitPlanner

    def agent(self) -> Agent:
        return make_agent("tacit-joint", epsilon=100.0, first=5)


class TestFirstReturns(TestTransitions):
    subject: ClassVar[type] = FirstReturnPlanner

    def agent(self) -> Agent:
        return make_agent("tacit-joint", epsilon=0.1, first=5)

    def problem(self) -> Problem:
        table = make_problem("random-mdp", states=3, actions=2, horizon=8, seed=4)
        return TabularMDP(table.P[0], table.R[0] / 8.0, 8, returns=(0.0, 1.0))

    def other_problem(self) -> Problem:
        other = make_problem("random-mdp", states=3, actions=2, horizon=8, seed=5)
        return TabularMDP(other.P[0], self.problem().R[0], 8, returns=(0.0, 1.0))


class TestJointCountsPerStage(TestTransitionsPerStage):
    subject: ClassVar[type] = JointCountsPlanner

    def agent(self) -> Agent:
        return make_agent("tacit-joint", epsilon=100.0, first=5)
