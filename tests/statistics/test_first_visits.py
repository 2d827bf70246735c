"""First visits: counts by hand, the exact sensitivity by brute force, and hostile trajectories."""

import itertools
import math

import numpy as np
import pytest

from tacit.grid import STEPS
from tacit.policies.tabular import uniform_policy
from tacit.publication import Publication
from tacit.statistics.base import Relation
from tacit.statistics.first_visits import FirstVisits
from tacit.task.task import Task
from tacit.trajectory import Trajectory


def task(S: int, A: int, H: int, **known: np.ndarray) -> Task:
    return Task("tabular", H, {"states": S, "actions": A}, True, users=100, known=known)


def entry(statistic: FirstVisits, wanted: object = 2) -> Publication:
    X = len(statistic.task.pairs.action)
    H, S, A = statistic.task.horizon, *statistic.task.pairs.number.shape
    flags = np.array(np.broadcast_to(np.asarray(wanted), (X,)))
    return Publication(0, uniform_policy(H, S, A), {"wanted": flags})


def contribution(statistic: FirstVisits, life: Trajectory, wanted: object = 2) -> np.ndarray:
    out = np.full(statistic.layout.size, 7, dtype=np.int64)
    statistic.contribute(life, entry(statistic, wanted), 0, out)
    return out * statistic.layout.units


def blocks(statistic: FirstVisits, life: Trajectory, wanted: object = 2) -> dict[str, np.ndarray]:
    return statistic.layout.views(contribution(statistic, life, wanted))


WALK = Trajectory(
    np.array([0, 1, 0, 1, 2, 0]), np.array([0, 1, 0, 1, 0]), np.array([1.0, 0.25, 0, 0, 1])
)
"""Pairs 0, 3, 0, 3, 4 of three states with two actions."""


def test_only_first_visits_count() -> None:
    found = blocks(FirstVisits(task(3, 2, 5), 10, 10), WALK)
    assert np.flatnonzero(found["totals"]).tolist() == [0, 3, 4]
    assert found["totals"][[0, 3, 4]].tolist() == [0.5, 0.5, 0.5]
    assert found["gains"][[0, 3, 4]].tolist() == [0.5, -0.25, 0.5]
    assert sorted(map(tuple, np.argwhere(found["transitions"]))) == [(0, 1), (3, 0), (4, 0)]
    assert found["starts"].tolist() == [1, 0, 0]


def test_a_step_without_a_next_state_counts_nothing() -> None:
    """As many states as actions, or fewer: nothing is read behind the end."""
    statistic = FirstVisits(task(3, 2, 5), 10, 10)
    for states, steps in ((5, 4), (4, 3), (2, 1), (1, 0), (0, 0)):
        cut = Trajectory(WALK.states[:states], WALK.actions, WALK.rewards)
        whole = Trajectory(WALK.states[: steps + 1], WALK.actions[:steps], WALK.rewards[:steps])
        found = contribution(statistic, cut)
        if states:
            assert found.tolist() == contribution(statistic, whole).tolist()
        assert not blocks(statistic, cut)["totals"].any() or steps


def test_a_pair_counts_as_often_as_allowed() -> None:
    found = blocks(FirstVisits(task(3, 2, 5), 10, 10, 2), WALK)
    assert found["totals"][[0, 3, 4]].tolist() == [1.0, 1.0, 0.5]
    assert found["transitions"][3].tolist() == [1, 0, 1]


def test_the_cap_goes_to_what_is_wanted() -> None:
    capped = FirstVisits(task(3, 2, 5), 1, 1)
    assert np.flatnonzero(blocks(capped, WALK)["totals"]).tolist() == [0]
    later = blocks(capped, WALK, [0, 0, 0, 0, 2, 0])
    assert np.flatnonzero(later["totals"]).tolist() == [4]
    few = FirstVisits(task(3, 2, 5), 3, 1)
    assert np.flatnonzero(blocks(few, WALK, [1, 1, 1, 1, 2, 2])["totals"]).tolist() == [0, 4]
    assert not blocks(few, WALK, 0)["totals"].any()
    assert not blocks(few, WALK, -3)["totals"].any()


def test_facts_that_are_declared_have_no_cells() -> None:
    told = FirstVisits(
        task(3, 2, 5, initial=np.array([1.0, 0, 0]), reward=np.zeros((1, 3, 2))), 10, 10
    )
    assert [block.name for block in told.layout.blocks] == ["transitions", "totals"]
    ends = FirstVisits(task(3, 2, 5, terminal=np.array([False, True, False])), 10, 10)
    assert ends.layout.blocks[0].shape == (4, 3)
    assert blocks(ends, WALK)["totals"].sum() == 0.5  # nothing counts after state 1


def lives(shape: tuple[int, int, int]) -> list[Trajectory]:
    S, A, H = shape
    return [
        Trajectory(np.array(states), np.array(actions), np.array(rewards))
        for states in itertools.product(range(S), repeat=H + 1)
        for actions in itertools.product(range(A), repeat=H)
        for rewards in itertools.product((0.0, 1.0), repeat=H)
    ]


CASES = [
    # shape, cap, refresh, often: whether the bound is attained
    ((2, 1, 3), 9, 9, 1, False),
    ((2, 2, 3), 9, 9, 1, True),
    ((2, 2, 3), 1, 1, 1, True),
    ((2, 2, 3), 2, 1, 1, True),
    ((3, 1, 3), 9, 9, 1, True),
    ((2, 1, 4), 1, 1, 3, False),
    ((2, 2, 3), 9, 9, 2, False),
]


@pytest.mark.parametrize("rewards", [True, False])
@pytest.mark.parametrize(("shape", "cap", "refresh", "often", "attained"), CASES)
def test_the_sensitivity_bounds_all_pairs_of_trajectories(
    shape: tuple[int, int, int], cap: int, refresh: int, often: int, attained: bool, rewards: bool
) -> None:
    known = {} if rewards else {"reward": np.zeros((1, *shape[:2]))}
    statistic = FirstVisits(task(*shape, **known), cap, refresh, often)
    X = shape[0] * shape[1]
    everybody = lives(shape)
    worst = {"l1": 0.0, "l2": 0.0}
    alone = dict(worst)
    for wanted in (np.full(X, 2), np.arange(X) % 3, np.full(X, 1)):
        publication, out = entry(statistic, wanted), np.zeros(statistic.layout.size, dtype=np.int64)
        found = set()
        for life in everybody:
            statistic.contribute(life, publication, 0, out)
            found.add(out.tobytes())
        rows = np.array([np.frombuffer(row, dtype=np.int64) for row in found]) / STEPS
        apart = rows[:, None] - rows[None]
        worst["l1"] = max(worst["l1"], np.abs(apart).sum(axis=2).max())
        worst["l2"] = max(worst["l2"], np.linalg.norm(apart, axis=2).max())
        alone["l1"] = max(alone["l1"], np.abs(rows).sum(axis=1).max())
        alone["l2"] = max(alone["l2"], np.linalg.norm(rows, axis=1).max())
    for norm in ("l1", "l2"):
        replaced = statistic.sensitivity(norm, Relation.REPLACE_ONE)
        assert worst[norm] <= replaced * (1 + 1e-12)
        assert alone[norm] <= statistic.sensitivity(norm, Relation.ADD_REMOVE_ONE) * (1 + 1e-12)
    exact = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    if attained and rewards:  # without rewards only people who share no pair are that far apart
        assert worst["l2"] == pytest.approx(exact, rel=1e-12)
    else:
        assert worst["l2"] >= 0.8 * exact


def test_the_bound_is_that_of_the_proof() -> None:
    def squared(cap: int, often: int, **known: np.ndarray) -> float:
        statistic = FirstVisits(task(30, 2, 20, **known), cap, cap, often)
        return statistic.sensitivity("l2", Relation.REPLACE_ONE) ** 2

    start, reward = np.full(30, 1 / 30), np.zeros((1, 30, 2))
    assert squared(10, 1) == pytest.approx(3 * 10 + 2)
    assert squared(10, 1, initial=start) == pytest.approx(3 * 10)
    assert squared(99, 1, initial=start) == pytest.approx(3 * 20)
    assert squared(5, 3, initial=start) == pytest.approx(3 * 3 * 15)
    assert squared(10, 1, initial=start, reward=reward) == pytest.approx(2.5 * 10)


@pytest.mark.parametrize(("S", "A", "H", "cap"), [(3, 2, 4, 10), (6, 2, 20, 10), (9, 4, 5, 99)])
def test_the_worst_pair_attains_it(S: int, A: int, H: int, cap: int) -> None:
    statistic = FirstVisits(task(S, A, H), cap, cap // 2)
    one, two = (contribution(statistic, life) for life in statistic.worst_pair())
    exact = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert np.linalg.norm(two - one) == pytest.approx(exact, rel=1e-12)


def test_scales_of_blocks_are_bounds_too() -> None:
    """Random trajectories, all weights: never beyond the declared number."""
    statistic, rng = FirstVisits(task(3, 2, 4), 3, 3), np.random.default_rng(1)
    rows = []
    for _ in range(300):
        states, actions = rng.integers(3, size=5), rng.integers(2, size=4)
        life = Trajectory(states, actions, rng.integers(2, size=4).astype(float))
        rows.append(contribution(statistic, life))
    for scale in ({"gains": 3.0}, {"totals": 3.0}, {"transitions": 0.1, "starts": 2.0}):
        views = statistic.layout.views(np.ones(statistic.layout.size))
        weights = np.concatenate(
            [scale.get(name, 1.0) * view.ravel() for name, view in views.items()]
        )
        scaled = np.array(rows) * weights
        apart = np.linalg.norm(scaled[:, None] - scaled[None], axis=2).max()
        bound = statistic.sensitivity("l2", Relation.REPLACE_ONE, scale)
        assert 0.5 * bound < apart <= bound * (1 + 1e-12)


def test_hostile_trajectories_stay_within_the_bound() -> None:
    """Numbers out of range, forbidden actions, too long, too short, nothing at all, not numbers."""
    allowed = np.array([[True, False], [True, True], [True, True]])
    ends = np.array([False, False, True])
    statistic = FirstVisits(task(3, 2, 4, allowed=allowed & ~ends[:, None], terminal=ends), 2, 1)
    bound = statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE)
    big = np.iinfo(np.int64).max
    hostile = [
        Trajectory(
            np.array([-9, big, 1, 0, 1]), np.array([big, -big, 9, 1]), np.array([9.0, -9, 1, 1])
        ),
        Trajectory(np.zeros(9, int), np.ones(8, int), np.full(8, np.nan)),
        Trajectory(
            np.array([0, 1, 0, 1, 0]), np.zeros(4, int), np.array([np.inf, -np.inf, np.nan, 2])
        ),
        Trajectory(np.array([2, 0, 1, 0, 1]), np.zeros(4, int), np.ones(4)),
        Trajectory(np.array([1]), np.zeros(0, int), np.zeros(0)),
        Trajectory(np.zeros(0, int), np.zeros(0, int), np.zeros(0)),
    ]
    for life in hostile:
        for wanted in (2, 1, [2, 1, 0]):
            row = contribution(statistic, life, wanted)
            assert np.linalg.norm(row) <= bound * (1 + 1e-12)
            assert math.isclose((row * STEPS).sum() % 1, 0.0)
    after = blocks(statistic, hostile[3])
    assert not after["totals"].any() and after["starts"].tolist() == [0, 0, 1]


def test_counted_next_states_are_not_biased_by_cap_and_flags() -> None:
    """A pair's next states keep their law when the cap runs out on other pairs: 5 sigma."""
    statistic, rng = FirstVisits(task(2, 2, 6), 2, 1), np.random.default_rng(3)
    publication, row = (
        entry(statistic, [1, 2, 1, 2]),
        np.zeros(statistic.layout.size, dtype=np.int64),
    )
    total = np.zeros((4, 2))
    for _ in range(1500):
        states, actions = [0], []
        for _ in range(6):
            actions.append(int(rng.integers(2)))
            chance = 0.2 if (states[-1], actions[-1]) == (0, 0) else 0.6
            states.append(int(rng.random() < chance))
        life = Trajectory(np.array(states), np.array(actions), np.zeros(6))
        statistic.contribute(life, publication, 0, row)
        total += statistic.layout.views(row)["transitions"] / STEPS
    n = total.sum(axis=1)
    assert (n > 100).all()
    error = np.abs(total[:, 1] / n - np.array([0.2, 0.6, 0.6, 0.6]))
    assert (error < 5 * np.sqrt(0.24 / n)).all()
