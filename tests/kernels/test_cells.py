"""Where reports are added up, and what they estimate, against plain numpy."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dense import dense
from tacit.kernels.public.posterior import NoisyCounts
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP, WEIGHT_STEPS, Weighing
from tacit.kernels.raw.cells import (
    CellSums,
    Chances,
    cell_index,
    step_reward,
    step_state,
    unbiased,
    visit_weight,
)

ORACLES = Chances(0.7, 0.2, 1.6), Chances(0.55, 0.15, 1.2), Chances(0.6, 0.1, 0.9)
WEIGHING = Weighing((3.2, 1.2), (4.8, 0.9), 1.15)
SHAPES = [(3, 1, 1), (3, 2, 3), (2, 1, 1), (2, 1, 2), (1, 1, 1)]
"""(H, G, G'): pooled, staged, both at H = 2, one step."""
A = 2


def zero_sums(S, G, E):
    moves, rewards = (2, G, S, A), (2, E, S, A)
    shapes = ((*moves, S), (*rewards, 2), *(moves, rewards) * 3, (KINDS, S), (KINDS,))
    return CellSums(*(np.zeros(shape, dtype=np.int64) for shape in shapes))


def no_estimates(S, G, E):
    moves, rewards = (G, S, A), (E, S, A)
    shapes = ((*moves, S), (*rewards, 2), moves, rewards, moves, rewards)
    return NoisyCounts(*(np.full(shape, np.nan) for shape in shapes)), np.full(S, np.nan)


def batches(H, S, seed=0):
    """Some batches: a policy, chances, and for every question hits of n users."""
    rng = np.random.default_rng(seed)
    for _ in range(4):
        policy = rng.integers(A, size=(H, S))
        occupancy = rng.integers(1, WEIGHT_STEPS + 1, size=(H, S))
        for h, kind in itertools.product(range(H), range(KINDS)):
            if kind == REWARD or h < H - 1:
                cells = (2 * S * S, max(S * S, 2), 2 * S)[kind]
                hits, n = rng.integers(0, 30, size=cells), int(rng.integers(30, 99))
                yield hits, n, kind, h, policy, occupancy


def added(H, S, G, E, function=dense.add_hits):
    sums = zero_sums(S, G, E)
    for batch in batches(H, S):
        function(*batch, WEIGHING, sums)
    return sums


def plain_weight(occupancy, noise):
    d = occupancy / WEIGHT_STEPS
    return int(WEIGHING.most * d / (d / 4 + noise) * WEIGHT_STEPS + 0.5)


def plain_sums(H, S, G, E):
    """Hits as a table of (s, rho, s') with the axes that were asked for, then summed."""
    sums = zero_sums(S, G, E)
    for hits, n, kind, h, policy, occupancy in batches(H, S):
        shape = {STEP: (S, 2, S), MOVE: (S, 1, S), REWARD: (S, 2, 1)}[kind]
        table, source = hits[: np.prod(shape)].reshape(shape), min(kind, 1)
        for s in range(S):
            a = policy[h, s]
            if kind != REWARD:
                g, w = h if G > 1 else 0, plain_weight(occupancy[h, s], WEIGHING.moves[source])
                sums.moves[source, g, s, a] += w * table[s].sum(axis=0)
                sums.moves_weight[source, g, s, a] += w * n
                sums.moves_square[source, g, s, a] += w**2 * n
                sums.moves_seen[source, g, s, a] += w**2 * table[s].sum()
            if kind != MOVE:
                g, w = h if E > 1 else 0, plain_weight(occupancy[h, s], WEIGHING.rewards[source])
                sums.rewards[source, g, s, a] += w * table[s].sum(axis=1)
                sums.rewards_weight[source, g, s, a] += w * n
                sums.rewards_square[source, g, s, a] += w**2 * n
                sums.rewards_seen[source, g, s, a] += w**2 * table[s].sum()
            if h == 0:
                sums.first[kind, s] += table[s].sum()
        if h == 0:
            sums.first_users[kind] += n
    return sums


@pytest.mark.parametrize("S", [1, 3])
@pytest.mark.parametrize(("H", "G", "E"), SHAPES)
def test_hits_are_added_where_the_policy_puts_them(H, G, E, S):
    plain = plain_sums(H, S, G, E)
    for function in (dense.add_hits, dense.add_hits.py_func):
        for found, expected in zip(added(H, S, G, E, function), plain, strict=True):
            assert np.array_equal(found, expected)


def plain_estimates(sums, S):
    """(hits - q n cells) / (p - q), summed over who was asked; a cell is 2, 1, S or 1 of theirs."""
    unit = 1 / WEIGHT_STEPS
    found = []
    for name, cells, of in (("moves", (2, 1), S), ("rewards", (S, 1), 2)):
        hits, weight, square, seen = (
            getattr(sums, name + part) for part in ("", "_weight", "_square", "_seen")
        )
        counts, variance, visits = 0.0, 0.0, 0.0
        for source, oracle in enumerate((ORACLES[STEP], ORACLES[MOVE if of == S else REWARD])):
            p, q, v = oracle
            c = cells[source]
            counts = counts + (hits[source] - q * c * weight[source][..., None]) * unit / (p - q)
            variance = variance + c * v * square[source] * unit**2
            visits = visits + (seen[source] - q * c * of * square[source]) * unit**2 / (p - q)
        total = counts.sum(axis=-1)
        weights, squares = weight.sum(axis=0) * unit, square.sum(axis=0) * unit**2
        least = np.divide(squares, weights, out=np.ones_like(weights), where=weights > 0)
        ratio = np.divide(visits, total, out=np.zeros_like(total), where=total > 0)
        found.append((counts, variance, np.clip(ratio, least, 1.0)))
    first = sum(
        (sums.first[kind] - oracle.q * cells * sums.first_users[kind]) / (oracle.p - oracle.q)
        for kind, (oracle, cells) in enumerate(zip(ORACLES, (2 * S, S, 2), strict=True))
    )
    return NoisyCounts(*(part for pair in zip(*found, strict=True) for part in pair)), first


@pytest.mark.parametrize("S", [1, 3])
@pytest.mark.parametrize(("H", "G", "E"), SHAPES)
def test_estimates_undo_the_randomization(H, G, E, S):
    sums = added(H, S, G, E)
    expected, starts = plain_estimates(sums, S)
    results = []
    for function in (dense.estimate_cells, dense.estimate_cells.py_func):
        found, first = no_estimates(S, G, E)
        function(sums, *ORACLES, found, first)
        for one, other in zip((*found, first), (*expected, starts), strict=True):
            assert np.allclose(one, other, rtol=1e-12, atol=1e-9)
        results.append((*found, first))
    for compiled, plain in zip(*results, strict=True):
        assert np.array_equal(compiled, plain)
    assert expected.moves_unit.min() > 0.0 and expected.rewards_unit.max() <= 1.0


def test_about_whom_nobody_was_asked_nothing_is_said():
    found, first = no_estimates(3, 1, 1)
    dense.estimate_cells(zero_sums(3, 1, 1), *ORACLES, found, first)
    assert not any(part.any() for part in (*found[:4], first))
    assert (found.moves_unit == 1.0).all() and (found.rewards_unit == 1.0).all()


def test_users_who_report_the_truth_are_counted_by_their_weight():
    """p = 1, q = 0, steps met with chance 1/4 and 1: the counts and the weight of their visits."""
    honest, S = Chances(1.0, 0.0, 0.0), 2
    weighing, sums = Weighing((1.0, 0.5), (2.0, 0.5), 0.75), zero_sums(S, 1, 1)
    policy = np.zeros((3, S), dtype=np.int64)
    occupancy = np.array([[1.0, 0.25], [0.25, 1.0], [1.0, 1.0]]) * WEIGHT_STEPS
    hits = np.array([20, 60, 0, 20])  # (0, 0), (0, 1), (1, 0), (1, 1)
    dense.add_hits(hits, 100, MOVE, 0, policy, occupancy.astype(np.int64), weighing, sums)
    dense.add_hits(
        hits[::-1].copy(), 100, MOVE, 1, policy, occupancy.astype(np.int64), weighing, sums
    )
    found, first = no_estimates(S, 1, 1)
    dense.estimate_cells(sums, honest, honest, honest, found, first)
    full, quarter = 0.75 / 0.75, 0.75 * 0.25 / (0.0625 + 0.5)  # 1 and 1/3
    w = np.rint(quarter * WEIGHT_STEPS) / WEIGHT_STEPS
    assert found.moves[0, 0, 0] == pytest.approx([20 * full + 20 * w, 60 * full + 0 * w])
    assert found.moves[0, 1, 0] == pytest.approx([0 * w + 60 * full, 20 * w + 20 * full])
    assert found.moves_unit[0, 0, 0] == pytest.approx((80 + 20 * w**2) / (80 + 20 * w))
    assert first.tolist() == [80.0, 20.0] and not found.rewards.any()


# ---- the weight of a visit ----------------------------------------------------------------------


def test_an_estimate_takes_the_expected_hits_away():
    for function in (unbiased, unbiased.py_func):
        assert function(70.0, 100.0, 3, Chances(0.6, 0.1, 0.9)) == pytest.approx(80.0)


numbers = st.floats(-1e12, 1e12) | st.sampled_from([0.0, 5e-324, -5e-324])


@settings(max_examples=300, deadline=None)
@given(numbers, numbers, st.lists(st.integers(1, WEIGHT_STEPS), max_size=6))
def test_the_weight_of_a_visit_is_bounded_by_public_numbers(seen, total, steps):
    """Whatever noise does: at least the average over reports, at most 1, and never 0."""
    w = np.array(steps) / WEIGHT_STEPS
    square, weight = float((w**2).sum()), float(w.sum())
    found = visit_weight(seen, total, square, weight)
    least = square / weight if steps else 1.0
    assert 0.0 < least <= found <= 1.0
    assert found == visit_weight.py_func(seen, total, square, weight)
    if total <= 0.0:
        assert found == least


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, WEIGHT_STEPS), st.integers(1, 50), st.floats(0, 1)),
        min_size=1,
        max_size=6,
    )
)
def test_where_visits_are_as_likely_as_predicted_the_bound_changes_nothing(reports):
    """Chances that rise with the weights: the average over visits is above that over reports."""
    reports = [
        (w / WEIGHT_STEPS, n, d)
        for (w, n, _), d in zip(
            sorted(reports), sorted(0.01 + d for _, _, d in reports), strict=True
        )
    ]
    seen, total = (sum(w**k * n * d for w, n, d in reports) for k in (2, 1))
    square, weight = (sum(w**k * n for w, n, _ in reports) for k in (2, 1))
    found = visit_weight(seen, total, float(square), float(weight))
    assert found == pytest.approx(seen / total, rel=1e-12)


def test_the_weight_of_a_visit_by_hand():
    assert visit_weight(3.0, 4.0, 1.0, 2.0) == 0.75
    assert visit_weight(1.0, 4.0, 1.0, 2.0) == 0.5  # the bound
    assert visit_weight(9.0, 4.0, 1.0, 2.0) == 1.0
    assert visit_weight(1.0, -4.0, 1.0, 2.0) == 0.5
    assert visit_weight(0.0, 0.0, 0.0, 0.0) == 1.0


# ---- cells --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", range(KINDS))
def test_the_first_states_do_not_depend_on_weights(kind):
    """Start states are counted, whatever the filter thinks of them."""
    S = 3
    sums, hits = zero_sums(S, 1, 1), np.arange((2 * S * S, S * S, 2 * S)[kind])
    occupancy, policy = np.full((2, S), 20), np.zeros((2, S), dtype=np.int64)
    dense.add_hits(hits, 40, kind, 0, policy, occupancy, WEIGHING, sums)
    assert sums.first[kind].tolist() == hits.reshape(S, -1).sum(axis=1).tolist()
    assert sums.first_users[kind] == sums.first_users.sum() == 40
    before = sums.first.copy()
    dense.add_hits(
        hits, 40, kind, 1, policy, occupancy, WEIGHING, sums
    )  # says nothing about the start
    assert sums.first_users.sum() == 40 and np.array_equal(sums.first, before)


def test_readers_of_a_step_agree_with_their_plain_originals():
    states, rewards = np.array([-4, 9, 1]), np.array([np.nan, 2.0, 0.5, -np.inf, np.inf])
    for h in range(6):
        assert step_state(states, h, 3) == step_state.py_func(states, h, 3)
        assert step_reward(rewards, h) == step_reward.py_func(rewards, h)
    assert [step_state(states, h, 3) for h in range(4)] == [0, 2, 1, 0]
    assert [step_reward(rewards, h) for h in range(6)] == [0, 2**24, 2**23, 0, 2**24, 0]
    small = np.array([0.4, 0.6]) / 2**24  # to the nearest step
    assert [step_reward(small, h) for h in range(2)] == [0, 1]


def test_compiled_and_plain_cells_have_the_same_number():
    for cell in itertools.product(range(KINDS), range(3), range(2), range(3)):
        assert cell_index(*cell, 3) == cell_index.py_func(*cell, 3)
