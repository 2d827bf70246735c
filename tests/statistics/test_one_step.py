"""OneStep: the answer to one question, whatever anybody sends. EachStep: all to draw one from."""

import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP, pick_question
from tacit.kernels.raw import cells
from tacit.policies.tabular import TabularPolicy
from tacit.publication import Publication
from tacit.statistics import Relation
from tacit.statistics.one_step import EachStep, OneStep
from tacit.task.task import Task
from tacit.trajectory import Trajectory

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE
ORDER = {"l1": 1, "l2": 2}


def statistic(H, S=2, A=2, homogeneous=True, make=OneStep):
    return make(Task("tabular", H, {"states": S, "actions": A}, homogeneous, users=10))


def publication(one_step, asked=None, policy=0):
    table = np.full((one_step.horizon, len(one_step.places.place)), policy)
    context = {} if asked is None else {"questions": np.array(asked)}
    return Publication(0, TabularPolicy(table), context)


def always(H, h, kind):
    """Shares that ask everybody this one question."""
    return (np.arange(KINDS * H) >= KINDS * h + kind).astype(float)


def contribution(one_step, trajectory, coin=0, fill=-5, policy=0, asked=None):
    out = np.full(one_step.layout.size, fill, dtype=np.int64)
    one_step.contribute(trajectory, publication(one_step, asked, policy), coin, out)
    return out


def natural(one_step, trajectory, coin=0, scale=None, asked=None):
    """The contribution in natural units, every block times its weight."""
    vector = contribution(one_step, trajectory, coin, asked=asked) * one_step.layout.units
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
scales = st.none() | st.dictionaries(st.sampled_from(["question", "cell"]), st.floats(0, 4))
coins = st.integers(0, 2**62)
published = st.none() | st.lists(st.floats(), min_size=0, max_size=12).map(np.array)
"""Nothing, or anything: shares of the right number, of another one, or no shares at all."""


# ---- what is reported ---------------------------------------------------------------------------


def test_the_answer_to_every_question_by_hand():
    user = lived([1, 0, 2, 1], [0.25, 1.0, 0.75])
    expected = {  # (s, s', reward); what is not asked for is 0, the last step has no next state
        (0, STEP): (1, 0, 0.25),
        (1, STEP): (0, 2, 1.0),
        (0, MOVE): (1, 0, 0.0),
        (1, MOVE): (0, 2, 0.0),
        (0, REWARD): (1, 0, 0.25),
        (1, REWARD): (0, 0, 1.0),
        (2, REWARD): (2, 0, 0.75),
    }
    one_step = statistic(3, S=3)
    for (h, kind), (s, following, reward) in expected.items():
        parts = one_step.layout.views(natural(one_step, user, 17, asked=always(3, h, kind)))
        cell = np.zeros((3, 2, 3))
        cell[s, 1, following], cell[s, 0, following] = reward, 1 - reward
        assert np.array_equal(parts["cell"], cell)
        assert np.array_equal(parts["question"], np.eye(9)[KINDS * h + kind].reshape(3, 3))


def test_without_shares_all_steps_are_asked_about_in_turn():
    one_step = statistic(3)
    for coin in range(9):
        asked = one_step.question(publication(one_step), coin)
        assert asked == (coin % 3, REWARD if coin % 3 == 2 else STEP)
        assert asked == one_step.question(publication(one_step, np.ones(6)), coin)  # not 9 shares
        assert asked == one_step.question(publication(one_step, np.ones((3, 3))), coin)


def test_many_questions_are_those_of_each_report():
    one_step = statistic(3)
    coins = list(range(60))
    for asked in (None, np.linspace(1 / 9, 1, 9), np.ones(6)):
        public = publication(one_step) if asked is None else publication(one_step, asked)
        steps, kinds = one_step.questions(public, coins)
        each = [one_step.question(public, coin) for coin in coins]
        assert list(zip(steps.tolist(), kinds.tolist(), strict=True)) == each


def test_with_shares_the_id_picks_the_question():
    one_step, asked = statistic(3), np.cumsum([0.1, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    found = [one_step.question(publication(one_step, asked), coin) for coin in range(200)]
    for coin, (h, kind) in enumerate(found):
        number = pick_question(asked, coin)
        assert h == number // KINDS and kind == (REWARD if h == 2 else number % KINDS)
    assert set(found) == {(h, kind) for h in range(2) for kind in range(3)} | {(2, REWARD)}


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), trajectories, coins, published)
def test_anything_sent_becomes_one_clipped_cell_of_mass_one(H, S, trajectory, coin, asked):
    one_step = statistic(H, S)
    parts = one_step.layout.views(contribution(one_step, trajectory, coin, asked=asked))
    h, kind = one_step.question(publication(one_step, asked), coin)
    assert 0 <= h < H and 0 <= kind < KINDS and (h < H - 1 or kind == REWARD)
    states = [min(max(int(s), 0), S - 1) for s in trajectory.states] + [0] * (H + 1)
    reward = trajectory.rewards[h] if h < len(trajectory.rewards) else 0.0
    reward = 0.0 if math.isnan(reward) or kind == MOVE else min(max(reward, 0.0), 1.0)
    following = 0 if kind == REWARD else states[h + 1]
    assert parts["question"].sum() == parts["question"][h, kind] == 1
    own = parts["cell"][states[h], :, following]
    assert parts["cell"].sum() == own.sum() == STEPS and own.min() >= 0
    assert np.count_nonzero(parts["cell"]) <= 2
    assert abs(own[1] / STEPS - reward) <= 0.5 / STEPS


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), trajectories, trajectories, coins, published)
def test_the_question_does_not_depend_on_what_was_lived_through(H, S, one, other, coin, asked):
    """Two people with the same publication and the same id are asked the same."""
    one_step = statistic(H, S)
    questions = [
        one_step.layout.views(contribution(one_step, user, coin, fill, asked=asked))["question"]
        for user, fill in ((one, -5), (other, 10**9))
    ]
    assert np.array_equal(*questions)


def test_a_question_that_looks_at_the_data_is_noticed():
    """The property above fails for whoever asks about the step with the largest reward."""

    class Curious(OneStep):
        def contribute(self, trajectory, publication, coin, out):
            best = int(np.argmax(trajectory.rewards[: self.horizon]))
            super().contribute(trajectory, publication, best, out)

    curious = statistic(2, make=Curious)
    one, other = lived([0, 0, 0], [1.0, 0.0]), lived([0, 0, 0], [0.0, 1.0])
    questions = [
        curious.layout.views(contribution(curious, user))["question"] for user in (one, other)
    ]
    assert not np.array_equal(*questions)


@pytest.mark.parametrize(
    ("reward", "clipped"),
    [(math.nan, 0), (math.inf, 1), (-math.inf, 0), (7.0, 1), (-1e-300, 0), (0.5, 0.5)],
)
def test_rewards_are_clipped(reward, clipped):
    one_step = statistic(1)
    cell = one_step.layout.views(natural(one_step, lived([0, 0], [reward])))["cell"]
    assert cell[0, 1, 0] == clipped and cell[0, 0, 0] == 1 - clipped


@settings(max_examples=40)
@given(trajectories, st.lists(integers, max_size=7), coins, published)
def test_actions_are_not_read_at_all(trajectory, actions, coin, asked):
    """Neither those taken nor those advised."""
    taken = trajectory.actions
    for one_step in (statistic(3), statistic(3, make=EachStep)):
        trajectory.actions = taken
        clean = contribution(one_step, trajectory, coin, asked=asked)
        trajectory.actions = np.array(actions, dtype=np.int64)
        other = contribution(one_step, trajectory, coin, fill=10**12, policy=1, asked=asked)
        assert np.array_equal(clean, other)
        del trajectory.actions
        assert np.array_equal(clean, contribution(one_step, trajectory, coin, asked=asked))


def test_no_kernel_of_a_device_takes_an_action():
    for kernel in (cells.step_state, cells.step_reward, cells.cell_index):
        assert not {"actions", "action", "a"} & set(inspect.signature(kernel.py_func).parameters)


@pytest.mark.parametrize("S", [1, 2, 3])
def test_cells_are_numbered_without_gaps_or_collisions(S):
    """In this order: (2 s + rho) S + s', s S + s', and 2 s + rho."""
    states = range(S)
    for kind, known in (
        (STEP, [(s, rho, n) for s in states for rho in range(2) for n in states]),
        (MOVE, [(s, 0, n) for s in states for n in states]),
        (REWARD, [(s, rho, 0) for s in states for rho in range(2)]),
    ):
        assert [cells.cell_index(kind, *cell, S) for cell in known] == list(range(len(known)))
    for rho, n in itertools.product(range(2), states):  # what is not asked for does not show
        assert cells.cell_index(MOVE, S - 1, rho, n, S) == cells.cell_index(MOVE, S - 1, 0, n, S)
        assert cells.cell_index(REWARD, S - 1, rho, n, S) == cells.cell_index(
            REWARD, S - 1, rho, 0, S
        )


@pytest.mark.parametrize("homogeneous", [True, False])
def test_every_message_has_the_same_shape(homogeneous):
    one_step = statistic(3, S=2, homogeneous=homogeneous)
    assert {b.name: (b.shape, b.unit) for b in one_step.layout.blocks} == {
        "question": ((3, 3), 1.0),
        "cell": ((2, 2, 2), 2.0**-24),
    }


# ---- the declared bound -------------------------------------------------------------------------


@settings(max_examples=150)
@given(st.integers(1, 4), st.integers(1, 3), trajectories, trajectories, coins, scales, published)
def test_no_pair_exceeds_the_declared_sensitivity(H, S, one, other, coin, scale, asked):
    one_step = statistic(H, S)
    x, y = (natural(one_step, user, coin, scale, asked) for user in (one, other))
    for norm, order in ORDER.items():
        allowed = 1 + 1e-12
        replaced = one_step.sensitivity(norm, REPLACE, scale) * allowed
        assert np.linalg.norm(x - y, order) <= replaced
        assert np.linalg.norm(x, order) <= one_step.sensitivity(norm, ADD, scale) * allowed


@pytest.mark.parametrize("scale", [None, {"question": 3.0, "cell": 0.5}, {"cell": 0.0}])
@pytest.mark.parametrize(("H", "S"), [(1, 1), (1, 2), (3, 1), (2, 2), (3, 3)])
def test_the_worst_pair_attains_the_sensitivity_at_every_question(H, S, scale):
    """But for moves where there is one state only: nothing can differ."""
    one_step = statistic(H, S)
    one, other = one_step.worst_pair()
    questions = [(h, kind) for h in range(H - 1) for kind in range(KINDS)] + [(H - 1, REWARD)]
    for (norm, order), (h, kind) in itertools.product(ORDER.items(), questions):
        x, y = (natural(one_step, u, 5, scale, always(H, h, kind)) for u in (one, other))
        replaced = 0.0 if kind == MOVE and S == 1 else one_step.sensitivity(norm, REPLACE, scale)
        assert np.linalg.norm(x - y, order) == pytest.approx(replaced, rel=1e-14)
        added = one_step.sensitivity(norm, ADD, scale)
        assert np.linalg.norm(x, order) == pytest.approx(added, rel=1e-14)


def test_published_numbers():
    one_step = statistic(5, S=3)
    assert one_step.sensitivity("l1", REPLACE) == 2.0
    assert one_step.sensitivity("l2", REPLACE) == math.sqrt(2.0)
    assert one_step.sensitivity("l1", ADD) == 2.0  # the question and the cell
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


# ---- all steps, to draw one from ----------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), trajectories, coins, published)
def test_each_step_is_the_joint_cell_of_every_step_whatever_the_id(H, S, trajectory, coin, asked):
    each, one_step = statistic(H, S, make=EachStep), statistic(H, S)
    found = each.layout.views(contribution(each, trajectory, coin, asked=asked))["cell"]
    for h in range(H):
        kind = REWARD if h == H - 1 else STEP
        alone = contribution(one_step, trajectory, asked=always(H, h, kind))
        assert np.array_equal(found[h], one_step.layout.views(alone)["cell"])


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), trajectories, trajectories)
def test_no_pair_of_all_steps_exceeds_the_declared_sensitivity(H, S, one, other):
    each = statistic(H, S, make=EachStep)
    x, y = (natural(each, user) for user in (one, other))
    a, b = (natural(each, user) for user in each.worst_pair())
    for norm, order in ORDER.items():
        declared = each.sensitivity(norm, REPLACE)
        assert np.linalg.norm(x - y, order) <= declared * (1 + 1e-12)
        assert np.linalg.norm(a - b, order) == pytest.approx(declared, rel=1e-14)
        assert np.linalg.norm(x, order) <= each.sensitivity(norm, ADD) * (1 + 1e-12)
