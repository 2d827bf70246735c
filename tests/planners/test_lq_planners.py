"""Planners of linear systems: contract, optimistic solver, certificate, and a planted leak."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from contracts.planner import PlannerContract
from tacit.agents import Agent, make_agent
from tacit.kernels.public import lq
from tacit.learner import BoundAgent
from tacit.planners.base import Ask, Streams
from tacit.planners.lq_model import linear_task
from tacit.planners.ofu import (
    Ellipsoid,
    OfuPlanner,
    certificate,
    optimistic,
    paper_ridge,
    tight_ridge,
)
from tacit.planners.references import CertaintyPlanner, IdlePlanner, ThompsonPlanner
from tacit.planners.tacit_control import TacitControlPlanner
from tacit.privacy.joint.counted import CountedSums
from tacit.problems import LQSystem, Problem, make_problem
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task


def plant(drift: float) -> LQSystem:
    """Two truths behind one task: bounds, costs and start are the same."""
    return LQSystem(
        A=[[0.5, drift], [0.0, 0.4]],
        B=[[0.05], [0.2]],
        Q=np.eye(2),
        R=[[0.3]],
        horizon=6,
        noise=0.1,
        start=[0.6, -0.6],
        gain=0.8,
        state_bound=0.6,
        input_bound=0.25,
    )


class LinearContract(PlannerContract):
    def problem(self) -> Problem:
        return plant(0.1)

    def other_problem(self) -> Problem:
        return plant(-0.2)


class TestIdle(LinearContract):
    subject: ClassVar[type] = IdlePlanner

    def agent(self) -> Agent:
        return make_agent("do-nothing")


class TestCertainty(LinearContract):
    subject: ClassVar[type] = CertaintyPlanner

    def agent(self) -> Agent:
        return make_agent("certainty-equivalence")


class TestThompson(LinearContract):
    subject: ClassVar[type] = ThompsonPlanner

    def agent(self) -> Agent:
        return make_agent("thompson")


class TestOfu(LinearContract):
    subject: ClassVar[type] = OfuPlanner

    def agent(self) -> Agent:
        return make_agent("ofu-rl", ridge=0.01)


class TestPrivateOfu(LinearContract):
    subject: ClassVar[type] = OfuPlanner

    def agent(self) -> Agent:
        return make_agent("private-ofu-rl", epsilon=1e4, calibration="tight")


class TestPrivateOfuPublished(LinearContract):
    subject: ClassVar[type] = OfuPlanner

    def agent(self) -> Agent:
        return make_agent("private-ofu-rl", epsilon=1e4)


class TestTacitControl(LinearContract):
    subject: ClassVar[type] = TacitControlPlanner

    def agent(self) -> Agent:
        return make_agent("tacit-control", epsilon=50.0)


# ---- the optimistic step ------------------------------------------------------------------------


def random_region(rng, centre, D, n):
    Z = rng.normal(size=(int(rng.integers(5, 200)), D)) * rng.uniform(0.05, 0.5, D)
    lam, U = np.linalg.eigh(Z.T @ Z + 0.1 * np.eye(D))
    return Ellipsoid(centre, lam, U, float(rng.uniform(0.05, 1.0)))


def grid_minimum(facts, region, points=81):
    gains, P, gradient = np.empty((facts.H, 1, 1)), np.empty((facts.H + 1, 1, 1)), np.empty((2, 1))
    best = math.inf
    for a in np.linspace(-1, 1, points):
        for b in np.linspace(-1, 1, points):
            theta = np.array([[a], [b]])
            if a * a + b * b <= 1 and region.holds(theta):
                value = lq.optimal_cost_gradient(theta, facts.setting, gains, P, gradient)
                best = min(best, value)
    return best


def test_the_solver_is_never_above_a_grid_and_the_certificate_is_within_two_percent() -> None:
    facts = linear_task(make_problem("lq-scalar").task(10, ["start"]))
    rng, solved = np.random.default_rng(5), 0
    while solved < 8:
        region = random_region(rng, rng.uniform(-0.8, 0.8, (2, 1)), 2, 1)
        found = optimistic(facts, region, None, rng)
        if not found.met:
            continue
        solved += 1
        bound = certificate(facts, region)
        assert found.value <= grid_minimum(facts, region) + 1e-9
        assert bound <= found.value + 1e-9
        assert found.value - bound <= 0.02 * found.value


@pytest.mark.parametrize("name", ["lq-double-integrator", "lq-thermal"])
def test_vector_solutions_are_feasible_certified_and_below_samples(name: str) -> None:
    problem = make_problem(name)
    facts, rng = linear_task(problem.task(10, ["start"])), np.random.default_rng(6)
    for _ in range(3):
        centre = problem.theta + 0.08 * rng.normal(size=problem.theta.shape)
        region = random_region(rng, centre, facts.D, facts.n)
        found = optimistic(facts, region, None, rng)
        if not found.met:
            continue
        off = region.U.T @ (found.theta - centre)
        assert (region.lam[:, None] * off**2).sum() <= region.radius**2 * (1 + 1e-9)
        assert np.linalg.norm(found.theta) <= 1 + 1e-9
        gap = (found.value - certificate(facts, region)) / found.value
        assert -1e-9 <= gap < 0.05
        gains = np.empty((facts.H, facts.d, facts.n))
        P, gradient = np.empty((facts.H + 1, facts.n, facts.n)), np.empty((facts.D, facts.n))
        for _ in range(200):
            push = rng.normal(size=centre.shape)
            push *= region.radius / np.linalg.norm(push)
            other = centre + region.U @ (push / np.sqrt(region.lam)[:, None])
            if np.linalg.norm(other) <= 1:
                value = lq.optimal_cost_gradient(other, facts.setting, gains, P, gradient)
                assert found.value <= value + 1e-9


def test_sets_that_do_not_meet_are_reported_and_survived() -> None:
    facts = linear_task(make_problem("lq-scalar").task(10, ["start"]))
    far = Ellipsoid(np.array([[3.0], [4.0]]), np.ones(2), np.eye(2), 0.5)
    found = optimistic(facts, far, None, np.random.default_rng(0))
    assert not found.met and np.allclose(found.theta, [[0.6], [0.8]])


def test_zero_is_recognised_as_the_most_favourable_plant() -> None:
    facts = linear_task(make_problem("lq-thermal").task(10, ["start"]))
    wide = Ellipsoid(make_problem("lq-thermal").theta, np.ones(6), np.eye(6), 2.0)
    found = optimistic(facts, wide, None, np.random.default_rng(0))
    assert not found.theta.any()
    assert found.value == pytest.approx(1.0 + 23 * 4 * 0.12**2 / 6)
    assert certificate(facts, wide) <= found.value + 1e-9


def test_published_constants() -> None:
    """docs/papers/lq_jdp.md#confidence: 15.2 / 16.4 / 19.3, and ours well below them."""
    for D, multiplier in ((2, 15.2), (3, 16.4), (6, 19.3)):
        paper = paper_ridge(1.0, 1.0, 1, (D, 1), 1000, 0.05)
        assert paper.least == pytest.approx(multiplier, abs=0.05)
        assert (paper.shift, paper.most) == (2 * paper.least, 3 * paper.least)
        assert tight_ridge(1.0, 1.0, (D, 1), 1000, 0.05).least < 0.6 * paper.least


def test_the_bound_on_isometric_noise_holds() -> None:
    rng = np.random.default_rng(7)
    for D in (2, 6):
        G = rng.normal(size=(2000, D, D))
        sizes = np.linalg.norm((G + G.transpose(0, 2, 1)) / 2, 2, axis=(1, 2))
        assert (sizes > tight_ridge(1.0, 1.0, (D, 1), 1, 0.2).least).mean() < 0.05


# ---- a confidence radius of raw data is caught ---------------------------------------------------


class RawRadius(OfuPlanner):
    """As published: the radius contains exact moments (docs/papers/lq_jdp.md#e1)."""

    peek: Any

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        exact = self.peek()
        extra = float(np.log1p(np.maximum(exact[0], 0.0) / self.ridge.least))
        honest = super().plan(task, release, ask, previous, streams)
        radius = honest.context["radius"] + 1e-3 * extra
        return replace(honest, context={**honest.context, "radius": radius})


class Spying(CountedSums):
    """Keeps the exact moments where a planner can see them."""

    def init(self):
        self.exact = np.zeros(self.layout.size)
        return super().init()

    def absorb(self, secret, report, version):
        self.exact = self.exact + report.values * self.layout.units
        return super().absorb(secret, report, version)


@dataclass(frozen=True)
class Leaky(Agent):
    name: ClassVar[str] = "leaky-ofu-rl"
    needs: ClassVar[frozenset[str]] = frozenset({"start"})
    planted: bool = True

    def bind(self, task: Task) -> BoundAgent:
        bound = make_agent("private-ofu-rl", epsilon=1e4, calibration="tight").bind(task)
        spy, honest = bound.privatizer, bound.planner
        spy.__class__ = Spying
        planner = RawRadius(honest.ridge, beta=honest.beta)
        planner.peek = lambda: spy.exact if self.planted else np.zeros(1)
        return replace(bound, planner=planner)


@pytest.mark.parametrize("planted", [True, False])
def test_a_radius_of_raw_data_is_caught_by_replay(planted: bool) -> None:
    class Case(LinearContract):
        subject: ClassVar[type] = RawRadius

        def agent(self) -> Agent:
            return Leaky(planted)

    case = Case()
    if planted:
        with pytest.raises(AssertionError):
            case.test_other_data_or_another_truth_behind_the_same_releases_changes_nothing()
    else:
        case.test_other_data_or_another_truth_behind_the_same_releases_changes_nothing()
