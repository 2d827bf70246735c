"""Planners for linear MDPs go through the contract; answered questions are covered by it too."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest

import tacit
from contracts.planner import PlannerContract, Poisoner, noise, publications, same, with_privatizer
from contracts.privatizer import streams
from tacit.agents import (
    Agent,
    DpLsviAdaptive,
    DpLsviBatch,
    DpLsviUCBPlusPlus,
    LsviUCB,
    LsviUCBPlusPlus,
    TacitLinear,
)
from tacit.kernels.public.lsvi import log_determinants, stretched
from tacit.learner import BoundAgent, drive
from tacit.planners.lsvi import LsviPlanner, LsviPlusPlanner, Switching, raised
from tacit.planners.ridge import RidgePlanner, noise_edge, ridge, unpacked
from tacit.privacy import Query, Secret
from tacit.problems import Problem, make_problem
from tacit.publication import Publication
from tacit.release import NoNoise, Release
from tacit.task.task import feature_table


class Restoring(Poisoner):
    """Sums come back for every question, and are destroyed again before the planner goes on."""

    hidden = None

    def release(self, secret: Secret, query: Query, source: object) -> Release:
        if self.hidden is not None:
            secret.sums[:] = self.hidden
        return super().release(secret, query, source)


class LinearContract(PlannerContract):
    def problem(self) -> Problem:
        return make_problem("synthetic-linear", horizon=3, actions=4, seed=0)

    def other_problem(self) -> Problem:
        return make_problem("synthetic-linear", horizon=3, actions=4, reward=0.8, seed=0)

    def test_destroying_the_raw_sums_before_planning_changes_nothing(self) -> None:
        clean = publications(self.bound(), self.problem())
        assert len(clean) > 0 and same(clean, poisoned(self.bound(), self.problem()))


def poisoned(bound: BoundAgent, problem: Problem) -> list[Publication]:
    rng = np.random.default_rng(0)
    wrapped = with_privatizer(bound, Restoring)
    poisoner, absorb = wrapped.privatizer, wrapped.privatizer.inner.absorb

    def absorb_after_planning(secret: Secret, report, version: int) -> Secret:
        if poisoner.hidden is not None:
            secret.sums[:], poisoner.hidden = poisoner.hidden, None
        return absorb(secret, report, version)

    poisoner.absorb = absorb_after_planning
    return list(drive(wrapped, lambda p: problem.rollout(p.policy, rng), noise(), streams(7)))


class TestLsvi(LinearContract):
    subject: ClassVar[type] = LsviPlanner

    def agent(self) -> Agent:
        return LsviUCB(bonus_scale=0.1)


class TestAdaptive(TestLsvi):
    """So little noise that it switches among a few users."""

    def agent(self) -> Agent:
        return DpLsviAdaptive(epsilon=1e5, bonus_scale=0.1, calibration="tight")

    def test_it_switches_at_all(self) -> None:
        last = publications(self.bound(), self.problem())[-1]
        assert int(last.context["switches"]) > 1


class TestRayleigh(TestAdaptive):
    def agent(self) -> Agent:
        return DpLsviAdaptive(
            epsilon=1e5, bonus_scale=0.1, switching="rayleigh", calibration="tight"
        )


class TestBatch(TestLsvi):
    def agent(self) -> Agent:
        return DpLsviBatch(epsilon=1e3, calibration="tight")


class TestPlus(LinearContract):
    subject: ClassVar[type] = LsviPlusPlanner

    def agent(self) -> Agent:
        return LsviUCBPlusPlus("tight", bonus_scale=0.1)


class TestPlusAsPublished(LinearContract):
    subject: ClassVar[type] = LsviPlusPlanner

    def agent(self) -> Agent:
        return LsviUCBPlusPlus()


class TestPrivatePlus(TestPlus):
    def agent(self) -> Agent:
        return DpLsviUCBPlusPlus(epsilon=1e5, bonus_scale=0.1, calibration="tight")

    test_it_switches_at_all = TestAdaptive.test_it_switches_at_all


class TestPrivatePlusRayleigh(TestPrivatePlus):
    def agent(self) -> Agent:
        return DpLsviUCBPlusPlus(
            epsilon=1e5, bonus_scale=0.1, switching="rayleigh", calibration="tight"
        )


class TestPrivateAsPublished(TestPlus):
    def agent(self) -> Agent:
        return DpLsviUCBPlusPlus(epsilon=1.0)


class TestAdaptiveAsPublished(TestLsvi):
    def agent(self) -> Agent:
        return DpLsviAdaptive(epsilon=1e5, bonus_scale=0.1)


class TestRidge(LinearContract):
    subject: ClassVar[type] = RidgePlanner

    def agent(self) -> Agent:
        return TacitLinear(epsilon=5.0)


class TestRidgeAnswered(TestRidge):
    def agent(self) -> Agent:
        return TacitLinear(epsilon=5.0, sums="answered")


class TestRidgePooled(TestRidge):
    def problem(self) -> Problem:
        return make_problem("river-swim", states=3, horizon=3)

    def other_problem(self) -> Problem:
        return make_problem("river-swim", states=3, horizon=3, kernel="vtr")


def symmetric(seed: int, d: int = 4) -> np.ndarray:
    matrix = np.random.default_rng(seed).normal(size=(3, d, d))
    return matrix @ np.swapaxes(matrix, 1, 2)


def pack(matrices: np.ndarray) -> np.ndarray:
    """Upper triangles row by row, off-diagonal entries times sqrt 2."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


def test_unpacking_undoes_packing_and_reads_diagonals() -> None:
    matrices = symmetric(1)
    assert np.allclose(unpacked(pack(matrices), 4), matrices)
    assert np.array_equal(unpacked(np.array([[1.0, 2.0]]), 2)[0], np.diag([1.0, 2.0]))


def test_determinants_agree_with_numpy_and_notice_low_eigenvalues() -> None:
    matrices, logdet, work = symmetric(2), np.empty(3), np.empty((4, 4))
    assert log_determinants(pack(matrices), 0.5, 0.4, work, logdet)
    assert np.allclose(logdet, np.linalg.slogdet(matrices + 0.5 * np.eye(4))[1])
    low = matrices - 2 * np.linalg.eigvalsh(matrices)[:, -1:, None] * np.eye(4)
    assert not log_determinants(pack(low), 0.5, 0.4, work, logdet)
    repaired = raised(low, 0.4)
    assert np.linalg.eigvalsh(repaired).min() == pytest.approx(0.4)


def test_stretching_is_the_largest_generalised_eigenvalue() -> None:
    work = np.empty((4, 4))
    for seed in range(20):
        before, now = symmetric(seed) + 0.3 * np.eye(4), symmetric(100 + seed)
        largest = max(
            np.linalg.eigvals(np.linalg.solve(v, g + 0.5 * np.eye(4))).real.max()
            for v, g in zip(before, now, strict=True)
        )
        assert stretched(pack(now), 0.5, before, 0.999 * largest, work)
        assert not stretched(pack(now), 0.5, before, 1.001 * largest, work)


def test_a_determinant_that_shrinks_elsewhere_hides_a_direction_that_has_doubled() -> None:
    """What noise does and data alone cannot: docs/papers/linear_jdp.md#rayleigh."""
    before, now = np.diag([4.0, 4.0])[None], np.diag([9.0, 1.0])[None]
    assert np.linalg.det(now[0]) < 2 * np.linalg.det(before[0])
    assert stretched(pack(now), 0.0, before, 2.0, np.empty((2, 2)))


def test_without_noise_directions_double_at_most_as_often_as_determinants() -> None:
    """So one cap on the number of answers serves both rules."""
    rng, count = np.random.default_rng(4), {"determinant": 0, "rayleigh": 0}
    gram, work = np.zeros((1, 3, 3)), np.empty((3, 3))
    marks = {rule: np.eye(3)[None] for rule in count}
    for _ in range(400):
        x = rng.normal(size=3) * [1.0, 0.3, 0.1]
        gram += np.outer(x, x)
        V = gram + np.eye(3)
        if np.linalg.det(V) >= 2 * np.linalg.det(marks["determinant"]):
            count["determinant"], marks["determinant"] = count["determinant"] + 1, V.copy()
        if stretched(pack(gram), 1.0, marks["rayleigh"], 2.0, work):
            count["rayleigh"], marks["rayleigh"] = count["rayleigh"] + 1, V.copy()
    assert 3 < count["rayleigh"] <= count["determinant"]


def test_without_noise_the_prior_is_the_top_of_the_range_and_data_outweigh_it() -> None:
    """Prediction with residual: unseen directions give t, well seen ones the regression."""
    phi, ones = np.eye(3), np.ones(3)
    gram = np.diag([1e6, 1e6, 0.0])[None]
    fit = ridge(gram, phi, ones, 1.0, 0.0)
    assert fit.residual[0] == pytest.approx([0.0, 0.0, 1.0], abs=1e-5)
    y = 1e6 * np.array([0.25, -0.25, 0.0])
    prediction = 1.0 + fit.weights[0] @ y + (5.0 - 1.0) * fit.residual[0]
    assert prediction == pytest.approx([1.25, 0.75, 5.0], abs=1e-4)


def test_the_floor_repairs_negative_eigenvalues() -> None:
    fit = ridge(-np.eye(2)[None], np.eye(2), np.ones(2), 1.0, 3.0)
    assert fit.weights[0] == pytest.approx(np.eye(2) / 4.0)
    assert fit.residual[0] == pytest.approx([5.0 / 4.0] * 2)


def test_the_edge_of_the_noise_is_where_its_spectrum_ends() -> None:
    rng, d = np.random.default_rng(0), 40
    packed = rng.normal(size=(20, d * (d + 1) // 2))
    largest = np.linalg.eigvalsh(unpacked(packed, d))[:, -1]
    assert largest.mean() == pytest.approx(noise_edge(1.0, d, diagonal=False), rel=0.1)


def test_switches_are_capped_whatever_the_matrices_do() -> None:
    problem = make_problem("synthetic-linear", horizon=2, actions=4)
    task = problem.task(users=40)
    bound = LsviUCBPlusPlus("tight", bonus_scale=0.1).bind(task)
    planner = LsviPlusPlanner(0.1, 0.0, bound.planner.bonus, Switching(3))
    capped = BoundAgent(task, bound.statistic, bound.privatizer, planner)
    last = publications(capped, problem)[-1]
    assert int(last.context["switches"]) == 3


def test_the_pessimistic_values_rise_and_stay_below_the_optimistic_ones() -> None:
    """docs/papers/linear_jdp.md#e9: as printed, Qcheck would stay 0 for ever."""
    problem = make_problem("synthetic-linear", horizon=3, actions=4)
    bound = LsviUCBPlusPlus("tight", bonus_scale=0.3).bind(problem.task(users=1000))
    last = publications(bound, problem)[-1]
    assert (last.context["Qcheck"] <= last.context["Qhat"] + 1e-9).all()
    assert last.context["Qcheck"].max() > 0.5
    agent = LsviUCBPlusPlus("tight", bonus_scale=0.02)
    learned = tacit.simulate(problem, agent, 1000).regret[0, -1]
    assert learned < 0.3 * 1000 * (problem.optimal_value() - problem.baseline()[1])


@pytest.mark.parametrize(("calibration", "monotone"), [("paper", True), ("tight", False)])
def test_only_the_published_planner_remembers_its_lowest_values(calibration, monotone) -> None:
    """Two switches, the first answered far too low: tight calibration forgets it."""
    task = make_problem("synthetic-linear", horizon=3, actions=4).task(users=100)
    agent = DpLsviUCBPlusPlus(epsilon=1e4, bonus_scale=0.0, calibration=calibration)
    planner, d = agent.bind(task).planner, 10
    planner = dataclasses.replace(planner, switching=Switching(5, rate=1.0 + 1e-9))
    found, last = [], None
    for users, size, answer in ((0, 0.0, 0.0), (1, 1.0, -1e9), (2, 2.0, 1e9)):
        gram = np.tile(pack(1e9 * size * np.eye(d)[None]), (3, 1))

        def ask(query, value=answer):
            ones = np.linalg.lstsq(feature_table(task).reshape(-1, d), np.ones(8), rcond=None)[0]
            return Release(1, {"answer": value * 1e9 * ones}, NoNoise(), "none")

        release = Release(users, {"gram": gram}, NoNoise(), "none")
        last = planner.plan(task, release, ask, last, streams(3))
        found.append(last.context["Qhat"].max())
    assert found == [3.0, 0.0, 0.0 if monotone else 3.0]
