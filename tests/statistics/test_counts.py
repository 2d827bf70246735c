"""VisitCounts: the declared sensitivity is the true one, for every trajectory anybody can send."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.raw.sums import absorb
from tacit.policies.tabular import TabularPolicy
from tacit.publication import Publication
from tacit.statistics import Relation
from tacit.statistics.counts import Nothing, VisitCounts
from tacit.task.task import Task
from tacit.trajectory import Trajectory

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE
METRIC = {"l1": "cityblock", "l2": "euclidean"}
ORDER = {"l1": 1, "l2": 2}


def statistic(H, S=2, A=2, homogeneous=True, squares=False):
    task = Task("tabular", H, {"states": S, "actions": A}, homogeneous, users=10)
    return VisitCounts(task, squares=squares)


def publication(H, S=2):
    return Publication(0, TabularPolicy(np.zeros((H, S), dtype=int)))


def contribution(counts, trajectory, coin=0, fill=-5):
    out = np.full(counts.layout.size, fill, dtype=np.int64)
    counts.contribute(trajectory, publication(counts.horizon), coin, out)
    return out


def natural(counts, trajectory, scale=None):
    """The contribution in natural units, every block times its weight."""
    vector = contribution(counts, trajectory) * counts.layout.units
    for name, view in counts.layout.views(vector).items():
        view *= (scale or {}).get(name, 1.0)
    return vector


def every_contribution(counts, S=2, A=2):
    """The distinct contributions of all trajectories with rewards 0 or 1, as rows."""
    H = counts.horizon
    rows = {
        natural(counts, Trajectory(np.array(s), np.array(a), np.array(r, dtype=float))).tobytes()
        for s in itertools.product(range(S), repeat=H + 1)
        for a in itertools.product(range(A), repeat=H)
        for r in itertools.product((0, 1), repeat=H)
    }
    return np.array([np.frombuffer(row) for row in rows])


# ---- the true maximum ---------------------------------------------------------------------------


@pytest.mark.parametrize("squares", [False, True], ids=["", "squares"])
@pytest.mark.parametrize("homogeneous", [True, False], ids=["pooled", "staged"])
@pytest.mark.parametrize("H", [1, 2, 3])
def test_sensitivity_is_the_maximum_over_all_pairs(H, homogeneous, squares):
    counts = statistic(H, homogeneous=homogeneous, squares=squares)
    rows = every_contribution(counts)
    for norm in ("l1", "l2"):
        replaced = cdist(rows, rows, METRIC[norm]).max()
        added = np.linalg.norm(rows, ORDER[norm], axis=1).max()
        assert counts.sensitivity(norm, REPLACE) == pytest.approx(replaced, rel=1e-12)
        assert counts.sensitivity(norm, ADD) == pytest.approx(added, rel=1e-12)


@pytest.mark.parametrize("homogeneous", [True, False], ids=["pooled", "staged"])
def test_weighted_sensitivity_is_the_maximum_over_all_pairs(homogeneous):
    counts = statistic(2, homogeneous=homogeneous, squares=True)
    weights = {"reward": 0.5, "visits": 3.0, "reward_squares": 0.0}  # transitions: 1 by default
    rows = every_contribution(counts)
    for name, view in counts.layout.views(np.arange(counts.layout.size)).items():
        rows[:, view.ravel()] *= weights.get(name, 1.0)
    for norm in ("l1", "l2"):
        replaced = cdist(rows, rows, METRIC[norm]).max()
        assert counts.sensitivity(norm, REPLACE, weights) == pytest.approx(replaced, rel=1e-12)


@pytest.mark.parametrize("H", [1, 2, 3, 7, 20])
def test_published_formulas(H):
    plain, squares = statistic(H), statistic(H, squares=True)
    for counts in (plain, statistic(H, homogeneous=False), statistic(H, S=6, A=3)):
        assert counts.sensitivity("l1", REPLACE) == 6 * H - 2
        assert counts.sensitivity("l1", ADD) == 3 * H - 1
    assert squares.sensitivity("l1", REPLACE) == 8 * H - 2
    assert plain.sensitivity("l2", REPLACE) == pytest.approx(
        math.sqrt(4 * H**2 + 2 * (H - 1) ** 2), rel=1e-14
    )
    assert squares.sensitivity("l2", REPLACE) == pytest.approx(
        math.sqrt(6 * H**2 + 2 * (H - 1) ** 2), rel=1e-14
    )
    staged = statistic(H, homogeneous=False)
    assert staged.sensitivity("l2", REPLACE) == pytest.approx(math.sqrt(6 * H - 2), rel=1e-14)


# ---- no trajectory exceeds it -------------------------------------------------------------------

integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 3)
rewards = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, 1.0, 0.5])
trajectories = st.builds(
    lambda s, a, r: Trajectory(np.array(s, np.int64), np.array(a, np.int64), np.array(r, float)),
    st.lists(integers, max_size=9),
    st.lists(integers, max_size=9),
    st.lists(rewards, max_size=9),
)
scales = st.dictionaries(
    st.sampled_from(["reward", "visits", "transitions", "reward_squares"]), st.floats(0, 4)
)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 5), st.booleans(), st.booleans(), trajectories, trajectories, st.none() | scales
)
def test_no_pair_exceeds_the_declared_sensitivity(H, homogeneous, squares, one, other, scale):
    counts = statistic(H, homogeneous=homogeneous, squares=squares)
    there = {block.name for block in counts.layout.blocks}
    scale = {name: weight for name, weight in (scale or {}).items() if name in there}
    x, y = natural(counts, one, scale), natural(counts, other, scale)
    for norm in ("l1", "l2"):
        allowed = 1 + 1e-12
        replaced = np.linalg.norm(x - y, ORDER[norm])
        assert replaced <= counts.sensitivity(norm, REPLACE, scale) * allowed
        assert np.linalg.norm(x, ORDER[norm]) <= counts.sensitivity(norm, ADD, scale) * allowed


# ---- whole steps, exact sums --------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 5), st.booleans(), trajectories)
def test_contributions_lie_on_the_declared_grid(H, homogeneous, trajectory):
    counts = statistic(H, homogeneous=homogeneous, squares=True)
    parts = counts.layout.views(contribution(counts, trajectory))
    lengths = [len(trajectory.states), len(trajectory.actions), len(trajectory.rewards)]
    steps = min(H, *lengths)
    clipped = np.clip(np.nan_to_num(trajectory.rewards[:steps], nan=0.0), 0, 1)
    units = {block.name: block.unit for block in counts.layout.blocks}
    assert units["visits"] == units["transitions"] == 1.0
    assert units["reward"] == units["reward_squares"] == 2.0**-24 == 1 / STEPS
    assert all(part.dtype == np.int64 and part.min() >= 0 for part in parts.values())
    assert parts["visits"].sum() == steps
    assert parts["transitions"].sum() == max(0, min(steps, H - 1, lengths[0] - 1))
    half = 0.5 * steps + 1e-6  # half a step of rounding per reward
    assert abs(parts["reward"].sum() - clipped.sum() * STEPS) <= half
    assert abs(parts["reward_squares"].sum() - (clipped**2).sum() * STEPS) <= half
    assert (parts["reward"] <= parts["visits"] * STEPS).all()


def test_rewards_on_the_grid_are_exact():
    counts = statistic(3)
    rewards = np.array([12345, 1, STEPS - 1]) / STEPS
    lived = Trajectory(np.array([0, 1, 1, 0]), np.array([0, 1, 1]), rewards)
    reward = counts.layout.views(natural(counts, lived))["reward"]
    assert np.array_equal(reward, [[[rewards[0], 0], [0, rewards[1] + rewards[2]]]])


def random_users(n=200, H=4, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Trajectory(rng.integers(2, size=H + 1), rng.integers(2, size=H), rng.random(H))
        for _ in range(n)
    ]


def test_sums_do_not_depend_on_the_order_of_users():
    counts, users = statistic(4, squares=True), random_users()
    reports = [contribution(counts, user) for user in users]
    results, floats = set(), set()
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(reports))
        sums, raw = np.zeros(counts.layout.size, dtype=np.int64), 0.0
        for k in order:
            absorb(sums, reports[k])
            raw += users[k].rewards[0]
        results.add((sums * counts.layout.units).tobytes())
        floats.add(raw)
    assert len(results) == 1
    assert len(floats) > 1  # adding the rewards themselves would have depended on it


def test_a_contribution_depends_on_nothing_but_the_trajectory():
    """Neither on what the buffer held, nor on the report's id."""
    counts = statistic(4, squares=True)
    for user in random_users(20):
        clean = contribution(counts, user, fill=0)
        assert np.array_equal(clean, contribution(counts, user, coin=99, fill=10**12))
        assert clean.sum() > 0


def test_staged_tables_add_up_to_the_pooled_ones():
    pooled, staged = statistic(4, squares=True), statistic(4, homogeneous=False, squares=True)
    for user in random_users(20):
        whole = pooled.layout.views(contribution(pooled, user))
        parts = staged.layout.views(contribution(staged, user))
        for name, table in whole.items():
            assert parts[name].shape == (4, *table.shape[1:])
            assert np.array_equal(parts[name].sum(axis=0, keepdims=True), table)


def test_blocks_tile_the_vector():
    layout = statistic(3, S=3, homogeneous=False, squares=True).layout
    views = layout.views(np.arange(layout.size))
    assert {name: view.shape for name, view in views.items()} == {
        "reward": (3, 3, 2),
        "visits": (3, 3, 2),
        "transitions": (3, 3, 2, 3),
        "reward_squares": (3, 3, 2),
    }
    cells = np.concatenate([view.ravel() for view in views.values()])
    assert sorted(cells) == list(range(layout.size)) and len(layout.units) == layout.size
    assert "reward_squares" not in statistic(3).layout.views(np.zeros(statistic(3).layout.size))


@pytest.mark.parametrize("make", [lambda: statistic(5), Nothing], ids=["counts", "nothing"])
@pytest.mark.parametrize(
    ("question", "message"),
    [
        (("l1", "replace-one"), "must be a member of Relation"),
        (("linf", Relation.REPLACE_ONE), "norm = 'linf'"),
        (("l1", Relation.REPLACE_ONE, {"rewards": 100.0}), "no block 'rewards'"),
    ],
)
def test_a_question_asked_wrongly_is_refused_not_underestimated(make, question, message):
    with pytest.raises(InvalidInput, match=message):
        make().sensitivity(*question)


def test_negative_or_infinite_weights_are_refused():
    for weight in (-1.0, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="scale of reward"):
            statistic(5).sensitivity("l1", Relation.REPLACE_ONE, {"reward": weight})


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize(("H", "S", "A"), [(1, 2, 2), (4, 2, 1), (3, 1, 3), (5, 3, 2)])
def test_the_worst_pair_attains_the_sensitivity(H, S, A, homogeneous, squares):
    counts = statistic(H, S=S, A=A, homogeneous=homogeneous, squares=squares)
    one, other = counts.worst_pair()
    apart = natural(counts, one) - natural(counts, other)
    for norm in ("l1", "l2"):
        assert np.linalg.norm(apart, ORDER[norm]) == pytest.approx(
            counts.sensitivity(norm, REPLACE)
        )
