"""What a person contributes to a search: bounded by construction, to the declared sensitivity."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.excitation import uniform_at
from tacit.kernels.public import scores
from tacit.kernels.public.scores import search_coins, search_directions
from tacit.kernels.raw.returns import add_windowed
from tacit.policies.parametric import ParametricPolicy, parameters, scoring, scoring_of
from tacit.policies.tabular import uniform_policy
from tacit.publication import Publication
from tacit.statistics import Relation
from tacit.statistics.search import RoundedReturn, SharedReturn, WindowedReturn
from tacit.task.task import Task
from tacit.trajectory import Lives, VectorTrajectory

REPLACE, REMOVE = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE


def task_of(numbers: int) -> Task:
    """A task with that many parameters: two actions, one score."""
    known = {**scoring_of(np.ones(numbers)), "returns": np.array([0.0, 500.0])}
    sizes = {"states": numbers, "actions": 2}
    return Task("episodic", 10, sizes, homogeneous=False, users=100, known=known)


def publication(task: Task, window=(250.0, 250.0), key: int = 5) -> Publication:
    form = scoring(task.sizes, task.known)
    policy = ParametricPolicy(form, np.zeros(parameters(form)), 10, sigma=1.0, key=key)
    return Publication(0, policy, {"window": np.array(window, dtype=np.float64)})


def person(*rewards: float) -> VectorTrajectory:
    return VectorTrajectory(np.zeros((0, 1)), np.zeros((0, 1)), np.array(rewards))


def contributed(statistic, life, public: Publication, coin: int = 0) -> np.ndarray:
    out = np.full(statistic.layout.size, 7, dtype=np.int64)
    statistic.contribute(life, public, coin, out)
    return out * statistic.layout.units


def rows(d: int, steps: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Contributions of all x in ``steps`` along one direction, from the kernel that adds them."""
    found = np.zeros((len(steps), d + 2), dtype=np.int64)
    for x, out in zip(steps, found, strict=True):
        add_windowed(np.array([x]), z, math.sqrt(2.0 * (d + 1)), out)
    return found / STEPS


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.0, 3.0), (2.0, 0.5)])
@pytest.mark.parametrize("d", [1, 3])
def test_what_goes_with_a_shared_direction_is_bounded(d: int, weights: tuple[float, float]) -> None:
    """Somebody else plays the same direction; nobody plays none."""
    task = task_of(d)
    statistic, public = SharedReturn(task), publication(task, (0.0, 1.0))
    scale = dict(zip(("direction", "x"), weights, strict=True))
    lives = [person(reward) for reward in (-9.0, -0.3, 0.0, 1.0)]
    for norm, order in (("l1", 1), ("l2", 2)):
        replaced, alone = 0.0, 0.0
        for coin in range(2 * d):
            rows = np.array([contributed(statistic, life, public, coin) for life in lives])
            rows *= weights
            apart = np.linalg.norm(rows[:, None] - rows[None], order, axis=2)
            replaced = max(replaced, apart.max())
            alone = max(alone, np.linalg.norm(rows, order, axis=1).max())
        assert replaced == pytest.approx(statistic.sensitivity(norm, REPLACE, scale))
        assert alone == pytest.approx(statistic.sensitivity(norm, REMOVE, scale))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 9, 40, 200])
def test_the_sensitivity_is_attained_and_never_passed(d: int) -> None:
    """All pairs of a coarse grid, and of the finest grid next to the ends and to the middle."""
    statistic, z = WindowedReturn(task_of(d)), np.empty((1, d), dtype=np.int64)
    fine = np.arange(12)
    steps = np.concatenate(
        [np.linspace(-STEPS, STEPS, 161).astype(np.int64), STEPS - fine, fine - STEPS, fine - 6]
    )
    for user in range(4):
        search_directions(11, np.array([user]), z)
        found = rows(d, steps, z)
        squares = ((found[:, None] - found[None]) ** 2).sum(axis=2)
        allowed = statistic.sensitivity("l2", REPLACE)
        assert allowed == 2.0 * math.sqrt(d + 1)
        assert squares.max() <= allowed**2
        assert math.sqrt(squares.max()) == pytest.approx(allowed, rel=1e-6)
        assert (found**2).sum(axis=1).max() <= statistic.sensitivity("l2", REMOVE) ** 2
        sums = np.abs(found[:, None] - found[None]).sum(axis=2).max()
        assert sums <= statistic.sensitivity("l1", REPLACE)
        assert np.abs(found).sum(axis=1).max() <= statistic.sensitivity("l1", REMOVE)


@pytest.mark.parametrize("d", [2, 3, 4, 16])
def test_a_vector_without_a_direction_moves_nothing(d: int, monkeypatch) -> None:
    """Were all normal vectors of a block the same, nothing would be left of the later ones."""
    monkeypatch.setattr(scores, "uniform_at", lambda *_: 0.5)
    block = np.empty((d, d))
    getattr(scores._block, "py_func", scores._block)(0, 0, block)
    assert ((block**2).sum(axis=1) <= d * (1 + 1e-12)).all()


@pytest.mark.parametrize("d", [1, 4, 40])
def test_the_second_moment_is_as_heavy_as_it_can_be_for_nothing(d: int) -> None:
    """Somewhat more weight on it passes what is declared: the bound on b is sharp."""
    z, steps = np.empty((1, d), dtype=np.int64), np.linspace(-STEPS, STEPS, 801).astype(np.int64)
    search_directions(11, np.array([0]), z)
    found = rows(d, steps, z)
    for factor, passes in ((1.0, False), (1.5, True)):
        heavier = found.copy()
        heavier[:, -1] *= factor
        largest = math.sqrt(((heavier[:, None] - heavier[None]) ** 2).sum(axis=2).max())
        assert (largest > 2.0 * math.sqrt(d + 1)) == passes


@settings(max_examples=60, deadline=None)
@given(*[st.floats(0.01, 4.0)] * 3, st.sampled_from([1, 3, 7]))
def test_weighed_blocks_are_bounded_too(g: float, m: float, s: float, d: int) -> None:
    statistic, z = WindowedReturn(task_of(d)), np.empty((1, d), dtype=np.int64)
    search_directions(2, np.array([3]), z)
    weights = np.array([g] * d + [m, s])
    found = rows(d, np.linspace(-STEPS, STEPS, 121).astype(np.int64), z) * weights
    scale = {"gradient": g, "mean": m, "square": s}
    apart = found[:, None] - found[None]
    for norm, size in (("l1", np.abs(apart).sum(axis=2)), ("l2", np.linalg.norm(apart, axis=2))):
        assert size.max() <= statistic.sensitivity(norm, REPLACE, scale) * (1 + 1e-12)
    assert np.linalg.norm(apart, axis=2).max() >= 0.98 * statistic.sensitivity("l2", REPLACE, scale)


ANYTHING = st.floats(allow_nan=True, allow_infinity=True)


@settings(max_examples=200, deadline=None)
@given(st.lists(ANYTHING, min_size=1, max_size=3), ANYTHING, ANYTHING, st.integers(0, 2**62 - 1))
def test_whatever_is_lived_and_published_stays_within_bounds(rewards, centre, half, coin) -> None:
    task = task_of(3)
    public, statistic = publication(task, (centre, half)), WindowedReturn(task)
    found = contributed(statistic, person(*rewards), public, coin)
    assert np.linalg.norm(found) <= statistic.sensitivity("l2", REMOVE)
    assert abs(found[3]) <= 1.0
    rounded = RoundedReturn(task, 6)
    out = contributed(rounded, person(*rewards), public, coin)
    assert out[0] == coin and out[1] in range(7)


def test_the_worst_pair_attains_the_sensitivity_in_every_worst_window() -> None:
    task = task_of(4)
    for statistic in (WindowedReturn(task), RoundedReturn(task, 6)):
        allowed = statistic.sensitivity("l2", REPLACE)
        for context in statistic.worst_contexts().values():
            public = publication(task, tuple(context["window"]))
            one, two = (contributed(statistic, life, public, 9) for life in statistic.worst_pair())
            assert np.linalg.norm(one - two) == pytest.approx(allowed, rel=1e-6)


def test_what_is_not_a_number_counts_as_the_worst_and_rewards_are_added_up() -> None:
    task = task_of(2)
    statistic, public = WindowedReturn(task), publication(task)
    assert contributed(statistic, person(math.nan), public)[2] == -1.0
    assert contributed(statistic, person(100.0, 200.0), public)[2] == pytest.approx(0.2, abs=1e-7)
    assert contributed(statistic, person(1e9), public)[2] == 1.0


def test_other_publications_are_refused() -> None:
    task = task_of(2)
    for statistic in (WindowedReturn(task), RoundedReturn(task, 2)):
        window = {"window": np.array([0.0, 1.0])}
        with pytest.raises(InvalidInput, match="ParametricPolicy"):
            contributed(statistic, person(1.0), Publication(0, uniform_policy(2, 2, 2), window))
        with pytest.raises(InvalidInput, match="must carry 'window'"):
            contributed(statistic, person(1.0), Publication(0, publication(task).policy))
        with pytest.raises(InvalidInput, match="has 2 parameters, but the published policy 3"):
            contributed(statistic, person(1.0), publication(task_of(3)))


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_directions_are_balanced_and_never_too_long(d: int) -> None:
    people = np.arange(4 * d)
    z = np.empty((4 * d, d), dtype=np.int64)
    search_directions(9, people, z)
    assert (z[::2] == -z[1::2]).all()
    lengths = [sum(int(entry) ** 2 for entry in row) for row in z]
    assert all(d * STEPS**2 * (1 - 1e-6) < length <= d * STEPS**2 for length in lengths)
    assert (z / STEPS).T @ (z / STEPS) == pytest.approx(4 * d * np.eye(d), abs=1e-5)
    for k in (1, 2 * d):
        alone = np.empty((1, d), dtype=np.int64)
        search_directions(9, people[k : k + 1], alone)
        assert (alone[0] == z[k]).all()
        search_directions.py_func(9, people[k : k + 1], alone)
        assert (alone[0] == z[k]).all()


def test_directions_are_those_of_the_wire_page_one_row_after_the_other() -> None:
    d, key, block = 70, 2**61 + 12345, 3  # more rows than are made side by side
    g = [[0.0] * d for _ in range(d)]
    for i in range(d):
        for j in range(d):
            u, v = (uniform_at(key, block, 2 * (i * d + j) + k) for k in (0, 1))
            g[i][j] = math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)
        for before in g[:i]:
            along = 0.0
            for j in range(d):
                along += g[i][j] * before[j]
            g[i] = [mine - along * its for mine, its in zip(g[i], before, strict=True)]
        size = 0.0
        for entry in g[i]:
            size += entry * entry
        g[i] = [entry / math.sqrt(size) for entry in g[i]]
    expected = [[int(x * math.sqrt(d) * (1 - 2**-32) * 2**24) for x in row] for row in g]
    z = np.empty((2 * d, d), dtype=np.int64)
    search_directions(key, 2 * d * block + np.arange(2 * d), z)
    assert z[::2].tolist() == expected


def test_rounding_by_the_public_coin_has_the_right_mean() -> None:
    """20,000 people with one return: the mean place is off by less than 5 standard errors."""
    task = task_of(2)
    statistic, public, people = RoundedReturn(task, 6), publication(task), np.arange(20_000)
    lives = person(0.0)
    coins = np.empty(len(people))
    search_coins(5, people, coins)
    assert abs(coins.mean() - 0.5) < 5 / math.sqrt(12 * len(people))
    for total in (0.0, 40.0, 300.0, 500.0):
        rewards = np.full((len(people), 1), total)
        found = statistic.shifts(Lives(lives.states, lives.actions, rewards), public, people)
        wanted = 6 * total / 500
        assert abs(found.mean() - wanted) < 5 * 0.5 / math.sqrt(len(people))
