"""The planners of published joint learners: the contract, and what they do without noise."""

import math
from typing import ClassVar

import numpy as np
import pytest

from contracts.planner import PlannerContract
from contracts.privatizer import no_questions, streams
from tacit.agents import Agent, make_agent
from tacit.planners.joint_tables import (
    DpUcbviPlanner,
    PrivateUcbMirrorPlanner,
    PrivateUcbPlanner,
    PucbPlanner,
    noise_bound,
)
from tacit.privacy.joint.counted import LaplaceLaw
from tacit.problems import Problem, make_problem
from tacit.release import NoNoise, Release


class TestPucb(PlannerContract):
    subject: ClassVar[type] = PucbPlanner
    named: ClassVar[str] = "pucb"

    def agent(self) -> Agent:
        return make_agent(self.named, epsilon=200.0, delta=1e-5, calibration="tight")

    def problem(self) -> Problem:
        return make_problem("random-mdp", states=3, actions=2, horizon=3, seed=4)

    def other_problem(self) -> Problem:
        return make_problem("random-mdp", states=3, actions=2, horizon=3, seed=5)


class TestPucbPublished(TestPucb):
    def agent(self) -> Agent:
        return make_agent("pucb", epsilon=1e4, calibration="paper", bonus_scale=1e-3)


class TestPrivateUcb(TestPucb):
    subject: ClassVar[type] = PrivateUcbPlanner
    named: ClassVar[str] = "private-ucb-vi"


class TestPrivateUcbMirror(TestPucb):
    subject: ClassVar[type] = PrivateUcbMirrorPlanner
    named: ClassVar[str] = "private-ucb-po"


class TestDpUcbvi(TestPucb):
    subject: ClassVar[type] = DpUcbviPlanner
    named: ClassVar[str] = "dp-ucbvi"


def exact_release(problem: Problem, users: float) -> Release:
    """Counts in proportion to the truth, every pair visited equally often at every stage."""
    P, R = (np.broadcast_to(x, (problem.horizon, *x.shape[1:])) for x in (problem.P, problem.R))
    blocks = {"visits": np.full(R.shape, users), "reward": users * R, "transitions": users * P}
    return Release(int(users), blocks, NoNoise(), "none")


@pytest.mark.parametrize("name", ["pucb", "private-ucb-vi", "dp-ucbvi"])
def test_with_many_exact_counts_the_plan_is_optimal(name: str) -> None:
    problem = make_problem("river-swim", states=4, horizon=6)
    bound = make_agent(name, epsilon=1.0, calibration="tight").bind(problem.task(1000))
    release = exact_release(problem, 1e12)
    found = bound.planner.plan(bound.task, release, no_questions, None, streams())
    assert problem.value(found.policy) == pytest.approx(problem.optimal_value(), rel=1e-6)


def test_policy_optimisation_ends_at_the_optimum_and_takes_one_step_per_user() -> None:
    problem = make_problem("river-swim", states=4, horizon=6)
    K, agent = (
        100_000,
        make_agent("private-ucb-po", epsilon=1.0, bonus_scale=0.0, calibration="tight"),
    )
    bound = agent.bind(problem.task(K))
    policies = {}
    for steps in (10, 100):
        last = None
        for k in range(steps + 1):
            release = exact_release(problem, 1e9)
            shown = Release(k * K // steps, release.blocks, release.law, "none")
            last = bound.planner.plan(bound.task, shown, no_questions, last, streams())
        policies[steps] = last.policy
    few, many = (problem.optimal_value() - problem.value(policies[n]) for n in (10, 100))
    assert 0.0 <= many < 0.02 * problem.optimal_value()
    assert few == pytest.approx(many, abs=0.01)


@pytest.mark.parametrize("terms", [1, 3, 8])
def test_the_bound_on_laplace_sums_holds(terms: int) -> None:
    """At 1% of 20,000 draws, and not wide: a third of it is exceeded much more often."""
    rng = np.random.default_rng(terms)
    sums = rng.laplace(0.0, 2.0, (20_000, terms)).sum(axis=1)
    law = LaplaceLaw(2.0, 2.0 * math.sqrt(2.0 * terms))
    bound = noise_bound(law, "visits", 1.0, 0.01)
    assert (np.abs(sums) > bound).mean() <= 0.01
    assert (np.abs(sums) > bound / 3.0).mean() > 0.01
