"""OneStep: one cell of the assigned step, whatever anybody sends."""

import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidInput
from tacit.kernels import cells
from tacit.kernels.counts import REWARD_STEPS
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.statistics import EachStep, OneStep, Relation
from tacit.task import Task
from tacit.trajectory import Trajectory

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE
ORDER = {"l1": 1, "l2": 2}


def statistic(H, S=2, A=2, homogeneous=True):
    return OneStep(Task("tabular", H, {"states": S, "actions": A}, homogeneous, users=10))


def contribution(one_step, trajectory, coin=0, fill=-5, policy=0):
    out = np.full(one_step.layout.size, fill, dtype=np.int64)
    table = np.full((one_step.horizon, one_step.states), policy)
    one_step.contribute(trajectory, Publication(0, TabularPolicy(table)), coin, out)
    return out


def natural(one_step, trajectory, coin=0, scale=None):
    """The contribution in natural units, every block times its weight."""
    vector = contribution(one_step, trajectory, coin) * one_step.layout.units
    for name, view in one_step.layout.views(vector).items():
        view *= (scale or {}).get(name, 1.0)
    return vector


def lived(states, rewards, actions=()):
    return Trajectory(np.array(states, np.int64), np.array(actions, np.int64), np.array(rewards))


integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 3)
rewards = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, 1.0, 0.5])
trajectories = st.builds(
    lived,
    st.lists(integers, max_size=7),
    st.lists(rewards, max_size=7),
    st.lists(integers, max_size=7),
)
scales = st.none() | st.dictionaries(st.sampled_from(["step", "cell"]), st.floats(0, 4))
coins = st.integers(0, 2**62)


# ---- what is reported ---------------------------------------------------------------------------


def test_the_cell_of_every_step_by_hand():
    user = lived([1, 0, 2, 1], [0.25, 1.0, 0.75])
    expected = {0: (1, 0, 0.25), 1: (0, 2, 1.0), 2: (2, 0, 0.75)}  # the last s' is written as 0
    for coin in range(9):
        h = coin % 3
        s, following, reward = expected[h]
        parts = statistic(3, S=3).layout.views(natural(statistic(3, S=3), user, coin))
        cell = np.zeros((3, 2, 3))
        cell[s, 1, following], cell[s, 0, following] = reward, 1 - reward
        assert np.array_equal(parts["cell"], cell)
        assert parts["step"].tolist() == [h == 0, h == 1, h == 2]
        assert statistic(3).step(coin) == h


@settings(max_examples=150)
@given(st.integers(1, 4), st.integers(1, 3), trajectories, coins)
def test_anything_sent_becomes_one_clipped_cell_of_mass_one(H, S, trajectory, coin):
    one_step = statistic(H, S)
    parts = one_step.layout.views(contribution(one_step, trajectory, coin))
    h = coin % H
    states = [min(max(int(s), 0), S - 1) for s in trajectory.states] + [0] * (H + 1)
    reward = trajectory.rewards[h] if h < len(trajectory.rewards) else 0.0
    reward = 0.0 if math.isnan(reward) else min(max(reward, 0.0), 1.0)
    following = states[h + 1] if h < H - 1 else 0
    assert parts["step"].tolist() == [int(i == h) for i in range(H)]
    own = parts["cell"][states[h], :, following]
    assert parts["cell"].sum() == own.sum() == REWARD_STEPS and own.min() >= 0
    assert abs(own[1] / REWARD_STEPS - reward) <= 0.5 / REWARD_STEPS


@pytest.mark.parametrize(
    ("reward", "clipped"),
    [(math.nan, 0), (math.inf, 1), (-math.inf, 0), (7.0, 1), (-1e-300, 0), (0.5, 0.5)],
)
def test_rewards_are_clipped(reward, clipped):
    one_step = statistic(1)
    cell = one_step.layout.views(natural(one_step, lived([0, 0], [reward])))["cell"]
    assert cell[0, 1, 0] == clipped and cell[0, 0, 0] == 1 - clipped


@settings(max_examples=40)
@given(trajectories, st.lists(integers, max_size=7), coins)
def test_actions_are_not_read_at_all(trajectory, actions, coin):
    """Neither those taken nor those advised."""
    one_step = statistic(3)
    clean = contribution(one_step, trajectory, coin)
    trajectory.actions = np.array(actions, dtype=np.int64)
    assert np.array_equal(clean, contribution(one_step, trajectory, coin, fill=10**12, policy=1))
    del trajectory.actions
    assert np.array_equal(clean, contribution(one_step, trajectory, coin))


def test_no_kernel_of_a_device_takes_an_action():
    for kernel in (cells.step_state, cells.step_reward, cells.cell_index):
        assert not {"actions", "action", "a"} & set(inspect.signature(kernel.py_func).parameters)


@pytest.mark.parametrize("S", [1, 2, 3])
@pytest.mark.parametrize("last", [False, True])
def test_cells_are_numbered_without_gaps_or_collisions(S, last):
    """Also in the order of the specification: (2 s + rho) S + s', and 2 s + rho at the end."""
    nexts = range(1 if last else S)
    numbers = [
        cells.cell_index(s, rho, n, S, last) for s in range(S) for rho in range(2) for n in nexts
    ]
    assert numbers == list(range(2 * S if last else 2 * S * S))
    assert cells.cell_index(S - 1, 1, 0, S, True) == cells.cell_index(S - 1, 1, S - 1, S, True)


@pytest.mark.parametrize("homogeneous", [True, False])
def test_every_message_has_the_same_shape(homogeneous):
    one_step = statistic(3, S=2, homogeneous=homogeneous)
    assert {b.name: (b.shape, b.unit) for b in one_step.layout.blocks} == {
        "step": ((3,), 1.0),
        "cell": ((2, 2, 2), 2.0**-24),
    }


# ---- the declared bound -------------------------------------------------------------------------


@settings(max_examples=150)
@given(st.integers(1, 4), st.integers(1, 3), trajectories, trajectories, coins, scales)
def test_no_pair_exceeds_the_declared_sensitivity(H, S, one, other, coin, scale):
    one_step = statistic(H, S)
    x, y = (natural(one_step, user, coin, scale) for user in (one, other))
    for norm, order in ORDER.items():
        allowed = 1 + 1e-12
        replaced = one_step.sensitivity(norm, REPLACE, scale) * allowed
        assert np.linalg.norm(x - y, order) <= replaced
        assert np.linalg.norm(x, order) <= one_step.sensitivity(norm, ADD, scale) * allowed


@pytest.mark.parametrize("scale", [None, {"step": 3.0, "cell": 0.5}, {"cell": 0.0}, {"step": 0.0}])
@pytest.mark.parametrize(("H", "S"), [(1, 1), (1, 2), (3, 1), (2, 2), (3, 3)])
def test_the_worst_pair_attains_the_sensitivity_at_every_step(H, S, scale):
    one_step = statistic(H, S)
    one, other = one_step.worst_pair()
    for (norm, order), coin in itertools.product(ORDER.items(), range(H)):
        x, y = (natural(one_step, user, coin, scale) for user in (one, other))
        replaced = one_step.sensitivity(norm, REPLACE, scale)
        assert np.linalg.norm(x - y, order) == pytest.approx(replaced, rel=1e-14)
        added = one_step.sensitivity(norm, ADD, scale)
        assert np.linalg.norm(x, order) == pytest.approx(added, rel=1e-14)


def test_published_numbers():
    one_step = statistic(5, S=3)
    assert one_step.sensitivity("l1", REPLACE) == 2.0
    assert one_step.sensitivity("l2", REPLACE) == math.sqrt(2.0)
    assert one_step.sensitivity("l1", ADD) == 2.0  # the step and the cell
    assert one_step.sensitivity("l2", ADD) == math.sqrt(2.0)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (("l1", "replace-one"), "must be a member of Relation"),
        (("linf", REPLACE), "norm = 'linf'"),
        (("l1", REPLACE, {"cells": 2.0}), "no block 'cells'"),
        (("l1", REPLACE, {"cell": -1.0}), "scale of cell"),
    ],
)
def test_a_question_asked_wrongly_is_refused_not_underestimated(question, message):
    with pytest.raises(InvalidInput, match=message):
        statistic(2).sensitivity(*question)


# ---- all steps, for users who draw one ----------------------------------------------------------


def each_step(H, S=2):
    return EachStep(Task("tabular", H, {"states": S, "actions": 2}, True, users=10))


@given(trajectories, coins)
def test_each_step_is_what_one_step_says_of_that_step(trajectory, coin) -> None:
    every, single = each_step(3), statistic(3)
    cells = every.layout.views(contribution(every, trajectory, coin))["cell"]
    for h in range(3):
        alone = single.layout.views(contribution(single, trajectory, h))["cell"]
        assert np.array_equal(cells[h], alone) and alone.sum() == REWARD_STEPS


@pytest.mark.parametrize("H", [1, 2])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_sensitivity_of_all_steps_is_the_largest_change(H: int, norm: str) -> None:
    every = each_step(H)
    lives = [
        lived(states, rewards)
        for states in itertools.product(range(2), repeat=H + 1)
        for rewards in itertools.product((0.0, 0.3, 1.0), repeat=H)
    ]
    vectors = [natural(every, life, scale={"cell": 2.0}) for life in lives]
    moved = max(np.linalg.norm(a - b, ORDER[norm]) for a in vectors for b in vectors)
    assert every.sensitivity(norm, REPLACE, {"cell": 2.0}) == pytest.approx(moved)
    added = max(np.linalg.norm(a, ORDER[norm]) for a in vectors)
    assert every.sensitivity(norm, ADD, {"cell": 2.0}) == pytest.approx(added)
    pair = [natural(every, life, scale={"cell": 2.0}) for life in every.worst_pair()]
    assert np.linalg.norm(pair[0] - pair[1], ORDER[norm]) == pytest.approx(moved)
