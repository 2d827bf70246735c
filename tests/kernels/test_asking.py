"""What is asked next, against plain numpy: stakes, and shares in proportion to what is learned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dense import dense
from tacit.kernels.public.posterior import NoisyCounts
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP, Weighing
from tacit.kernels.public.tacit_local import EVEN_SHARE, USUAL_REWARD_VARIANCE, remaining_variance

A = 2
CASES = [(4, 3, 1, 1), (3, 3, 2, 3), (2, 2, 1, 2), (2, 2, 1, 1), (1, 3, 1, 1), (3, 1, 1, 1)]
"""(H, S, G, G')."""
WEIGHING = Weighing((3.2, 1.2), (4.8, 0.9), 1.15)


def situation(seed, H, S, G, E, noise=5.0):
    """Noisy counts of which some are negative, a plan and its occupancy; state 0 is never met."""
    rng = np.random.default_rng(seed)
    counts = NoisyCounts(
        moves=rng.normal(10, 15, size=(G, S, A, S)),
        rewards=rng.normal(10, 15, size=(E, S, A, 2)),
        moves_variance=noise * rng.random((G, S, A)),
        rewards_variance=noise * rng.random((E, S, A)),
        moves_unit=rng.uniform(0.1, 1, size=(G, S, A)),
        rewards_unit=rng.uniform(0.1, 1, size=(E, S, A)),
    )
    f = rng.dirichlet(np.ones(S), size=H)
    if S > 1:
        f[0] = np.eye(S)[1]
    P, V = rng.dirichlet(np.ones(S), size=(G, S, A)), rng.random((H + 1, S))
    return counts, f, P, V, rng.integers(A, size=(H, S))


def staked(given, function=dense.stakes):
    counts = given[0]
    moves = np.full(counts.moves_unit.shape, np.nan)
    rewards = np.full(counts.rewards_unit.shape, np.nan)
    function(*given, moves, rewards)
    return moves, rewards


def left_over(counts, variance):
    """Prior variance 1/4, and a count N p with that variance: what is left of it."""
    return 1 / (4 + counts**2 / (variance + 1e-12))


def plain_stakes(counts, f, P, V, policy):
    (H, S), G, E = policy.shape, len(counts.moves), len(counts.rewards)
    moves, rewards = np.zeros((G, S, A)), np.zeros((E, S, A))
    for h in range(H):
        g, e = min(h, G - 1), min(h, E - 1)
        for s in range(S):
            a = policy[h, s]
            rewards[e, s, a] += f[h, s]
            if h < H - 1:
                moves[g, s, a] += f[h, s] * np.linalg.norm(V[h + 1] - P[g, s, a] @ V[h + 1])
    n, m = (np.maximum(x.sum(axis=-1), 0.0) for x in counts[:2])
    moves *= left_over(n, counts.moves_variance + counts.moves_unit * n / S)
    rewards *= left_over(m, counts.rewards_variance + 0.1 * counts.rewards_unit * m)
    return moves**2, rewards**2


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_stakes_are_those_of_the_plain_formula(seed, case):
    given = situation(seed, *case)
    expected, results = plain_stakes(*given), []
    for function in (dense.stakes, dense.stakes.py_func):
        results.append(staked(given, function))
        for found, exact in zip(results[-1], expected, strict=True):
            assert np.allclose(found, exact, rtol=1e-9, atol=1e-15)
    assert all(np.array_equal(one, two) for one, two in zip(*results, strict=True))
    assert USUAL_REWARD_VARIANCE == 0.1


def test_what_remains_is_the_prior_variance_and_falls_with_what_is_known():
    assert remaining_variance(0.0, 1.0) == pytest.approx(0.25) == remaining_variance(0.0, 0.0)
    assert (
        remaining_variance(10.0, 5.0)
        == pytest.approx(1 / (4 + 20))
        == remaining_variance.py_func(10.0, 5.0)
    )
    assert remaining_variance(1e6, 0.0) < 1e-20


def test_a_law_without_consequences_is_not_at_stake():
    """Equal next values: nobody needs to know where one goes; unmet states: nobody needs them."""
    counts, f, P, V, policy = situation(1, 4, 3, 1, 1)
    moves, rewards = staked((counts, f, P, np.ones_like(V), policy))
    assert moves.max() < 1e-25 and rewards.max() > 1e-6
    f[:, 2] = 0.0
    moves, rewards = staked((counts, f, P, V, policy))
    assert not moves[:, 2].any() and not rewards[:, 2].any() and moves.any()


# ---- shares -------------------------------------------------------------------------------------


def shared(at_moves, at_rewards, f, policy, weighing=WEIGHING, function=dense.share_questions):
    asked = np.full(KINDS * len(policy), np.nan)
    function(at_moves, at_rewards, f, policy, weighing, asked)
    return asked


def plain_shares(at_moves, at_rewards, f, policy, weighing):
    H, S = policy.shape
    worth = np.zeros((H, KINDS))
    for h in range(H):
        g, e = min(h, len(at_moves) - 1), min(h, len(at_rewards) - 1)
        states = np.arange(S)
        moves, rewards = at_moves[g, states, policy[h]], at_rewards[e, states, policy[h]]
        learned = {
            STEP: tells(f[h], moves, weighing.moves[0]) + tells(f[h], rewards, weighing.rewards[0]),
            MOVE: tells(f[h], moves, weighing.moves[1]),
            REWARD: tells(f[h], rewards, weighing.rewards[1]),
        }
        for kind, gain in learned.items():
            worth[h, kind] = gain if h < H - 1 or kind == REWARD else 0.0
    total = worth.sum()
    shares = (1 - EVEN_SHARE) * worth / total if total > 0 else np.zeros_like(worth)
    for h in range(H):
        best = REWARD if h == H - 1 else np.argmax(worth[h])
        shares[h, best] += (EVEN_SHARE if total > 0 else 1.0) / H
    return shares


def tells(f, at_stake, noise):
    return (f**2 / (f / 4 + noise) * at_stake).sum()


def check_shares(asked, H):
    shares = np.diff(asked, prepend=0.0).reshape(H, KINDS)
    assert np.isfinite(asked).all() and shares.min() >= 0.0
    assert asked[-1] == pytest.approx(1.0, abs=1e-12)
    assert not shares[-1, [STEP, MOVE]].any()
    assert (shares.sum(axis=1) >= EVEN_SHARE / H - 1e-12).all()
    return shares


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_shares_are_those_of_the_plain_formula(seed, case):
    given = situation(seed, *case)
    at, f, policy = staked(given), given[1], given[4]
    asked = shared(*at, f, policy)
    shares = check_shares(asked, case[0])
    assert np.allclose(shares, plain_shares(*at, f, policy, WEIGHING), rtol=1e-9, atol=1e-13)
    assert np.array_equal(asked, shared(*at, f, policy, function=dense.share_questions.py_func))


def test_each_kind_is_asked_where_it_alone_teaches():
    """Only moves at stake, only rewards, and both where joint cells are almost free of noise."""
    f, policy = np.full((2, 2), 0.5), np.zeros((2, 2), dtype=np.int64)
    some, none = np.ones((1, 2, A)), np.zeros((1, 2, A))
    cheap = Weighing((0.01, 5.0), (0.01, 5.0), 0.26)
    for moves, rewards, weighing, kind in (
        (some, none, WEIGHING, MOVE),
        (none, some, WEIGHING, REWARD),
        (some, some, cheap, STEP),
    ):
        shares = check_shares(shared(moves, rewards, f, policy, weighing), 2)
        assert np.argmax(shares[0]) == kind and shares[0, kind] > 0.2


def test_where_nothing_is_at_stake_all_steps_are_asked_alike():
    none, f = np.zeros((1, 2, A)), np.full((3, 2), 0.5)
    shares = check_shares(shared(none, none, f, np.zeros((3, 2), dtype=np.int64)), 3)
    assert shares == pytest.approx(np.array([[1, 0, 0], [1, 0, 0], [0, 0, 1]]) / 3)


noises = st.sampled_from([1e-20, 1e-3, 1.0, 1e6])


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(CASES),
    st.sampled_from([0.0, 1e-9, 1.0, 1e12]),
    st.sampled_from([0.0, 1e-200, 1e-12, 1.0, 1e9]),
    st.tuples(noises, noises, noises, noises),
)
def test_whatever_is_released_the_shares_are_shares(seed, case, noise, size, v):
    """Nothing known or nearly everything, hardly any noise or only noise."""
    counts, f, P, V, policy = situation(seed, *case, noise=noise)
    counts = counts._replace(moves=size * counts.moves, rewards=size * counts.rewards)
    at = staked((counts, f, P, V, policy))
    assert all(np.isfinite(part).all() and part.min() >= 0.0 for part in at)
    check_shares(shared(*at, f, policy, Weighing(v[:2], v[2:], 0.25 + min(v))), case[0])
