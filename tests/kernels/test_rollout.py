"""Episodes from rows of uniforms: which number decides what, and what can never be drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import TabularMDP
from tacit.kernels.raw.rollout import (
    draw_next,
    draw_reward,
    rollout,
    uniforms_per_episode,
)
from tacit.kernels.sampling import draw
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.problems.tabular import cumulative

LARGEST = np.nextafter(1.0, 0.0)


def random_problem(seed, rewards="deterministic", H=5, S=4, A=3):
    """Sparse rows, random start law, tables by stage for odd seeds."""
    rng = np.random.default_rng(seed)
    stages = (H,) if seed % 2 else ()
    weights = rng.integers(0, 3, size=(*stages, S, A, S)) * rng.random((*stages, S, A, S))
    weights[..., rng.integers(S)] += 0.1
    P = weights / weights.sum(-1, keepdims=True)
    start = rng.dirichlet(np.ones(S))
    return TabularMDP(P, rng.random((*stages, S, A)), H, start, rewards=rewards)


def play(function, problem, policy, u):
    H = problem.horizon
    states, actions, rewards = np.full(H + 1, -1), np.full(H, -1), np.full(H, np.nan)
    total = function(problem.truth, policy, u, states, actions, rewards)
    return total, states, actions, rewards


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("rewards", ["deterministic", "bernoulli"])
@pytest.mark.parametrize("seed", range(4))
def test_kernels_equal_their_plain_originals(seed, rewards):
    problem = random_problem(seed, rewards)
    rng = np.random.default_rng(seed)
    policy = rng.integers(3, size=(5, 4))
    cdf = cumulative(rng.dirichlet(np.ones(3), size=(5, 4)))
    for _ in range(20):
        u = rng.random(uniforms_per_episode(5))
        assert same(play(rollout, problem, policy, u), play(rollout.py_func, problem, policy, u))
        compiled = play(rollout, problem, cdf, u)
        assert same(compiled, play(rollout.py_func, problem, cdf, u))
        h, s, a = rng.integers([5, 4, 3])
        for function in (draw_reward, draw_next):
            args = (problem.truth, h, s, a, u[0])
            assert function(*args) == function.py_func(*args)


# ---- one draw -----------------------------------------------------------------------------------


@st.composite
def sparse_laws(draw_):
    weights = draw_(
        st.lists(st.sampled_from([0.0, 0.0, 1e-12, 0.1, 1.0, 3.0]), min_size=1, max_size=9)
    )
    weights[draw_(st.integers(0, len(weights) - 1))] += 1.0
    return np.array(weights) / sum(weights)


@settings(max_examples=100, deadline=None)
@given(sparse_laws(), st.floats(0, LARGEST))
def test_a_draw_inverts_the_cumulative_law(law, u):
    cdf = cumulative(law)
    assert cdf[-1] == 1.0
    expected = np.searchsorted(cdf, u, side="right")
    assert draw(cdf, u) == draw.py_func(cdf, u) == expected
    assert law[expected] > 0


@settings(max_examples=100, deadline=None)
@given(sparse_laws())
def test_impossible_states_are_never_drawn_at_the_edges(law):
    cdf = cumulative(law)
    assert draw(cdf, 0.0) == np.flatnonzero(law)[0]
    assert draw(cdf, LARGEST) <= np.flatnonzero(law)[-1]
    for u in [0.0, LARGEST, *cdf[:-1], *np.nextafter(cdf, 0.0)]:
        if 0.0 <= u < 1.0:
            assert law[draw(cdf, u)] > 0


def test_each_state_has_its_share_of_the_unit_interval():
    law = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    grid = (np.arange(4000) + 0.5) / 4000
    counts = np.bincount([draw(cumulative(law), u) for u in grid], minlength=6)
    assert counts.tolist() == [0, 1000, 0, 2000, 1000, 0]


def test_cumulative_laws_end_in_one_even_if_the_sum_does_not():
    law = np.full(10, 0.1)
    assert np.cumsum(law)[-1] != 1.0
    assert cumulative(law)[-1] == 1.0
    assert draw(cumulative(law), LARGEST) == 9


@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0])
def test_bernoulli_rewards_pay_one_below_the_mean(mean):
    truth = TabularMDP([[[1.0]]], [[mean]], 1, rewards="bernoulli").truth
    for u in (0.0, 0.2, 0.3, 0.4, LARGEST):
        assert draw_reward(truth, 0, 0, 0, u) == float(u < mean)
    pays = TabularMDP([[[1.0]]], [[mean]], 1).truth
    assert {draw_reward(pays, 0, 0, 0, u) for u in (0.0, 0.5, LARGEST)} == {mean}


# ---- one episode --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tabular", "stochastic"])
@pytest.mark.parametrize("rewards", ["deterministic", "bernoulli"])
def test_an_episode_uses_a_fixed_number_of_uniforms(kind, rewards):
    problem = random_problem(0, rewards)
    policy = {
        "tabular": TabularPolicy(np.ones((5, 4), dtype=int)),
        "stochastic": StochasticPolicy(np.full((5, 4, 3), 1 / 3)),
    }[kind]
    assert uniforms_per_episode(5) == 16
    rng, reference = np.random.default_rng(7), np.random.default_rng(7)
    for _ in range(3):
        problem.rollout(policy, rng)
        reference.random(16)
        assert rng.bit_generator.state == reference.bit_generator.state


def test_an_episode_follows_its_uniforms_in_the_stated_order():
    problem = random_problem(1, "bernoulli")
    policy = np.random.default_rng(1).integers(3, size=(5, 4))
    u = np.random.default_rng(2).random(16)
    total, states, actions, rewards = play(rollout, problem, policy, u)
    s = np.searchsorted(np.cumsum(problem.initial), u[0], side="right")
    for h in range(5):
        assert states[h] == s
        assert actions[h] == policy[h, s]
        assert rewards[h] == (u[3 * h + 2] < problem.R[h, s, policy[h, s]])
        s = np.searchsorted(np.cumsum(problem.P[h, s, policy[h, s]]), u[3 * h + 3], side="right")
    assert states[5] == s and total == rewards.sum()


def test_action_uniforms_matter_to_stochastic_policies_only():
    problem = random_problem(1)
    policy = np.random.default_rng(1).integers(3, size=(5, 4))
    sure = cumulative(np.eye(3)[policy])
    uniform = cumulative(np.full((5, 4, 3), 1 / 3))
    u = np.random.default_rng(2).random(16)
    other = u.copy()
    other[1::3] = 1 - other[1::3]
    expected = play(rollout, problem, policy, u)
    assert same(expected, play(rollout, problem, policy, other))
    assert same(expected, play(rollout, problem, sure, u))  # common random numbers
    _, _, actions, _ = play(rollout, problem, uniform, u)
    assert actions.tolist() == [int(3 * x) for x in u[1::3]]


@pytest.mark.parametrize("u", [0.0, LARGEST])
@pytest.mark.parametrize("seed", range(6))
def test_extreme_uniforms_give_possible_episodes(seed, u):
    problem = random_problem(seed)
    policy = np.random.default_rng(seed).integers(3, size=(5, 4))
    _, states, actions, rewards = play(rollout, problem, policy, np.full(16, u))
    assert problem.initial[states[0]] > 0
    for h in range(5):
        g = h if len(problem.P) > 1 else 0
        assert problem.P[g, states[h], actions[h], states[h + 1]] > 0
        assert rewards[h] == problem.R[g, states[h], actions[h]]
