"""Linear statistics: clipped whatever comes, and never further apart than declared."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.kernels.raw.linear_sums import Weights
from tacit.policies.tabular import uniform_policy
from tacit.privacy.curator.declared_answers import Price
from tacit.publication import Publication
from tacit.statistics import Relation
from tacit.statistics.linear import CuratedTransitions, FeaturePairs, LinearSums, clipped_features
from tacit.task.task import Task
from tacit.trajectory import Trajectory

WEIGHTS = Weights(1.0, 0.7, 1.4)
PROBLEMS = [
    tacit.problem("synthetic-linear", horizon=2, actions=5),
    tacit.problem("low-rank", states=3, actions=2, dimension=2, horizon=2, seed=1),
    tacit.problem("river-swim", states=3, horizon=2),
]


def everyone(task: Task) -> list[Trajectory]:
    """Every trajectory with rewards 0 or 1, and somebody who never took part."""
    S, A, H = task.sizes["states"], task.sizes["actions"], task.horizon
    people = [Trajectory(np.zeros(0), np.zeros(0), np.zeros(0))]
    for states in itertools.product(range(S), repeat=H + 1):
        for actions in itertools.product(range(A), repeat=H):
            for r in ((0.0, 0.0), (1.0, 1.0), (0.0, 1.0)):
                people.append(Trajectory(np.array(states), np.array(actions), np.array(r)))
    return people


def vectors(statistic, people, context=None) -> np.ndarray:
    S, A = statistic.phi.shape[:2]
    publication = Publication(0, uniform_policy(2, S, A), context or {})
    rows = []
    for person in people:
        out = np.zeros(statistic.layout.size, dtype=np.int64)
        statistic.contribute(person, publication, 0, out)
        rows.append(out * statistic.layout.units)
    return np.array(rows)


def apart(points: np.ndarray) -> float:
    squares = (points**2).sum(axis=1)
    return math.sqrt(max((squares[:, None] + squares - 2 * points @ points.T).max(), 0.0))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
@pytest.mark.parametrize("reveal", [(), ("reward",)])
def test_nobody_moves_the_sums_further_than_declared(problem, reveal) -> None:
    task = problem.task(users=10, reveal=reveal)
    statistic = LinearSums(task, WEIGHTS)
    points = vectors(statistic, everyone(task))
    declared = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert 0.7 * declared < apart(points) <= declared
    added = statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE)
    assert np.linalg.norm(points, axis=1).max() <= added
    assert np.abs(points).max() <= statistic.largest_cell()
    one, two = statistic.worst_pair()
    assert apart(vectors(statistic, [one, two])) > 0.7 * declared


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_curated_gram_matrices_move_no_further_than_declared(problem) -> None:
    task = problem.task(users=10)
    statistic = CuratedTransitions(task, 0.5)
    S, A = statistic.phi.shape[:2]
    weights = np.random.default_rng(0).uniform(-1.0, 2.0, size=(2, S, A))
    points = vectors(statistic, everyone(task), {"weights": weights})
    gram = points[:, : statistic.layout.blocks[0].size]
    only = {"table": 0.0, "reward": 0.0}
    assert apart(gram) <= statistic.sensitivity("l2", Relation.REPLACE_ONE, only)
    assert apart(points) <= statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert np.abs(points).max() <= statistic.largest_cell()


@pytest.mark.parametrize("make", [lambda t: LinearSums(t, WEIGHTS), CuratedTransitions])
def test_whatever_is_sent_is_clipped(make) -> None:
    task = PROBLEMS[0].task(users=10)
    statistic = make(task)
    wild = [
        Trajectory(np.array([-5, 99, 3]), np.array([7, -1]), np.array([np.nan, 1e9])),
        Trajectory(np.arange(9), np.arange(8), np.full(8, -1e300)),
        Trajectory(np.array([0, 1]), np.array([1]), np.array([np.inf])),
        *everyone(task),
    ]
    points = vectors(statistic, wild)
    assert apart(points) <= statistic.sensitivity("l2", Relation.REPLACE_ONE)


def test_bad_weights_count_as_none_or_as_the_largest() -> None:
    statistic = CuratedTransitions(PROBLEMS[0].task(users=10), 0.5)
    person = [Trajectory(np.array([0, 1, 0]), np.array([0, 0]), np.array([1.0, 1.0]))]
    for bad, expected in ((np.nan, 0.0), (-1.0, 0.0), (7.0, 0.5), (0.25, 0.25)):
        points = vectors(statistic, person, {"weights": np.full((2, 2, 5), bad)})
        assert points[0].max() == pytest.approx(expected, abs=1e-6)


def test_the_sums_are_what_they_say() -> None:
    """phi (e - 1/S)^T V is phi (V(s') - mean V); the packed Gram has the Frobenius norm."""
    task = PROBLEMS[0].task(users=10)
    statistic = LinearSums(task, Weights(1.0, 1.0, 1.0))
    person = Trajectory(np.array([0, 1, 0]), np.array([3, 2]), np.array([0.25, 1.0]))
    out = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.contribute(person, Publication(0, uniform_policy(2, 2, 5)), 0, out)
    views = statistic.layout.views(out * statistic.layout.units)
    phi, V = clipped_features(task), np.array([3.0, 10.0])
    assert views["next"][0] @ V == pytest.approx(phi[0, 3] * (10.0 - 6.5), abs=1e-5)
    assert views["reward"][0] == pytest.approx(phi[0, 3] * -0.25, abs=1e-6)
    assert np.linalg.norm(views["gram"][1]) == pytest.approx(phi[1, 2] @ phi[1, 2], abs=1e-5)


def stage_share(pairs: FeaturePairs, gram: float, vector: np.ndarray) -> float:
    """Joint cost of a stage with equal separate shares 1/2 each, relative to their sum."""
    worst = pairs.gram * 0.5 / gram + vector * 0.5 / vector.max()
    return float(worst.max())


def test_joint_price_matches_the_spec() -> None:
    """Equal split, generic features: .78125 per live stage; RiverSwim .9167, with reward .8611."""
    many = np.random.default_rng(0).normal(size=(3000, 1, 3))
    generic = FeaturePairs(many / np.linalg.norm(many, axis=2, keepdims=True))
    assert generic.bounded_only
    assert stage_share(generic, 2.0, generic.target) == pytest.approx(0.78125, abs=1e-5)
    loads = np.array([0.5 / 19] * 19 + [0.0])  # 19 of 20 stages are asked
    assert Price.joint(generic, 1.0).total(0.5 / 20 / 2, loads) == pytest.approx(0.7829, abs=5e-5)
    river = FeaturePairs(np.eye(12).reshape(6, 2, 12))
    plain = river.vector(5 / 6, -1 / 6, 5 / 6)
    with_reward = river.vector(5 / 6 + 1 / 4, -1 / 6 - 1 / 4, 5 / 6 + 1 / 4)
    assert plain.max() == pytest.approx(2.0) and with_reward.max() == pytest.approx(3.0)
    assert stage_share(river, 2.0, plain) == pytest.approx(0.9167, abs=5e-5)
    assert stage_share(river, 2.0, with_reward) == pytest.approx(0.8611, abs=5e-5)


def test_long_features_are_compared_at_length_one() -> None:
    long = FeaturePairs(np.array([[[3.0, 0.0]], [[3.0, 4.0]], [[0.0, 0.5]]]))
    clipped = FeaturePairs(np.array([[[1.0, 0.0]], [[0.6, 0.8]], [[0.0, 0.5]]]))
    for found, wanted in ((long.inner, clipped.inner), (long.one, clipped.one)):
        assert np.sort(found) == pytest.approx(np.sort(wanted))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
@pytest.mark.parametrize("diagonal", [True, False])
def test_only_diagonals_of_one_hot_features_stand_for_whole_matrices(problem, diagonal) -> None:
    statistic = CuratedTransitions(problem.task(users=10), diagonal=diagonal)
    d = statistic.phi.shape[2]
    alone = diagonal and problem.name == "river-swim"
    assert statistic.layout.blocks[0].shape == (2, d if alone else d * (d + 1) // 2)


def test_separate_prices_are_the_table_of_the_spec() -> None:
    assert Price.separate(0.5, centred=True).total(1.0, np.zeros(1)) == pytest.approx(2 * 0.25)
    assert Price.separate(0.5, centred=True).total(0.0, np.full(1, 9.0)) == pytest.approx(9 * 0.25)
    assert Price.separate(0.5, centred=False).total(0.0, np.full(1, 9.0)) == pytest.approx(
        36 * 0.25
    )


def test_no_pair_of_steps_costs_more_than_the_joint_price() -> None:
    """Random weights, signs and values against the enumerated corners."""
    phi = clipped_features(tacit.problem("low-rank", states=3, actions=3, seed=2).task(users=1))
    price, flat = Price.joint(FeaturePairs(phi), 0.3), phi.reshape(9, -1)
    rng = np.random.default_rng(1)
    worst, most = 0.0, price.total(2.0, np.full(1, 3.0))
    for _ in range(4000):
        (p, q), (w, v) = flat[rng.integers(0, 9, 2)], 0.3 * rng.random(2) ** 0.3
        u, t = rng.uniform(-0.5, 0.5, 2)
        gram = ((w * np.outer(p, p) - v * np.outer(q, q)) ** 2).sum()
        target = ((w * u * p - v * t * q) ** 2).sum()
        assert 2.0 * gram + 3.0 * target <= most * (1 + 1e-9)
        worst = max(worst, 2.0 * gram + 3.0 * target)
    assert worst > 0.5 * most


def test_features_that_are_too_long_are_clipped() -> None:
    """A task may declare anything: no vector counts with a norm above 1."""
    task = PROBLEMS[1].task(users=10)
    long = replace(task, known={**task.known, "features": 3.0 * np.asarray(task.known["features"])})
    statistic, curated = LinearSums(long, WEIGHTS), CuratedTransitions(long)
    for phi in (clipped_features(long), statistic.phi, curated.phi):
        norms = np.linalg.norm(phi, axis=2)
        assert norms.max() <= 1.0 + 1e-12 and norms.max() > 0.9
    declared = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert 0.3 * declared < apart(vectors(statistic, everyone(long))) <= declared


@pytest.mark.parametrize("pooled", [False, True])
def test_what_rounding_adds_is_declared(monkeypatch, pooled) -> None:
    """On a grid of 2^-10 it shows: half a step per cell for either user, at every step."""
    task = replace(PROBLEMS[1].task(users=10), homogeneous=pooled)
    fine, coarse = {}, {}
    for found in (fine, coarse):
        linear, curated = LinearSums(task, WEIGHTS), CuratedTransitions(task)
        found["linear"] = linear.sensitivity("l2", Relation.REPLACE_ONE)
        only = {"table": 0.0, "reward": 0.0}
        found["gram"] = curated.sensitivity("l2", Relation.REPLACE_ONE, only)
        monkeypatch.setattr("tacit.statistics.linear.STEPS", 2**10)
    cells, times = linear.layout.size, task.horizon if pooled else 1
    assert coarse["linear"] - fine["linear"] >= 0.999 * times * math.sqrt(cells) / 2**10
    d = curated.phi.shape[2]
    assert coarse["gram"] - fine["gram"] >= 0.999 * math.sqrt(task.horizon) * d / 2**10


def test_a_step_without_a_next_state_adds_no_transition() -> None:
    """As many states as actions: nothing is read behind the end, and the rest counts."""
    task = tacit.problem("river-swim", states=3, horizon=4).task(users=5)
    statistic = LinearSums(task, Weights(1.0, 1.0, 1.0))
    assert statistic.pooled
    rng, entry = np.random.default_rng(0), Publication(0, uniform_policy(4, 3, 2))
    for _ in range(10):
        states, actions = rng.integers(3, size=5), rng.integers(2, size=4)
        found = []
        for steps in (4, 3):
            life = Trajectory(states[:4], actions[:steps], np.ones(steps))
            out = np.zeros(statistic.layout.size, dtype=np.int64)
            statistic.contribute(life, entry, 0, out)
            found.append(statistic.layout.views(out))
        cut, whole = found
        assert sorted(cut) == ["gram", "next", "reward"]
        assert np.array_equal(cut["next"], whole["next"]) and whole["next"].any()
        assert cut["gram"].sum() > whole["gram"].sum() > 0


def test_the_joint_price_of_many_pairs_covers_the_angles_between(monkeypatch) -> None:
    """Of unit vectors at any angle: 2 a (1 - c^2) + b (1 + c) / 2 is largest at c = b / (8 a)."""
    monkeypatch.setattr("tacit.statistics.linear.MOST_PAIRS", 0)
    price = Price.joint(FeaturePairs(np.eye(2).reshape(1, 2, 2)), 1.0)
    for cosine in (0.2503, 0.2505, 0.5005, 0.7495):
        a, b = 1.0, 8.0 * cosine
        worst = 2.0 * a * (1.0 - cosine**2) + b * (1.0 + cosine) / 2.0
        assert worst <= price.total(a, np.array([b])) <= worst * (1 + 2e-5)


def test_rounding_can_oppose_short_contributions(monkeypatch) -> None:
    """On a grid of 2^-10 it shows: half a step per cell may turn either of two people."""
    task = replace(PROBLEMS[1].task(users=10), homogeneous=False)
    fine = LinearSums(task, WEIGHTS).opposed()
    monkeypatch.setattr("tacit.statistics.linear.STEPS", 2**10)
    coarse = LinearSums(task, WEIGHTS)
    cells = sum(int(np.prod(block.shape[1:])) for block in coarse.layout.blocks)
    longest = math.sqrt(2.0) * max(WEIGHTS)
    assert coarse.opposed() - fine >= math.sqrt(cells) / 2**10 / longest
