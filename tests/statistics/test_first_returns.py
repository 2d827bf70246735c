"""Returns from first visits of states: what counts, its bound by brute force, and its bias."""

import itertools

import numpy as np
import pytest

from tacit.grid import STEPS
from tacit.policies.tabular import uniform_policy
from tacit.publication import Publication
from tacit.statistics.base import Relation
from tacit.statistics.first_visits import FirstReturns
from tacit.task.task import Task
from tacit.trajectory import Trajectory


def task(S: int, A: int, H: int, **known: np.ndarray) -> Task:
    return Task("tabular", H, {"states": S, "actions": A}, True, users=100, known=known)


def contribution(statistic: FirstReturns, life: Trajectory) -> np.ndarray:
    H, S, A = statistic.task.horizon, *statistic.task.pairs.number.shape
    out = np.full(statistic.layout.size, 7, dtype=np.int64)
    statistic.contribute(life, Publication(0, uniform_policy(H, S, A), {}), 0, out)
    return out * statistic.layout.units


def blocks(statistic: FirstReturns, life: Trajectory) -> dict[str, np.ndarray]:
    return statistic.layout.views(contribution(statistic, life))


WALK = Trajectory(
    np.array([0, 1, 0, 1, 2, 0]), np.array([0, 1, 1, 0, 0]), np.array([0.5, 0.25, 0, 0, 1])
)
"""Pairs 0, 3, 1, 2, 4 of three states with two actions."""


def test_states_count_once_with_what_the_rest_paid() -> None:
    found = blocks(FirstReturns(task(3, 2, 5), 10), WALK)
    assert found["totals"].tolist() == [0.5, 0, 0, 0.5, 0.5, 0]
    paid = np.array([1.75, 0, 0, 1.25, 1.0, 0]) / 5 - 0.5
    assert found["returns"] == pytest.approx(np.where(found["totals"] > 0, paid, 0.0), abs=1e-7)
    capped = blocks(FirstReturns(task(3, 2, 5), 2), WALK)
    assert capped["totals"].tolist() == [0.5, 0, 0, 0.5, 0, 0]


def test_returns_are_clipped_to_the_declared_range() -> None:
    told = FirstReturns(task(3, 2, 5, returns=np.array([0.0, 1.25])), 10)
    assert blocks(told, WALK)["returns"][[0, 3, 4]] == pytest.approx([0.5, 0.5, 0.3], abs=1e-7)


def test_after_an_end_the_public_reward_is_paid_whatever_was_sent() -> None:
    ends = {"terminal": np.array([False, True, False]), "end_reward": np.asarray(0.25)}
    statistic = FirstReturns(task(3, 2, 5, **ends), 10)
    found = blocks(statistic, WALK)
    assert found["totals"].tolist() == [0.5, 0, 0, 0]
    assert found["returns"][0] == pytest.approx((0.5 + 4 * 0.25) / 5 - 0.5, abs=1e-7)
    short = Trajectory(np.array([0, 1]), np.array([0]), np.array([0.5]))
    assert blocks(statistic, short)["returns"].tolist() == found["returns"].tolist()


@pytest.mark.parametrize("largest", [1.0, 3.0])
@pytest.mark.parametrize(
    ("shape", "cap"), [((2, 1, 3), 9), ((2, 2, 3), 9), ((3, 1, 3), 1), ((3, 2, 3), 2)]
)
def test_the_sensitivity_is_exact(shape: tuple[int, int, int], cap: int, largest: float) -> None:
    """All trajectories of small tables, with rewards at both ends and between."""
    S, A, H = shape
    statistic = FirstReturns(task(*shape, returns=np.array([0.0, largest])), cap)
    found = set()
    for states in itertools.product(range(S), repeat=H):
        for actions in itertools.product(range(A), repeat=H):
            for rewards in itertools.product((0.0, 0.5, 1.0), repeat=H):
                life = Trajectory(np.array([*states, 0]), np.array(actions), np.array(rewards))
                found.add(contribution(statistic, life).tobytes())
    rows = np.array([np.frombuffer(row) for row in found])
    apart = rows[:, None] - rows[None]
    exact = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    worst = np.linalg.norm(apart, axis=2).max()
    assert worst <= exact * (1 + 1e-12)
    if largest == 1.0 or A > 1:
        assert worst == pytest.approx(exact, rel=1e-12)
    total = np.abs(apart).sum(axis=2).max()
    assert total <= statistic.sensitivity("l1", Relation.REPLACE_ONE) * (1 + 1e-12)
    for norm, alone in (("l1", np.abs(rows).sum(axis=1)), ("l2", np.linalg.norm(rows, axis=1))):
        assert alone.max() == pytest.approx(statistic.sensitivity(norm, Relation.ADD_REMOVE_ONE))
    for scale in ({"returns": 3.0}, {"totals": 3.0}):
        weights = np.repeat([scale.get("returns", 1.0), scale.get("totals", 1.0)], S * A)
        bound = statistic.sensitivity("l2", Relation.REPLACE_ONE, scale)
        assert np.linalg.norm(apart * weights, axis=2).max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize(("S", "A", "H", "cap"), [(3, 2, 4, 10), (6, 1, 3, 10), (9, 4, 20, 5)])
def test_the_worst_pair_attains_it(S: int, A: int, H: int, cap: int) -> None:
    statistic = FirstReturns(task(S, A, H), cap)
    one, two = (contribution(statistic, life) for life in statistic.worst_pair())
    exact = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert exact**2 == pytest.approx(min(S, H, cap))
    assert np.linalg.norm(two - one) == pytest.approx(exact, rel=1e-12)


def test_hostile_trajectories_stay_within_the_bound() -> None:
    """Numbers out of range, forbidden actions, too long, too short, nothing at all, not numbers."""
    allowed = np.array([[True, False], [True, True], [True, True]])
    ends = np.array([False, False, True])
    statistic = FirstReturns(task(3, 2, 4, allowed=allowed & ~ends[:, None], terminal=ends), 2)
    big, bound = np.iinfo(np.int64).max, statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE)
    for states, actions, rewards in (
        ([-9, big, 1, 0, 1], [big, -big, 9, 1], [9.0, -9, 1, 1]),
        ([0] * 9, [1] * 8, [np.nan] * 8),
        ([0, 1, 0, 1, 0], [0] * 4, [np.inf, -np.inf, np.nan, 2]),
        ([2, 0, 1, 0, 1], [0] * 4, [1.0] * 4),
        ([1], [], []),
        ([], [], []),
    ):
        life = Trajectory(np.array(states, int), np.array(actions, int), np.array(rewards, float))
        row = contribution(statistic, life)
        assert np.linalg.norm(row) <= bound * (1 + 1e-12)
        assert np.array_equal(row * STEPS, np.rint(row * STEPS))
    assert not contribution(statistic, Trajectory(*map(np.array, ([2, 0], [0], [1.0])))).any()


def test_actions_of_a_state_are_compared_at_the_same_moments() -> None:
    """Every step pays 1/2 whatever is done, and one action is rare: both must look alike.

    At first visits of *pairs* the rare action would be seen late, when less is left to earn.
    """
    statistic, rng = FirstReturns(task(1, 2, 6), 9), np.random.default_rng(5)
    total, by_pair = np.zeros(4), np.zeros((2, 2))
    for _ in range(3000):
        actions = (rng.random(6) < 0.15).astype(int)
        life = Trajectory(np.zeros(7, int), actions, np.full(6, 0.5))
        total += contribution(statistic, life)
        for a in (0, 1):
            if (actions == a).any():
                by_pair[a] += [0.5 * (6 - int(np.argmax(actions == a))), 1]
    q = 6 * (0.5 + total[:2] / (2 * total[2:]))
    assert q == pytest.approx([3.0, 3.0], abs=1e-6)
    assert by_pair[1, 0] / by_pair[1, 1] < 2.6  # what the rare one would seem to earn
