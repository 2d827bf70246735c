"""The planner of searches: contract, batches, window, sigma, way back and average."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import pytest

from contracts.planner import PlannerContract
from contracts.privatizer import no_questions, streams
from tacit.agents import Agent, make_agent
from tacit.agents.tacit_search import joint_errors, local_errors
from tacit.planners.search import (
    TUNING,
    Errors,
    ReturnWindow,
    SearchBatch,
    SearchPlanner,
    _point,
    batch_size,
)
from tacit.privacy.finite.sliding import best_sliding
from tacit.problems import Problem
from tacit.problems.classic_control import cart_pole, pendulum
from tacit.problems.episodic import CompiledEpisodes
from tacit.release import NoNoise, Release
from tacit.task.task import Task


def heavy_pole() -> CompiledEpisodes:
    """The same task, another truth."""
    problem = cart_pole()
    mass = problem.world.p.copy()
    mass[2] = 0.7
    problem.world = problem.world._replace(p=mass)
    return problem


class TestSearchPlanner(PlannerContract):
    subject: ClassVar[type] = SearchPlanner
    model: ClassVar[str] = "joint"

    def agent(self) -> Agent:
        return make_agent("tacit-search", epsilon=1.0, model=self.model)

    def problem(self) -> Problem:
        return cart_pole()

    def other_problem(self) -> Problem:
        return heavy_pole()


class TestLocalSearch(TestSearchPlanner):
    model: ClassVar[str] = "local"


TASK = cart_pole().task(users=1200)
EXACT = Errors((0.0, 0.0, 0.0), (0.1, 0.25, 0.09), False)


def told(n: int, gradient, mean: float, square: float, before: Release | None = None) -> Release:
    """A release about n people; all so far where there was one before."""
    weight = math.sqrt(10.0)
    blocks = {
        "gradient": n * np.asarray(gradient, dtype=np.float64),
        "mean": np.asarray(n * mean),
        "square": np.asarray(n * weight * (square - 0.5)),
    }
    if before is not None:
        n += before.users
        blocks = {name: blocks[name] + before.blocks[name] for name in blocks}
    return Release(n, blocks, NoNoise(), "none")


SIZE = batch_size(1200, 4, EXACT)
NOBODY = told(0, np.zeros(4), 0.0, 0.0)


def plan(planner: SearchPlanner, release: Release, previous=None, task: Task = TASK):
    return planner.plan(task, release, no_questions, previous, streams(1))


def test_the_first_batch_tries_out_around_zero_in_the_declared_range() -> None:
    first = plan(SearchPlanner(EXACT), NOBODY)
    assert (first.policy.theta == 0).all() and first.policy.sigma == 1.0
    assert first.context["window"].tolist() == [250.0, 250.0]
    assert first.users is None


def test_a_clear_gradient_is_followed_by_a_bounded_step() -> None:
    planner = SearchPlanner(EXACT)
    first = plan(planner, NOBODY)
    second = plan(planner, told(SIZE, [0.3, 0, 0, 0], 0.0, 0.33), first)
    step = second.policy.theta - first.policy.theta
    assert step[0] > 0.5 and (step[1:] == 0).all()
    assert np.linalg.norm(step) <= TUNING.eta * 2.0 and second.policy.key == first.policy.key


def test_noise_shortens_the_step_and_lengthens_the_memory() -> None:
    noisy = SearchPlanner(Errors((1e6, 1e6, 1e6), EXACT.person, False))
    steps = []
    for planner in (SearchPlanner(EXACT), noisy):
        first = plan(planner, NOBODY)
        second = plan(planner, told(SIZE, [0.3, 0, 0, 0], 0.0, 0.33), first)
        steps.append(second.policy.theta[0])
    assert 0 < steps[1] < 0.1 * steps[0]


def test_sums_of_everybody_so_far_are_read_batch_by_batch() -> None:
    alone, running = SearchPlanner(EXACT), SearchPlanner(EXACT._replace(cumulative=True))
    one, two, seen = plan(alone, NOBODY), plan(running, NOBODY), None
    for k in range(5):
        said = ([0.1, -0.2, 0.05 * k, 0], 0.1 * k - 0.2, 0.3)
        fresh = told(SIZE, *said)
        seen = told(SIZE, *said, before=seen)
        one, two = plan(alone, fresh, one), plan(running, seen, two)
        assert one.policy.theta == pytest.approx(two.policy.theta, abs=1e-12)
        assert one.context["window"] == pytest.approx(two.context["window"], rel=1e-12)


def test_the_window_follows_the_mean_and_stays_in_the_declared_range() -> None:
    planner, windows = SearchPlanner(EXACT), []
    publication = plan(planner, NOBODY)
    for _ in range(6):
        publication = plan(planner, told(SIZE, np.zeros(4), -0.9, 0.82), publication)
        windows.append(publication.context["window"])
    halves = [half for _, half in windows]
    assert all(later < before for before, later in zip(halves, halves[1:], strict=False))
    assert all(
        half >= before / 2 * (1 - 1e-12) for before, half in zip(halves, halves[1:], strict=False)
    )
    assert all(centre - half >= -1e-9 and centre + half <= 500.0 for centre, half in windows)


def test_it_goes_back_when_returns_have_fallen_for_good() -> None:
    """Six good batches, then returns below the window of the good ones, until the window is low."""
    planner, publication = SearchPlanner(EXACT), plan(SearchPlanner(EXACT), NOBODY)
    good = []
    for _ in range(6):
        good.append(publication.policy.theta)
        publication = plan(planner, told(SIZE, [0.3, 0, 0, 0], 0.8, 0.7), publication)
    for _ in range(30):
        before = publication
        publication = plan(planner, told(SIZE, [0.3, 0, 0, 0], -0.9, 0.82), before)
        if publication.context["restarts"] > 0:
            break
    assert publication.context["restarts"] == 1.0
    assert publication.policy.theta[0] < before.policy.theta[0]
    assert (publication.context["gradient"] == 0).all()
    assert len(publication.context["recent"]) == 0


def test_in_the_end_the_last_parameters_are_averaged_and_nothing_is_tried_out() -> None:
    planner = SearchPlanner(EXACT)
    publication, played = plan(planner, NOBODY), []
    batches = math.ceil(1200 / SIZE)
    for _ in range(batches):
        played.append(publication.policy.theta)
        assert publication.policy.sigma == 1.0
        publication = plan(planner, told(SIZE, [0.2, 0.1, 0, 0], 0.1, 0.33), publication)
    last = round(TUNING.average * batches)
    kept = [*played[len(played) - last + 1 :], publication.context["w"]]
    assert publication.policy.theta == pytest.approx(np.mean(kept, axis=0), rel=1e-12)
    assert publication.policy.sigma == 0.0


def test_where_the_size_of_parameters_matters_less_and_less_is_tried_out() -> None:
    task, planner = pendulum().task(users=1200), SearchPlanner(EXACT)
    d = 9
    empty = {"gradient": np.zeros(d), "mean": np.zeros(()), "square": np.zeros(())}
    publication = plan(planner, Release(0, empty, NoNoise(), "none"), task=task)
    sigmas = []
    while publication.policy.sigma > 0:
        sigmas.append(publication.policy.sigma)
        release = Release(SIZE, empty, NoNoise(), "none")
        publication = plan(planner, release, publication, task)
    half = len(sigmas) // 2
    assert sigmas[: half + 1] == [1.0] * (half + 1)
    assert 0.25 < sigmas[-1] < 0.4 and sigmas == sorted(sigmas, reverse=True)


@pytest.mark.parametrize("users", [1, 2, 3, 25, 1000, 100_001])
@pytest.mark.parametrize("d", [1, 4, 14])
def test_batches_are_even_and_neither_too_few_nor_too_many(users: int, d: int) -> None:
    for errors in (joint_errors(3.7, d), local_errors(best_sliding(0.5)), EXACT):
        size = batch_size(users, d, errors)
        assert size % 2 == 0 and 2 <= size
        assert math.ceil(users / size) <= TUNING.most
        assert math.ceil(users / size) >= min(TUNING.fewest, users // 4)


def test_batches_are_as_many_as_their_noise_allows() -> None:
    errors = joint_errors(20.0, 4)
    size = batch_size(20_000, 4, errors)
    assert errors.sd(0, size) * 2 <= TUNING.tau < errors.sd(0, int(size * 0.9)) * 2
    more = dataclasses.replace(TUNING, fewest=40)
    assert math.ceil(2_000 / batch_size(2_000, 4, errors, more)) == 40


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_the_released_curve_holds_the_mean_return_of_a_batch(spread: float) -> None:
    """Twice the stated error on either side covers in at least 95% of batches, whatever returns."""
    rng, people, noise = np.random.default_rng(7), 150, 20.0
    errors = Errors((noise**2,) * 3, (0.1, 0.25, 0.09), cumulative=False)
    window, mean, held = ReturnWindow(100.0, 40.0), 0.3, 0
    for _ in range(4000):
        chance = (1.0 + mean / max(spread, 1e-9)) / 2.0 if spread > mean else 0.5
        x = np.where(rng.random(people) < chance, spread, -spread)
        true = (2.0 * chance - 1.0) * spread
        found = (x.sum() + noise * rng.standard_normal()) / people
        sds = [errors.sd(block, people) for block in range(3)]
        batch = SearchBatch(people, np.zeros(1), min(max(found, -1.0), 1.0), 0.5, *sds)
        count, middle, error, least, most = _point(batch, window)
        assert (count, least, most) == (people, 60.0, 140.0)
        held += abs(middle - (100.0 + 40.0 * true)) <= 2.0 * error
    assert held >= 0.95 * 4000
