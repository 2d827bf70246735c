"""One trajectory to counts, by hand and with garbage; exact sums."""

import numpy as np
import pytest

from dense import dense
from tacit.grid import STEPS
from tacit.kernels.raw.counts import clip_index, clip_reward
from tacit.kernels.raw.sums import absorb, scale

HALF, QUARTER = STEPS // 2, STEPS // 4


def count(states, actions, rewards, horizon, S=2, A=2, staged=False, function=dense.add_visits):
    """The four tables of one user; they are added to what is there."""
    G = horizon if staged else 1
    shapes = [(G, S, A), (G, S, A), (G, S, A), (G, S, A, S)]
    out = [np.full(shape, 77, dtype=np.int64) for shape in shapes]
    function(
        np.array([states], dtype=np.int64),
        np.array([actions], dtype=np.int64),
        np.array([rewards], dtype=np.float64),
        horizon,
        *out,
    )
    return [table - 77 for table in out]


def cells(table):
    """The cells that are not zero."""
    return {tuple(map(int, where)): int(table[tuple(where)]) for where in np.argwhere(table)}


STATES, ACTIONS, REWARDS = [0, 1, 1, 0, 1], [1, 0, 0, 1], [0.5, 1.0, 0.25, 0.5]


def test_a_pooled_trajectory_by_hand():
    """Visits (0,1) twice, (1,0) twice; the fourth transition is not counted."""
    reward, squares, visits, transitions = count(STATES, ACTIONS, REWARDS, 4)
    assert cells(reward) == {(0, 0, 1): 2 * HALF, (0, 1, 0): STEPS + QUARTER}
    assert cells(squares) == {(0, 0, 1): 2 * QUARTER, (0, 1, 0): STEPS + QUARTER // 4}
    assert cells(visits) == {(0, 0, 1): 2, (0, 1, 0): 2}
    assert cells(transitions) == {(0, 0, 1, 1): 1, (0, 1, 0, 1): 1, (0, 1, 0, 0): 1}


def test_a_staged_trajectory_by_hand():
    reward, squares, visits, transitions = count(STATES, ACTIONS, REWARDS, 4, staged=True)
    assert cells(reward) == {
        (0, 0, 1): HALF,
        (1, 1, 0): STEPS,
        (2, 1, 0): QUARTER,
        (3, 0, 1): HALF,
    }
    assert cells(squares)[(2, 1, 0)] == QUARTER // 4 and cells(squares)[(3, 0, 1)] == QUARTER
    assert cells(visits) == {(0, 0, 1): 1, (1, 1, 0): 1, (2, 1, 0): 1, (3, 0, 1): 1}
    assert cells(transitions) == {(0, 0, 1, 1): 1, (1, 1, 0, 1): 1, (2, 1, 0, 0): 1}


def test_squares_can_be_left_out():
    full = count(STATES, ACTIONS, REWARDS, 4)
    none = np.zeros((0, 2, 2), dtype=np.int64)
    out = [full[0] * 0, none, full[2] * 0, full[3] * 0]
    args = np.array([STATES]), np.array([ACTIONS]), np.array([REWARDS])
    dense.add_visits(*args, 4, *out)
    assert all(np.array_equal(out[i], full[i]) for i in (0, 2, 3))


def test_long_trajectories_are_cut_at_the_horizon():
    """Steps 3 and 4 do not exist for a horizon of 2, nor does the second transition."""
    long = count(STATES, ACTIONS, REWARDS, 2)
    assert cells(long[2]) == {(0, 0, 1): 1, (0, 1, 0): 1}
    assert cells(long[3]) == {(0, 0, 1, 1): 1}
    short = count(STATES[:3], ACTIONS[:2], REWARDS[:2], 2)
    assert all(np.array_equal(a, b) for a, b in zip(long, short, strict=True))


@pytest.mark.parametrize(
    ("lengths", "visits", "transitions"),
    [
        ((0, 0, 0), 0, 0),
        ((4, 0, 3), 0, 0),
        ((1, 1, 1), 1, 0),
        ((2, 1, 1), 1, 1),  # an episode that ended early still has its transition
        ((3, 2, 2), 2, 2),
        ((3, 4, 2), 2, 2),
        ((2, 4, 4), 2, 1),  # no third state: no second transition
        ((5, 4, 1), 1, 1),
        ((5, 4, 4), 4, 3),
    ],
)
@pytest.mark.parametrize("staged", [False, True])
def test_short_trajectories_count_what_is_there(lengths, visits, transitions, staged):
    s, a, r = lengths
    out = count(STATES[:s], ACTIONS[:a], REWARDS[:r], 4, staged=staged)
    assert out[2].sum() == visits and out[3].sum() == transitions


@pytest.mark.parametrize(
    ("reward", "steps", "squares"),
    [
        (np.nan, 0, 0),
        (np.inf, STEPS, STEPS),
        (-np.inf, 0, 0),
        (1.5, STEPS, STEPS),
        (1e308, STEPS, STEPS),
        (-0.25, 0, 0),
        (-0.0, 0, 0),
        (2.0**-24, 1, 0),
        (0.4 * 2.0**-24, 0, 0),
        (0.6 * 2.0**-24, 1, 0),
        (1 - 2.0**-24, STEPS - 1, STEPS - 2),
        (1 - 2.0**-26, STEPS, STEPS),
    ],
)
def test_rewards_are_clipped_and_rounded(reward, steps, squares):
    out = count([0, 0], [0], [reward], 1)
    assert (out[0].sum(), out[1].sum(), out[2].sum()) == (steps, squares, 1)


BIG = np.iinfo(np.int64)


@pytest.mark.parametrize(
    ("index", "nearest"), [(-1, 0), (BIG.min, 0), (0, 0), (2, 2), (3, 2), (BIG.max, 2)]
)
def test_states_and_actions_are_clipped_into_range(index, nearest):
    assert clip_index(index, 3) == clip_index.py_func(index, 3) == nearest
    out = count([index, index], [index], [1.0], 2, S=3, A=3)
    assert cells(out[2]) == {(0, nearest, nearest): 1}
    assert cells(out[3]) == {(0, nearest, nearest, nearest): 1}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_kernels_equal_their_plain_originals(seed, staged):
    rng = np.random.default_rng(seed)
    states, actions = rng.integers(-2, 6, size=7), rng.integers(-2, 5, size=6)
    rewards = rng.choice([np.nan, np.inf, -np.inf, 0.1, 1 / 3, 0.9999999], size=6)
    compiled, plain = (
        count(states, actions, rewards, 5, S=4, A=3, staged=staged, function=function)
        for function in (dense.add_visits, dense.add_visits.py_func)
    )
    assert all(np.array_equal(a, b) for a, b in zip(compiled, plain, strict=True))
    for reward in rewards:
        assert clip_reward(reward) == clip_reward.py_func(reward)


def test_sums_are_exact_and_scale_back():
    rng = np.random.default_rng(0)
    reports = rng.integers(-(2**40), 2**40, size=(50, 6))
    unit = np.array([1.0, 0.5, 2.0**-24, 1.0, 3.0, 0.1])
    for add, rescale in ((absorb, scale), (absorb.py_func, scale.py_func)):
        sums, out = np.zeros(6, dtype=np.int64), np.full(6, np.nan)
        for report in reports:
            add(sums, report)
        rescale(sums, unit, out)
        assert np.array_equal(sums, reports.sum(0))
        assert np.array_equal(out, reports.sum(0) * unit)
