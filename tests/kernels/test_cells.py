"""Where reports are added up, and what they estimate, against plain numpy."""

import numpy as np
import pytest

from tacit.kernels.cells import (
    CellEstimates,
    CellSums,
    Chances,
    add_hits,
    estimate_cells,
    step_reward,
    step_state,
)
from tacit.kernels.noisy_posterior import WEIGHT_STEPS

STEP, END = Chances(0.7, 0.2, 1.6), Chances(0.6, 0.1, 0.9)
SHAPES = [(3, 1), (3, 2), (2, 1), (1, 1)]  # (H, G): pooled, staged, both at H = 2, one step
S, A = 3, 2


def zero_sums(G):
    return CellSums(
        *(
            np.zeros(shape, dtype=np.int64)
            for shape in ((G, S, A, 2, S), (S, A, 2), (G, S, A), (S, A), (G, S, A), (S, A), S, 1)
        )
    )


def zero_estimates(G):
    shapes = ((G, S, A, 2, S), (S, A, 2), (G, S, A), (S, A), S)
    return CellEstimates(*(np.full(shape, np.nan) for shape in shapes))


def batches(H, seed=0):
    """Some batches: a policy, weights, and for every step hits of n users."""
    rng = np.random.default_rng(seed)
    for _ in range(4):
        policy, weights = rng.integers(A, size=(H, S)), rng.integers(1, 1025, size=(H, S))
        for h in range(H):
            cells = 2 * S if h == H - 1 else 2 * S * S
            yield h, policy, weights, rng.integers(0, 30, size=cells), int(rng.integers(0, 99))


def added(H, G, function=add_hits):
    sums = zero_sums(G)
    for h, policy, weights, hits, n in batches(H):
        function(hits, n, h, policy, weights, sums)
    return sums


def plain_sums(H, G):
    sums = zero_sums(G)
    for h, policy, weights, hits, n in batches(H):
        g = h if G > 1 else 0
        for s in range(S):
            a, w = policy[h, s], weights[h, s]
            if h == H - 1:
                sums.last[s, a] += w * hits.reshape(S, 2)[s]
                sums.last_weight[s, a] += w * n
                sums.last_square[s, a] += w**2 * n
            else:
                sums.transitions[g, s, a] += w * hits.reshape(S, 2, S)[s]
                sums.weight[g, s, a] += w * n
                sums.square[g, s, a] += w**2 * n
        if h == 0:
            sums.first[:] += hits.reshape(S, -1).sum(axis=1)
            sums.first_users[0] += n
    return sums


@pytest.mark.parametrize(("H", "G"), SHAPES)
def test_hits_are_added_where_the_policy_puts_them(H, G):
    plain = plain_sums(H, G)
    for function in (add_hits, add_hits.py_func):
        for found, expected in zip(added(H, G, function), plain, strict=True):
            assert np.array_equal(found, expected)


@pytest.mark.parametrize(("H", "G"), SHAPES)
def test_estimates_undo_the_randomization(H, G):
    sums, unit = added(H, G), 1 / WEIGHT_STEPS
    expected = CellEstimates(
        (sums.transitions - 0.2 * sums.weight[..., None, None]) * unit / 0.5,
        (sums.last - 0.1 * sums.last_weight[..., None]) * unit / 0.5,
        1.6 * sums.square * unit**2,
        0.9 * sums.last_square * unit**2,
        (sums.first - (2 * 0.1 if H == 1 else 2 * S * 0.2) * sums.first_users) / 0.5,
    )
    for function in (estimate_cells, estimate_cells.py_func):
        found = zero_estimates(G)
        function(sums, STEP, END, H == 1, found)
        for one, other in zip(found, expected, strict=True):
            assert np.allclose(one, other, rtol=1e-12, atol=1e-9)
    compiled = zero_estimates(G)
    estimate_cells(sums, STEP, END, H == 1, compiled)
    assert all(np.array_equal(a, b) for a, b in zip(compiled, found, strict=True))


def test_the_first_states_do_not_depend_on_weights():
    """Start states are counted, whatever the filter thinks of them."""
    sums, hits = zero_sums(1), np.arange(2 * S * S)
    weights, policy = np.full((2, S), 20), np.zeros((2, S), dtype=np.int64)
    add_hits(hits, 40, 0, policy, weights, sums)
    assert sums.first.tolist() == hits.reshape(S, -1).sum(axis=1).tolist()
    assert sums.first_users.tolist() == [40]
    add_hits(hits, 40, 1, policy, weights, sums)  # the last step says nothing about the start
    assert sums.first_users.tolist() == [40] and sums.last.sum() == 20 * hits[: 2 * S].sum()


def test_readers_of_a_step_agree_with_their_plain_originals():
    states, rewards = np.array([-4, 9, 1]), np.array([np.nan, 2.0, 0.5, -np.inf, np.inf])
    for h in range(6):
        assert step_state(states, h, 3) == step_state.py_func(states, h, 3)
        assert step_reward(rewards, h) == step_reward.py_func(rewards, h)
    assert [step_state(states, h, 3) for h in range(4)] == [0, 2, 1, 0]
    assert [step_reward(rewards, h) for h in range(6)] == [0, 2**24, 2**23, 0, 2**24, 0]
    small = np.array([0.4, 0.6]) / 2**24  # to the nearest step
    assert [step_reward(small, h) for h in range(2)] == [0, 1]
