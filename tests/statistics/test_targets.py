"""Declared sensitivities of value targets against adversarial users, values and features."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.policies.tabular import uniform_policy
from tacit.publication import Publication
from tacit.statistics.base import Relation
from tacit.statistics.distances import (
    box_pair,
    orthogonal_pair,
    outer_pair,
    squared_diameter,
    triangle_pair,
)
from tacit.statistics.targets import Shape, ValueTargets
from tacit.task.task import Task
from tacit.trajectory import Trajectory

H, S, A = 4, 3, 2


def wild_task(seed: int, d: int = 3) -> Task:
    """Features and rewards that obey no norm assumption of any paper."""
    rng = np.random.default_rng(seed)
    known = {
        "features": rng.normal(0, 3, (S, A, S, d)),
        "theta_norm": np.asarray(2.0),
        "reward_features": rng.normal(0, 2, (S, A, 2)),
        "reward_offset": np.asarray(0.25),
        "reward_theta_norm": np.asarray(1.0),
    }
    return Task("tabular", H, {"states": S, "actions": A}, False, 10, known)


def tasks(seed: int) -> list[Task]:
    box = np.random.default_rng(seed).dirichlet(np.ones(S), size=(S, A, 3))
    known = {"features": np.moveaxis(box, 2, 3), "theta_norm": np.asarray(1.0)}
    table = tacit.problem("river-swim", states=S, horizon=H)
    sizes = {"states": S, "actions": A}
    return [
        wild_task(seed),
        Task("tabular", H, sizes, True, 10, known),
        table.task(users=10),
        table.task(users=10, reveal=["reward"]),
    ]


def wild_publication(rng: np.random.Generator) -> Publication:
    """Values and reach that no honest planner would publish."""
    scale = rng.choice([0.01, 1.0, 50.0])
    V = rng.normal(0, scale, (H + 1, S))
    V[rng.random(V.shape) < 0.1] = np.nan
    reach = rng.choice([0.0, 0.1, 1.0, 100.0, np.nan], size=(2, H - 1))
    return Publication(0, uniform_policy(H, S, A), {"V": V, "reach": reach})


def wild_trajectory(rng: np.random.Generator) -> Trajectory:
    """Too long or too short, out of range, with rewards that are not rewards."""
    steps = rng.integers(0, H + 2)
    rewards = rng.choice([0.0, 1.0, -7.0, 9.0, np.nan], size=steps)
    return Trajectory(rng.integers(-1, S + 1, steps + 1), rng.integers(-1, A + 1, steps), rewards)


SHAPES = [
    (Shape(whole, rewards, centre, public, scaling))
    for whole, rewards, centre, public, scaling in [
        (True, True, True, False, "split"),
        (True, True, False, False, "split"),
        (False, False, True, True, "equal"),
        (True, False, False, True, "equal"),
        (True, False, False, False, "raw"),
        (True, True, False, False, "paper"),
    ]
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(seed=st.integers(0, 10_000))
def test_no_pair_of_users_moves_further_than_declared(shape: Shape, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for task in tasks(seed):
        statistic = ValueTargets(task, shape)
        publication = wild_publication(rng)
        weights = statistic.weights(publication)
        assert (weights > 0).all() and (weights <= 1).all()
        out = np.zeros((2, statistic.layout.size), dtype=np.int64)
        for row in out:
            statistic.contribute(wild_trajectory(rng), publication, 0, row)
        values = out * statistic.layout.units
        shaped = values / weights if shape.public else values
        moved = np.sqrt(((shaped[0] - shaped[1]) ** 2).sum())
        assert moved <= statistic.sensitivity("l2", Relation.REPLACE_ONE)
        assert np.abs(shaped[0] - shaped[1]).sum() <= statistic.sensitivity(
            "l1", Relation.REPLACE_ONE
        )
        alone = np.sqrt((shaped**2).sum(axis=1)).max()
        assert alone <= statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE)


def test_the_declared_sensitivity_is_attained_for_tables() -> None:
    """V = v in two blocks: (S^2 + 3 S) v^4 per stage (docs/papers/mixture_ldp.md#sensitivities)."""
    task = tacit.problem("river-swim", states=S, horizon=H).task(users=5, reveal=["reward"])
    for scaling, per_stage in (("raw", (S * S + 3 * S) * 4.0**4), ("equal", 4.0)):
        shape = Shape(True, False, False, False, scaling)
        statistic = ValueTargets(task, shape)
        V = np.tile(statistic.caps[:, None], (1, S))
        publication = Publication(0, uniform_policy(H, S, A), {"V": V})
        one, two = statistic.worst_pair()
        out = np.zeros((2, statistic.layout.size), dtype=np.int64)
        statistic.contribute(one, publication, 0, out[0])
        statistic.contribute(two, publication, 0, out[1])
        moved = np.sqrt((((out[0] - out[1]) * statistic.layout.units) ** 2).sum())
        declared = statistic.sensitivity("l2", Relation.REPLACE_ONE)
        assert declared == pytest.approx(np.sqrt((H - 1) * per_stage), rel=1e-5)
        assert moved == pytest.approx(declared, rel=1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_declared_sensitivity_is_attained_in_every_form(shape: Shape) -> None:
    """By people who stay in one pair: a bound that is too large would be noise for nothing."""
    statistic = ValueTargets(tacit.problem("river-swim", states=S, horizon=H).task(users=5), shape)
    lives = [
        Trajectory(np.array([s] * H + [after]), np.full(H, a), np.full(H, r))
        for s, a, after, r in itertools.product(range(S), range(A), range(S), (0.0, 1.0))
    ]
    moved = alone = 0.0
    for V in (np.tile(statistic.caps[:, None], (1, S)), statistic.worst_contexts()[""]["V"]):
        context = {"V": V, "reach": statistic.worst_contexts()[""]["reach"]}
        publication = Publication(0, uniform_policy(H, S, A), context)
        out = np.zeros((len(lives), statistic.layout.size), dtype=np.int64)
        for life, row in zip(lives, out, strict=True):
            statistic.contribute(life, publication, 0, row)
        found = out * statistic.layout.units
        moved = max(moved, math.sqrt(squared_diameter(found)))
        alone = max(alone, float(np.linalg.norm(found, axis=1).max()))
    assert moved == pytest.approx(statistic.sensitivity("l2", Relation.REPLACE_ONE), rel=1e-4)
    declared = statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE)
    assert 0.86 * declared < alone <= declared


def test_generic_pairs_are_as_bad_as_the_closed_form_says() -> None:
    """4.5 at B = v = 1, cosine -1/2; else 2 B v (docs/papers/mixture_ldp.md#sensitivities)."""
    assert outer_pair(1.0, 1.0) == pytest.approx(4.5)
    assert outer_pair(0.5, 2.0) == pytest.approx(16.0)
    rng = np.random.default_rng(0)
    for gram, target in ((1.0, 1.0), (1.0, 0.3), (0.4, 1.0)):
        worst = 0.0
        for _ in range(4000):
            angle, y, z = rng.uniform(0, np.pi), *rng.choice([-1.0, 1.0], size=2)
            x, w = np.array([1.0, 0.0]), np.array([np.cos(angle), np.sin(angle)])
            matrix = gram**2 * ((np.outer(x, x) - np.outer(w, w)) ** 2).sum()
            worst = max(worst, matrix + target**2 * ((y * x - z * w) ** 2).sum())
        assert worst == pytest.approx(outer_pair(gram, target), rel=1e-3)
        assert worst <= outer_pair(gram, target) * (1 + 1e-12)


def corners(d: int) -> np.ndarray:
    return np.array(list(itertools.product((0.0, 1.0), repeat=d)))


def farthest(x: np.ndarray, y: np.ndarray, gram: float, target: float, upper: bool) -> float:
    """Largest squared distance of (g x x^T, t x y); of its upper triangle alone where asked for."""
    matrices = np.einsum("ni,nj->nij", x, x)
    matrices = np.triu(matrices) if upper else matrices
    rows = [np.hstack([gram * matrices.reshape(len(x), -1), target * v * x]) for v in y]
    return squared_diameter(np.vstack(rows))


@pytest.mark.parametrize(("gram", "target"), [(1.0, 1.0), (1.0, 0.3), (0.3, 1.0), (0.0, 1.0)])
def test_pairs_of_every_geometry_are_as_far_apart_as_said(gram: float, target: float) -> None:
    """One-hot, tables whose values are 0 or v, and boxes, by trying all of them."""
    one_hot = np.eye(4)
    for signed, y in ((True, (-1.0, 1.0)), (False, (0.0, 1.0))):
        found = farthest(one_hot, np.array(y), gram, target, False)
        assert found == pytest.approx(orthogonal_pair(gram, target, signed))
    for states in (1, 2, 3):
        values = corners(states) / math.sqrt(states)
        blocks = np.vstack([np.hstack([values, 0 * values]), np.hstack([0 * values, values])])
        found = farthest(blocks, np.array([0.0, 1.0]), gram, target, True)
        assert found == pytest.approx(triangle_pair(gram, target, states))
    for d in (1, 2, 4):
        reach = math.sqrt(d)
        found = farthest(corners(d) / reach, np.array([0.0, 1.0]), gram, target, False)
        assert found <= box_pair(gram, target, d, reach) * (1 + 1e-12)
        if gram == 0.0 or d == 1:
            assert found == pytest.approx(box_pair(gram, target, d, reach))
    assert box_pair(gram, target, 4, 1.0) == pytest.approx(2.0 * gram**2 + 4.0 * target**2)
    assert box_pair(gram, target, 3, 1.5) == pytest.approx(16 / 9 * gram**2 + 4 / 3 * target**2)


def test_the_sensitivity_to_somebody_more_is_the_longest_contribution() -> None:
    """B^2 = S v^2: a matrix of norm S v^2 and a vector of sqrt(S) v^2 per stage."""
    task = tacit.problem("river-swim", states=S, horizon=H).task(users=5, reveal=["reward"])
    statistic = ValueTargets(task, Shape(True, False, False, False, "raw"))
    declared = statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE)
    assert declared == pytest.approx(math.sqrt((H - 1) * (S * S + S) * 4.0**4), rel=1e-5)


def test_long_lists_get_an_upper_bound() -> None:
    rows = np.random.default_rng(0).normal(size=(5000, 2)) - 9.0
    exact = max(float(((rows - row) ** 2).sum(axis=1).max()) for row in rows)
    assert exact <= squared_diameter(rows) <= 4.0 * exact
    assert squared_diameter(rows[:100]) == pytest.approx(
        max(float(((rows[:100] - row) ** 2).sum(axis=1).max()) for row in rows[:100])
    )


def test_shares_are_split_evenly_over_families() -> None:
    """sigma_i mu / a = Delta_i sqrt(4 n_i) (docs/papers/mixture_jdp.md#composition)."""
    problem = tacit.problem("remap-walk")
    statistic = ValueTargets(problem.task(users=100), Shape(True, True, False, False, "split"))
    first = statistic.scales
    assert 1 / first.gram[0] == pytest.approx(4 * 81 * np.sqrt(4 * 9))
    assert 1 / first.target[0] == pytest.approx(2 * 81 * np.sqrt(4 * 9))
    assert 1 / first.reward_gram[0] == pytest.approx(np.sqrt(2) * np.sqrt(4 * 10))
    assert 1 / first.reward_target[0] == pytest.approx(np.sqrt(2) * np.sqrt(4 * 10))
