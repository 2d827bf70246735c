"""Declared sensitivities of value targets against adversarial users, values and features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.policy import uniform_policy
from tacit.publication import Publication
from tacit.statistics.base import Relation
from tacit.statistics.distances import outer_pair, squared_diameter
from tacit.statistics.targets import Shape, ValueTargets
from tacit.task import Task
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


def test_long_lists_get_an_upper_bound() -> None:
    rows = np.random.default_rng(0).normal(size=(5000, 2))
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
