"""V-free statistics: golden sensitivities, adversarial users, and that the worst is attained."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.policies.tabular import uniform_policy
from tacit.problems import LinearMixtureMDP
from tacit.publication import Publication
from tacit.statistics.base import Relation
from tacit.statistics.counts import JointCounts
from tacit.statistics.multi_target import SHARES, MultiTargets
from tacit.task.features import geometry
from tacit.task.task import Task
from tacit.trajectory import Trajectory

NOTHING = Publication(0, uniform_policy(3, 2, 2))


def contribution(statistic, trajectory: Trajectory) -> np.ndarray:
    out = np.full(statistic.layout.size, 5, dtype=np.int64)
    statistic.contribute(trajectory, NOTHING, 0, out)
    return out * statistic.layout.units


def wild(rng: np.random.Generator, H: int, S: int, A: int) -> Trajectory:
    steps = rng.integers(0, H + 3)
    rewards = rng.choice([0.0, 1.0, 0.4, -3.0, 8.0, np.nan], size=steps)
    return Trajectory(rng.integers(-2, S + 2, steps + 1), rng.integers(-1, A + 1, steps), rewards)


def wild_mixture(seed: int, stages: int) -> LinearMixtureMDP:
    """Features of any size and sign whose mixtures are kernels: random ones, changed by a basis."""
    rng = np.random.default_rng(seed)
    base = np.moveaxis(rng.dirichlet(np.ones(3), size=(3, 2, 2)), 2, 3)
    mix = rng.normal(0, 2, (2, 2))
    theta = np.linalg.solve(mix, rng.dirichlet(np.ones(2), size=stages).T).T
    return LinearMixtureMDP(
        np.einsum("saxd,de->saxe", base, mix),
        theta,
        horizon=4 if stages == 1 else stages,
        reward_features=np.eye(6).reshape(3, 2, 6),
        reward_theta=rng.random(6),
        theta_norm=1e6,
        reward_theta_norm=9.0,
    )


@functools.cache
def statistics(seed: int) -> list:
    per_stage = tacit.problem("river-swim", states=3, horizon=4, inhomogeneous=True)
    return [
        MultiTargets(wild_mixture(seed, 1).task(users=5)),
        MultiTargets(wild_mixture(seed, 4).task(users=5)),
        MultiTargets(wild_mixture(seed, 4).task(users=5, reveal=["reward"])),
        MultiTargets(tacit.problem("remap-walk", horizon=4).task(users=5)),
        JointCounts(tacit.problem("river-swim", states=3, horizon=4).task(users=5), 0.2),
        JointCounts(per_stage.task(users=5), 0.3),
        JointCounts(per_stage.task(users=5, reveal=["reward"]), 0.3),
    ]


@functools.cache
def declared(seed: int, index: int, norm: str, relation: Relation) -> float:
    return statistics(seed)[index].sensitivity(norm, relation)


@given(seed=st.integers(0, 10_000))
def test_no_pair_of_users_moves_further_than_declared(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for index, statistic in enumerate(statistics(seed % 5)):
        sizes = statistic.task.sizes
        one, two = (
            contribution(statistic, wild(rng, 4, sizes["states"], sizes["actions"]))
            for _ in range(2)
        )
        for norm, order in (("l1", 1), ("l2", 2)):
            moved, alone = np.linalg.norm(one - two, order), np.linalg.norm(one, order)
            assert moved <= declared(seed % 5, index, norm, Relation.REPLACE_ONE) + 1e-12
            assert alone <= declared(seed % 5, index, norm, Relation.ADD_REMOVE_ONE) + 1e-12


def test_every_step_adds_the_row_of_its_own_pair() -> None:
    """Of every pair and next state, in every stage's own table, or in one for all."""
    rng = np.random.default_rng(1)
    for statistic in statistics(1)[:4]:
        tables, H = statistic.tables, statistic.task.horizon
        S, A = statistic.task.sizes["states"], statistic.task.sizes["actions"]
        for s, a in itertools.product(range(S), range(A)):
            states, actions = rng.integers(S, size=H + 1), rng.integers(A, size=H)
            rewards = rng.random(H)
            states[1], actions[1] = s, a
            life = Trajectory(states, actions, rewards)
            expected = np.zeros(statistic.layout.size, dtype=np.int64)
            views = statistic.layout.views(expected)
            for h in range(H):
                pair, g = A * states[h] + actions[h], 0 if statistic.pooled else h
                if "gram" in views and (statistic.pooled or h < H - 1):
                    views["gram"][g] += tables.gram[pair]
                    views["target"][g] += tables.target[pair, states[h + 1]]
                if "reward_gram" in views:
                    views["reward_gram"][g] += tables.reward_gram[pair]
                    low, high = tables.reward_low[pair], tables.reward_high[pair]
                    views["reward_target"][g] += np.rint(low + rewards[h] * (high - low)).astype(
                        int
                    )
            found = contribution(statistic, life) / statistic.layout.units
            assert np.allclose(found, expected, rtol=0, atol=1e-3)


def test_joint_counts_are_those_of_the_steps_that_were_lived() -> None:
    """In every stage's own table, or in one; nobody plans with the last next state: it is 0."""
    rng = np.random.default_rng(2)
    for statistic in statistics(1)[4:]:
        S, A = statistic.task.sizes["states"], statistic.task.sizes["actions"]
        pairs, H, scales = statistic.task.pairs, statistic.task.horizon, statistic.scales
        for _ in range(20):
            states, actions = rng.integers(S, size=H + 1), rng.integers(A, size=H)
            rewards = rng.random(H)
            expected = statistic.layout.views(np.zeros(statistic.layout.size))
            counts = expected["transitions"].reshape(-1, len(pairs.action), S)
            paid = expected.get("reward", np.zeros(0)).reshape(-1, len(pairs.action))
            for h in range(H):
                g, x = 0 if statistic.pooled else h, pairs.number[states[h], actions[h]]
                last = not statistic.pooled and h == H - 1
                counts[g, x, 0 if last else states[h + 1]] += scales["transitions"]
                if statistic.learned:
                    paid[g, x] += scales["reward"] * (rewards[h] - 0.5)
            flat = np.concatenate([block.ravel() for block in expected.values()])
            found = contribution(statistic, Trajectory(states, actions, rewards))
            assert np.allclose(found, flat, rtol=0, atol=1e-6)


def test_somebody_more_adds_as_much_as_declared_where_stages_share_a_table() -> None:
    """H times the longest step; a step leads back to where it began."""
    for statistic in (statistics(2)[0], statistics(2)[3]):
        S, A, H = statistic.task.sizes["states"], statistic.task.sizes["actions"], 4
        longest = max(
            np.linalg.norm(
                contribution(statistic, Trajectory(np.full(H + 1, s), np.full(H, a), np.full(H, r)))
            )
            for s, a, r in itertools.product(range(S), range(A), (0.0, 1.0))
        )
        declared = statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE)
        assert 0.5 * declared < longest <= declared


def test_rewards_of_separate_stages_are_counted_at_every_stage() -> None:
    """Two people who repeat the worst two steps move rewards as far as declared, last stage too."""
    problem = wild_mixture(1, 3)
    statistic = MultiTargets(problem.task(users=5))
    assert not statistic.pooled and {"gram", "reward_gram"} <= set(statistic.scales)
    only = {name: float(name.startswith("reward")) for name in statistic.scales}
    mask = np.concatenate([np.full(b.size, only[b.name]) for b in statistic.layout.blocks])
    S, A = statistic.task.sizes["states"], statistic.task.sizes["actions"]
    people = [
        contribution(statistic, Trajectory(np.full(4, s), np.full(3, a), np.full(3, r))) * mask
        for s in range(S)
        for a in range(A)
        for r in (0.0, 1.0)
    ]
    moved = max(math.dist(one, two) for one in people for two in people)
    declared = statistic.sensitivity("l2", Relation.REPLACE_ONE, only)
    assert 0.95 * declared < moved <= declared


def test_remap_walk_has_the_sensitivities_of_the_spec() -> None:
    """D_M = 1.765418, D_v = 1.972828, jointly .98276 of the sum (docs/papers/mixture_jdp.md#b1)."""
    statistic = MultiTargets(tacit.problem("remap-walk").task(users=5))
    for name, value in (("gram", 1.765418), ("target", 1.972828)):
        assert math.sqrt(SHARES[name]) / statistic.scales[name] == pytest.approx(value, abs=1e-6)
    weights = dict.fromkeys(SHARES, 0.0) | {"gram": 1.0, "target": 1.0}
    joint = statistic.sensitivity("l2", Relation.REPLACE_ONE, weights) / 10
    assert joint / math.sqrt(0.6) == pytest.approx(0.98276, abs=1e-5)
    assert statistic.sensitivity("l2", Relation.REPLACE_ONE) <= 10.0
    reward = {"gram": 0.0, "target": 0.0, "reward_gram": 1.0, "reward_target": 1.0}
    assert statistic.sensitivity("l2", Relation.REPLACE_ONE, reward) / 10 <= math.sqrt(0.4) + 1e-4


def test_the_same_walk_with_more_states_is_as_sensitive() -> None:
    small, large = (
        MultiTargets(tacit.problem("remap-walk", states=n).task(users=5)) for n in (10, 100)
    )
    for norm in ("l2",):
        one = small.sensitivity(norm, Relation.REPLACE_ONE)
        assert large.sensitivity(norm, Relation.REPLACE_ONE) == pytest.approx(one, rel=1e-6)


def test_the_regression_is_unbiased() -> None:
    """E[p_{s'}] = M theta: sums over all next states with their probabilities solve for theta."""
    problem = tacit.problem("remap-walk")
    g = geometry(problem.task(users=5))
    P = problem.P[0].reshape(40, 10)
    mean = np.einsum("kx,kxd->d", P, g.shifts)
    vartheta = np.linalg.solve(g.moments.sum(axis=0), mean)
    assert np.allclose(g.full @ g.origin + g.phi @ vartheta, P)
    assert g.phi.shape[2] == 3 and g.offset == 0.5 and g.simplex


@pytest.mark.parametrize("pooled", [True, False])
def test_counts_attain_what_they_declare(pooled: bool) -> None:
    problem = tacit.problem("river-swim", states=3, horizon=5, inhomogeneous=not pooled)
    statistic = JointCounts(problem.task(users=5), 0.25)
    declared = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    if pooled:
        zero = np.zeros(5, dtype=np.int64)
        one = Trajectory(np.zeros(6, dtype=np.int64), zero, np.ones(5))
        moved = 0.0
        for states in np.ndindex(3, 3, 3, 3, 3, 3):
            other = Trajectory(np.array(states), zero, np.zeros(5))
            gap = contribution(statistic, one) - contribution(statistic, other)
            moved = max(moved, float(np.linalg.norm(gap)))
        # the bound repeats the worst step, which no connected path does: at most 10% is lost
        assert 0.9 * declared <= moved <= declared
    else:
        one, two = (contribution(statistic, t) for t in statistic.worst_pair())
        assert 0.8 * declared <= np.linalg.norm(one - two) <= declared


def test_cells_that_nobody_can_touch_are_not_sent() -> None:
    statistic = MultiTargets(tacit.problem("remap-walk").task(users=5))
    shapes = {block.name: block.shape for block in statistic.layout.blocks}
    assert shapes["reward_gram"] == (1, 5)  # zones are one-hot: only the diagonal
    assert shapes["gram"] == (1, 6) and shapes["target"] == (1, 3)


def test_worst_pairs_are_far_apart() -> None:
    statistic = MultiTargets(tacit.problem("remap-walk", horizon=6).task(users=5))
    one, two = (contribution(statistic, t) for t in statistic.worst_pair())
    assert np.linalg.norm(one - two) > 0.5 * statistic.sensitivity("l2", Relation.REPLACE_ONE)


@pytest.mark.parametrize("pooled", [True, False])
def test_joint_counts_are_plain_counts(pooled: bool) -> None:
    """Transitions, and r - 1/2, by stage or pooled; nobody plans with the last next state."""
    problem = tacit.problem("river-swim", states=3, horizon=4, inhomogeneous=not pooled)
    statistic = JointCounts(problem.task(users=5), 0.25)
    states, actions, rewards = [0, 1, 2, 1, 2], [1, 1, 0, 1], [0.0, 0.25, 1.0, 0.75]
    user = Trajectory(np.array(states), np.array(actions), np.array(rewards))
    G = 1 if pooled else 4
    counts, paid = np.zeros((G, 3, 2, 3)), np.zeros((G, 3, 2))
    for h in range(4):
        g, after = (0, states[h + 1]) if pooled else (h, states[h + 1] if h < 3 else 0)
        counts[g, states[h], actions[h], after] += statistic.scales["transitions"]
        paid[g, states[h], actions[h]] += statistic.scales["reward"] * (rewards[h] - 0.5)
    found = statistic.layout.views(contribution(statistic, user))
    assert np.allclose(found["transitions"].ravel(), counts.ravel(), atol=1e-12)
    assert np.allclose(found["reward"].ravel(), paid.ravel(), atol=1e-6)


def test_where_there_is_one_state_the_worst_pair_of_counts_differs_in_rewards() -> None:
    task = Task("tabular", 3, {"states": 1, "actions": 2}, True, users=5)
    statistic = JointCounts(task, 1.0)
    one, two = (contribution(statistic, t) for t in statistic.worst_pair())
    declared = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert np.linalg.norm(one - two) == pytest.approx(declared, rel=1e-6)


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("known", [False, True])
def test_only_what_is_to_be_learned_is_collected(horizon: int, known: bool) -> None:
    """No transitions where there is one step, no rewards that everybody knows."""
    if horizon == 1 and known:
        return
    problem = tacit.problem("remap-walk", states=10, horizon=horizon)
    statistic = MultiTargets(problem.task(users=5, reveal=["reward"] if known else []))
    expected = [name for name in SHARES if (not known if "reward" in name else horizon > 1)]
    assert [block.name for block in statistic.layout.blocks] == expected
