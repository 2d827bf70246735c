"""Dynamic programming kernels: plain Python agreement, planner algebra, ties, exact recovery."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dense import dense
from tacit.kernels.public.planning import start_value

TOL = dict(rtol=0, atol=1e-12)


def random_tables(seed, H=None, S=None, A=None):
    """P [G, S, A, S] and R [G', S, A], each homogeneous or staged, and H."""
    rng = np.random.default_rng(seed)
    H, S, A = H or rng.integers(1, 5), S or rng.integers(1, 5), A or rng.integers(1, 4)
    G, stages = rng.choice([1, H]), rng.choice([1, H])
    weights = rng.random((G, S, A, S)) * (rng.random((G, S, A, S)) < 0.7) + 1e-6
    return weights / weights.sum(-1, keepdims=True), rng.random((stages, S, A)), int(H)


def plan(P, R, H, cap=np.inf, induction=dense.backward_induction):
    """Q [H, S, A] and V [H+1, S]; V starts as NaN so that an unwritten cell shows."""
    S, A = R.shape[1:]
    Q = np.array(np.broadcast_to(cap, (H, S, A)), dtype=float)
    V = np.full((H + 1, S), np.nan)
    induction(P, R, Q, V)
    return Q, V


tables = st.integers(0, 2**32 - 1).map(random_tables)
seeds = st.integers(0, 2**32 - 1)


# ---- compiled code against the plain original ---------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_kernels_equal_their_plain_originals(seed):
    P, R, H = random_tables(seed)
    S, A = R.shape[1:]
    rng = np.random.default_rng(seed)
    cap = rng.uniform(0, H, size=(H, S, A))
    Q, V = plan(P, R, H, cap)
    Q_plain, V_plain = plan(P, R, H, cap, dense.backward_induction.py_func)
    assert np.array_equal(Q, Q_plain) and np.array_equal(V, V_plain)
    tied = Q.round(0)
    chosen = []
    for function in (dense.greedy, dense.greedy.py_func):
        actions, ties = np.zeros((H, S), dtype=np.int64), np.random.default_rng(seed)
        chosen.append((function(tied, ties, actions), actions.tolist(), ties.random()))
    assert chosen[0] == chosen[1]
    actions = rng.integers(A, size=(H, S))
    pi = rng.dirichlet(np.ones(A), size=(H, S)).round(1)  # with zeros
    for function, policy in ((dense.policy_values, actions), (dense.stochastic_policy_values, pi)):
        compiled, plain = np.full((2, H + 1, S), np.nan)
        function(P, R, policy, compiled)
        function.py_func(P, R, policy, plain)
        assert np.array_equal(compiled, plain)
    law = rng.dirichlet(np.ones(S))
    assert start_value(law, V) == start_value.py_func(law, V) == pytest.approx(law @ V[0])


# ---- algebra ------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(tables)
def test_backward_induction_is_bellmans_recursion(problem):
    P, R, H = problem
    Q, V = plan(P, R, H)
    assert (V[H] == 0).all()
    for h in range(H):
        p, r = P[h if len(P) > 1 else 0], R[h if len(R) > 1 else 0]
        np.testing.assert_allclose(Q[h], r + p @ V[h + 1], **TOL)
        assert np.array_equal(V[h], Q[h].max(-1))


@settings(max_examples=40, deadline=None)
@given(tables, seeds)
def test_raising_rewards_never_lowers_a_value(problem, seed):
    P, R, H = problem
    rng = np.random.default_rng(seed)
    raised = R + rng.random(R.shape) * (rng.random(R.shape) < 0.5)
    Q, V = plan(P, R, H)
    Q_raised, V_raised = plan(P, raised, H)
    assert (Q_raised >= Q).all() and (V_raised >= V).all()


@settings(max_examples=40, deadline=None)
@given(tables, seeds)
def test_raising_the_value_of_the_next_stage_never_lowers_a_value(problem, seed):
    """A larger V_{h+1} is a larger cap on Q_{h+1}: the recursion is monotone in it."""
    P, R, H = problem
    rng = np.random.default_rng(seed)
    cap = rng.uniform(0, H, size=(H, *R.shape[1:]))
    higher = cap + rng.random(cap.shape) * (rng.random(cap.shape) < 0.5)
    Q, V = plan(P, R, H, cap)
    Q_higher, V_higher = plan(P, R, H, higher)
    assert (Q_higher >= Q).all() and (V_higher >= V).all()


@settings(max_examples=40, deadline=None)
@given(tables, seeds)
def test_values_move_at_most_by_the_rewards_left(problem, seed):
    P, R, H = problem
    other = np.random.default_rng(seed).random(R.shape)
    distance = abs(R - other).max()
    moved = abs(plan(P, R, H)[1] - plan(P, other, H)[1]).max(axis=1)
    assert (moved <= distance * (H - np.arange(H + 1)) + 1e-12).all()


@settings(max_examples=40, deadline=None)
@given(tables, st.floats(-2, 2))
def test_a_constant_on_every_reward_adds_itself_once_per_step_left(problem, c):
    P, R, H = problem
    V, shifted = plan(P, R, H)[1], plan(P, R + c, H)[1]
    steps_left = H - np.arange(H + 1)[:, None]
    np.testing.assert_allclose(shifted, V + c * steps_left, **TOL)


@settings(max_examples=40, deadline=None)
@given(tables, seeds)
def test_the_cap_holds_and_an_infinite_one_is_none(problem, seed):
    P, R, H = problem
    rng = np.random.default_rng(seed)
    cap = rng.uniform(0, H, size=(H, *R.shape[1:]))
    free, free_V = plan(P, R, H)
    capped, capped_V = plan(P, R, H, cap)
    assert (capped <= cap).all() and (capped <= free).all()
    assert np.array_equal(capped_V[:H], capped.max(-1))
    loose, loose_V = plan(P, R, H, np.full(cap.shape, float(H) + 1))
    assert np.array_equal(loose, free) and np.array_equal(loose_V, free_V)
    partly = cap.copy()  # infinite from stage h on: there nothing may change
    h = int(rng.integers(H))
    partly[h:] = np.inf
    Q, V = plan(P, R, H, partly)
    assert np.array_equal(Q[h:], free[h:]) and np.array_equal(V[h:], free_V[h:])
    again, _ = plan(P, R, H, Q)  # its own result as cap: a fixed point
    assert np.array_equal(again, Q)


@settings(max_examples=40, deadline=None)
@given(tables, seeds)
def test_greedy_on_the_optimum_earns_the_optimum(problem, seed):
    P, R, H = problem
    Q, V = plan(P, R, H)
    actions = np.zeros((H, R.shape[1]), dtype=np.int64)
    dense.greedy(Q, np.random.default_rng(seed), actions)
    earned = np.full(V.shape, np.nan)
    dense.policy_values(P, R, actions, earned)
    np.testing.assert_allclose(earned, V, rtol=0, atol=1e-10)
    earned[:] = np.nan
    dense.stochastic_policy_values(P, R, np.eye(R.shape[2])[actions], earned)
    np.testing.assert_allclose(earned, V, rtol=0, atol=1e-10)


# ---- greedy -------------------------------------------------------------------------------------


def ties_p_value(choices, tied):
    """Pearson's test that every tied action is chosen equally often."""
    counts = np.bincount(choices.ravel(), minlength=max(tied) + 1)[tied]
    return stats.chisquare(counts).pvalue if counts.sum() == choices.size else 0.0


@pytest.mark.parametrize("tied", [[0, 1], [1, 3], [0, 2, 3], [0, 1, 2, 3]])
def test_ties_are_drawn_uniformly(tied):
    """Seed fixed; over seeds each of the four checks fails with probability 1e-4."""
    Q = np.zeros((60, 100, 4))
    Q[..., tied] = 0.5
    actions = np.full((60, 100), -1)
    dense.greedy(Q, np.random.default_rng(3), actions)
    assert ties_p_value(actions, tied) > 1e-4
    assert ties_p_value(Q.argmax(-1), tied) < 1e-4  # always the first one: found
    lazy = np.tile(actions[:1], (60, 1))  # one draw per state for all stages: found
    assert ties_p_value(lazy, tied) < 1e-4


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_only_maximal_actions_are_chosen(seed):
    rng = np.random.default_rng(seed)
    Q = rng.integers(-2, 3, size=(3, 4, int(rng.integers(1, 5)))) / 4
    actions = np.full((3, 4), -1)
    assert dense.greedy(Q, rng, actions) is True
    assert np.array_equal(np.take_along_axis(Q, actions[..., None], 2)[..., 0], Q.max(-1))


def test_infinite_values_tie_like_any_others():
    """100 draws between two infinite actions miss one of them with probability 2^-99."""
    chosen = set()
    for seed in range(100):
        actions = np.zeros((1, 1), dtype=np.int64)
        Q = np.array([[[0.0, np.inf, np.inf]]])
        dense.greedy(Q, np.random.default_rng(seed), actions)
        chosen.add(int(actions[0, 0]))
    assert chosen == {1, 2}


@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
def test_ties_are_relative_and_narrow(size):
    """Up to 1e-12 of the value (absolute below 1) is a tie; ten times that is a difference."""
    width = 1e-12 * max(1.0, size)
    Q = np.full((1, 200, 2), size)
    Q[..., 1] -= 0.5 * width
    actions = np.zeros((1, 200), dtype=np.int64)
    dense.greedy(Q, np.random.default_rng(0), actions)
    assert set(actions.flat) == {0, 1}  # rounding errors do not decide
    Q[..., 1] -= 9.5 * width
    dense.greedy(Q, np.random.default_rng(0), actions)
    assert set(actions.flat) == {0}


def test_changed_tells_whether_the_policy_changed():
    Q = np.random.default_rng(0).random((3, 4, 2))
    actions, rng = np.zeros((3, 4), dtype=np.int64), np.random.default_rng(1)
    assert dense.greedy(Q, rng, actions) is True
    best = actions.copy()
    assert dense.greedy(Q, rng, actions) is False
    for h, s in np.ndindex(3, 4):
        actions[h, s] = 1 - actions[h, s]
        assert dense.greedy(Q, rng, actions) is True
        assert np.array_equal(actions, best)
    assert dense.greedy(Q, rng, actions) is False


# ---- exact recovery -----------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_a_deterministic_problem_is_recovered_from_one_visit_each(seed):
    rng = np.random.default_rng(seed)
    S, A, H = (int(n) for n in rng.integers([1, 1, 1], [5, 4, 6]))
    P = np.eye(S)[rng.integers(S, size=(1, S, A))]
    R = rng.integers(0, 257, size=(1, S, A)) / 256
    shapes = [(1, S, A), (0, S, A), (1, S, A), (1, S, A, S)]
    sums = [np.zeros(shape) for shape in shapes]
    for s, a in np.ndindex(S, A):  # one short trajectory (s, a, r, s') per pair
        parts = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        after = P[0, s, a].argmax()
        dense.add_visits(np.array([[s, after]]), np.array([[a]]), R[:, s, a : a + 1], H + 1, *parts)
        sums = [total + part for total, part in zip(sums, parts, strict=True)]
    reward, _, visits, transitions = sums
    P_hat, R_hat = np.full(P.shape, np.nan), np.full((H, S, A), np.nan)
    unknown = np.full((1, S, A), np.nan)
    dense.optimistic_model(reward / 2**24, visits, transitions, unknown, 0.0, P_hat, R_hat)
    assert np.array_equal(P_hat, P)
    assert np.array_equal(R_hat, np.repeat(R, H, axis=0))
    Q, V = plan(P_hat, R_hat, H, cap=H)
    actions = np.zeros((H, S), dtype=np.int64)
    dense.greedy(Q, rng, actions)
    earned = np.empty((H + 1, S))
    dense.policy_values(P, R, actions, earned)
    assert np.array_equal(earned, plan(P, R, H)[1]) and np.array_equal(earned, V)  # zero regret
