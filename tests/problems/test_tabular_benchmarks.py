"""The named benchmarks against their published numbers and definitions."""

import itertools
import math
import re

import numpy as np
import pytest

import tacit
from tacit import InvalidInput
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.problems.tabular_benchmarks import hard_gap

TOL = dict(rel=0, abs=1e-9)


def uniform_value(problem):
    return problem.value(uniform_policy(problem.horizon, problem.states, problem.actions))


def always(problem, action):
    return problem.value(TabularPolicy(np.full((problem.horizon, problem.states), action)))


# ---- river-swim ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "horizon", "optimal", "uniform", "left"),
    [(6, 20, 3.397263959, 0.043789023, 0.1), (5, 10, 0.906806546, 0.029528516, 0.05)],
)
@pytest.mark.parametrize("rewards", ["deterministic", "bernoulli"])
def test_river_swim_classic_values(states, horizon, optimal, uniform, left, rewards):
    problem = tacit.problem("river-swim", states=states, horizon=horizon, rewards=rewards)
    assert problem.optimal_value() == pytest.approx(optimal, **TOL)
    assert uniform_value(problem) == pytest.approx(uniform, **TOL)
    assert always(problem, 0) == pytest.approx(left, **TOL)


def test_river_swim_default_is_the_classic_chain_of_six():
    problem = tacit.problem("river-swim")
    assert (problem.states, problem.actions, problem.horizon) == (6, 2, 20)
    assert problem.rewards == "deterministic" and problem.homogeneous
    assert problem.optimal_value() == pytest.approx(3.397263959, **TOL)


@pytest.mark.parametrize(
    ("kernel", "states", "optimal"),
    [
        ("vtr", 3, 0.2755558417),
        ("vtr", 4, 0.1461041113),
        ("vtr", 5, 0.0840767683),
        ("classic", 3, 0.2280593667),
        ("classic", 4, 0.1380809700),
        ("classic", 5, 0.0906806546),
    ],
)
def test_river_swim_values_with_rewards_divided_by_the_horizon(kernel, states, optimal):
    H = 2 * states
    problem = tacit.problem(
        "river-swim", states=states, horizon=H, kernel=kernel, reward_scale=1 / H
    )
    assert problem.optimal_value() == pytest.approx(optimal, **TOL)
    assert always(problem, 0) == pytest.approx(0.005, **TOL)


@pytest.mark.parametrize(
    ("states", "uniform"), [(3, 0.0267296605), (4, 0.0066169500), (5, 0.0026154940)]
)
def test_river_swim_vtr_uniform_values(states, uniform):
    H = 2 * states
    problem = tacit.problem(
        "river-swim", states=states, horizon=H, kernel="vtr", reward_scale=1 / H
    )
    assert uniform_value(problem) == pytest.approx(uniform, **TOL)


RIGHT = {  # of the right action at S = 4: rows are states, as the specs print them
    "classic": [[0.4, 0.6, 0, 0], [0.05, 0.6, 0.35, 0], [0, 0.05, 0.6, 0.35], [0, 0, 0.4, 0.6]],
    "vtr": [[0.3, 0.7, 0, 0], [0.1, 0.6, 0.3, 0], [0, 0.1, 0.6, 0.3], [0, 0, 0.1, 0.9]],
}
LEFT = np.eye(4)[[0, 0, 1, 2]]


@pytest.mark.parametrize("kernel", RIGHT)
def test_river_swim_tables_are_those_of_the_specs(kernel):
    problem = tacit.problem("river-swim", states=4, kernel=kernel, reward_scale=0.5)
    np.testing.assert_allclose(problem.P[0, :, 1], RIGHT[kernel], rtol=0, atol=1e-15)
    assert np.array_equal(problem.P[0, :, 0], LEFT)
    assert np.array_equal(problem.R[0], [[0.0025, 0], [0, 0], [0, 0], [0, 0.5]])
    assert np.array_equal(problem.initial, [1, 0, 0, 0])


def test_river_swim_reward_modes_change_what_is_paid():
    right = TabularPolicy(np.ones((30, 2), dtype=int))
    paid = {}
    for rewards in ("deterministic", "bernoulli"):
        problem = tacit.problem(
            "river-swim", states=2, horizon=30, reward_scale=0.5, rewards=rewards
        )
        rng = np.random.default_rng(1)
        episodes = [problem.rollout(right, rng) for _ in range(20)]
        paid[rewards] = {float(r) for episode in episodes for r in episode.rewards}
    assert paid == {"deterministic": {0.0, 0.5}, "bernoulli": {0.0, 1.0}}


@pytest.mark.parametrize("kernel", RIGHT)
def test_inhomogeneous_river_swim_mixes_right_with_a_slip_to_the_left(kernel):
    H = 8
    problem = tacit.problem(
        "river-swim", states=4, horizon=H, kernel=kernel, inhomogeneous=True, seed=3
    )
    assert problem.P.shape == (H, 4, 2, 4) and not problem.homogeneous
    p = problem.P[:, 0, 1, 1] / RIGHT[kernel][0][1]  # only swimming right leads from 0 to 1
    assert ((p >= 0.8) & (p < 1)).all() and len(set(p.round(12))) == H
    for h in range(H):
        mixed = p[h] * np.array(RIGHT[kernel]) + (1 - p[h]) * LEFT
        np.testing.assert_allclose(problem.P[h, :, 1], mixed, rtol=0, atol=1e-15)
        assert np.array_equal(problem.P[h, :, 0], LEFT)
    homogeneous = tacit.problem("river-swim", states=4, horizon=H, kernel=kernel)
    assert np.array_equal(problem.R, np.repeat(homogeneous.R, H, axis=0))
    assert problem.optimal_value() < homogeneous.optimal_value()


def test_inhomogeneous_strengths_depend_on_the_seed_alone():
    def tables(**parameters):
        return tacit.problem("river-swim", states=4, horizon=6, **parameters).P

    one = tables(inhomogeneous=True, seed=1)
    assert np.array_equal(one, tables(inhomogeneous=True, seed=1))
    assert not np.array_equal(one, tables(inhomogeneous=True, seed=2))
    assert np.array_equal(tables(seed=1), tables(seed=2))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(states=1), "states = 1, but it must be a whole number >= 2"),
        (dict(horizon=0), "horizon = 0, but it must be a whole number >= 1"),
        (dict(kernel="psrl"), "kernel = 'psrl', but it must be one of classic, vtr"),
        (dict(reward_scale=0), "reward_scale = 0, but it must be a finite number > 0 and <= 1"),
        (dict(reward_scale=1.5), "reward_scale = 1.5, but"),
        (dict(rewards="gaussian"), "rewards = 'gaussian', but"),
        (dict(inhomogeneous=1), "inhomogeneous = 1, but it must be true or false"),
        (dict(seed=-1), "seed = -1, but"),
        (dict(state=5), "river-swim has no parameter 'state'; did you mean 'states'"),
    ],
)
def test_river_swim_refuses(parameters, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        tacit.problem("river-swim", **parameters)


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(
        tacit.UnknownName, match="unknown problem 'river-swin'; did you mean 'river-swim'"
    ):
        tacit.problem("river-swin")


# ---- random-mdp ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("S", "A", "H", "seed"), [(2, 2, 2, 0), (2, 2, 2, 7), (5, 3, 4, 123)])
def test_random_mdp_is_its_construction_bit_for_bit(S, A, H, seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(0.1 * np.ones(S), size=(S, A))
    R = rng.random((S, A)) <= 0.5
    problem = tacit.problem("random-mdp", states=S, actions=A, horizon=H, seed=seed)
    assert np.array_equal(problem.P, P[None])
    assert np.array_equal(problem.R, R[None])
    assert np.array_equal(problem.initial, np.eye(S)[0])
    assert (problem.horizon, problem.rewards) == (H, "deterministic")


def test_random_mdp_start_state_is_a_parameter():
    problem = tacit.problem("random-mdp", states=3, initial=2)
    assert np.array_equal(problem.initial, [0, 0, 1])
    with pytest.raises(InvalidInput, match="initial = 3, but"):
        tacit.problem("random-mdp", states=3, initial=3)


# ---- hard-tree ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("S", "A", "d"), [(15, 3, 3), (3, 2, 1), (5, 2, 2), (9, 2, 3), (6, 3, 2)])
def test_hard_tree_structure_and_values(S, A, d):
    H, gap, leaves = 12, 0.15, A ** (d - 1)
    problem = tacit.problem("hard-tree", states=S, actions=A, horizon=H, gap=gap, seed=4)
    assert problem.describe()["depth"] == d and problem.describe()["leaves"] == leaves
    P, heaven, hell = problem.P[0], S - 2, S - 1
    reached = []
    for path in itertools.product(range(A), repeat=d - 1):
        s = int(problem.initial.argmax())
        for a in path:
            assert P[s, a].max() == 1.0
            s = int(P[s, a].argmax())
        reached.append(s)
    assert len(set(reached)) == leaves and heaven not in reached and hell not in reached
    up = P[reached][:, :, heaven]
    assert np.allclose(up + P[reached][:, :, hell], 1.0, rtol=0, atol=1e-15)
    assert (up == 0.5).sum() == leaves * A - 1
    assert np.isclose(up, 0.5 + gap, rtol=0, atol=1e-15).sum() == 1
    assert (P[heaven, :, heaven] == 1).all() and (P[hell, :, hell] == 1).all()
    assert (problem.R[0, heaven] == 1).all() and problem.R.sum() == A
    assert problem.optimal_value() == pytest.approx((H - d) * (0.5 + gap), **TOL)
    assert uniform_value(problem) == pytest.approx((H - d) * (0.5 + gap / (leaves * A)), **TOL)


def test_hard_tree_seed_moves_the_special_pair_only():
    trees = [tacit.problem("hard-tree", gap=0.2, seed=seed) for seed in range(40)]
    special = {tuple(np.argwhere(tree.P[0, :, :, -2] == 0.7)[0]) for tree in trees}
    assert len(special) > 13  # of 27 pairs; 40 uniform draws meet 21 of them on average
    assert all(tree.optimal_value() == pytest.approx(17 * 0.7, **TOL) for tree in trees)


def test_hard_tree_with_the_largest_gap_is_certain():
    tree = tacit.problem("hard-tree", states=5, actions=2, horizon=6, gap=0.5)
    assert tree.optimal_value() == 4.0


@pytest.mark.parametrize(("epsilon", "users"), [(0.1, 10_000), (0.3, 500), (1.0, 10_000), (8, 10)])
def test_hard_gap_gives_the_corrected_lower_bound(epsilon, users):
    """(H - d) K Delta / 4 is the bound (H - d) sqrt(KLA) / (64 sqrt2 min{e^eps - 1, 1/2})."""
    leaves, actions = 9, 3
    gap = hard_gap(leaves, actions, epsilon, users)
    bound = math.sqrt(users * 27) / (64 * math.sqrt(2) * min(math.exp(epsilon) - 1, 0.5))
    assert users * gap / 4 == pytest.approx(bound, rel=1e-12)
    tree = tacit.problem("hard-tree", states=15, actions=3, epsilon=epsilon, users=users)
    assert tree.optimal_value() == pytest.approx(17 * (0.5 + gap), **TOL)


@pytest.mark.parametrize(("epsilon", "least"), [(0.1, 39), (0.05, 161), (0.5, 2), (5.0, 2)])
def test_hard_gap_needs_enough_users(epsilon, least):
    """K >= LA / (64 min{e^eps - 1, 1/2}^2) with LA = 27; the gap is then at most 1 / (2 sqrt2)."""
    assert least == math.ceil(27 / (64 * min(math.exp(epsilon) - 1, 0.5) ** 2))
    assert 0 < hard_gap(9, 3, epsilon, least) <= 1 / math.sqrt(8)
    message = f"at least {least} users at epsilon = {epsilon:g} with 27 .* got {least - 1}"
    with pytest.raises(InvalidInput, match=message):
        hard_gap(9, 3, epsilon, least - 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(states=10, actions=3), "states = 10, but with 3 actions .*: 6, 15 are the nearest"),
        (dict(states=14, actions=3), "states = 14, but .*: 6, 15 are the nearest"),
        (dict(states=16, actions=2), "states = 16, but .*: 9, 17 are the nearest"),
        (dict(states=2), "states = 2, but it must be a whole number >= 3"),
        (dict(actions=1), "actions = 1, but it must be a whole number >= 2"),
        (dict(horizon=6), r"horizon = 6, but the tree needs 2 log_A\(S - 2\) \+ 2 = 7"),
        (dict(gap=0.0), "gap = 0, but it must be a finite number > 0 and <= 0.5"),
        (dict(gap=0.6), "gap = 0.6, but"),
        (dict(epsilon=1.0), "either gap, or epsilon together with users"),
        (dict(users=100), "either gap, or epsilon together with users"),
        (dict(gap=0.1, epsilon=1.0, users=100), "either gap, or epsilon together with users"),
        (dict(epsilon=0.0, users=100), "epsilon = 0, but"),
    ],
)
def test_hard_tree_refuses(parameters, message):
    with pytest.raises(InvalidInput, match=message):
        tacit.problem("hard-tree", **parameters)


def test_hard_tree_accepts_the_shortest_horizon():
    assert tacit.problem("hard-tree", horizon=7).optimal_value() == pytest.approx(4 * 0.6, **TOL)
