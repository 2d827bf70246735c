"""Projection, noisy posterior draws and predicted occupancy, against plain references."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dense import dense
from tacit.kernels.public.posterior import (
    FULL_NOISE_SHARE,
    LESS_NOISE,
    MORE_VISITS,
    NoisyCounts,
    project,
    sample_dirichlet,
)
from tacit.kernels.public.questions import WEIGHT_STEPS

# ---- projection ---------------------------------------------------------------------------------


def projected(y, total, function=project):
    out = np.array(y, dtype=np.float64)
    function(out, total)
    return out


def by_sorting(y, total):
    """The shift from the sorted entries: the largest k for which the k-th stays positive."""
    down = np.sort(y)[::-1]
    shifts = (np.cumsum(down) - total) / np.arange(1, len(y) + 1)
    k = np.flatnonzero(down > shifts)[-1]
    return np.maximum(y - shifts[k], 0.0)


rows = st.lists(st.floats(-1e3, 1e3) | st.sampled_from([0.0, 1.0, -1.0]), min_size=1, max_size=8)


@settings(max_examples=300)
@given(rows, st.floats(1e-6, 1e3))
def test_projection_is_the_nearest_point_with_that_sum(y, total):
    y = np.array(y)
    out = projected(y, total)
    assert np.allclose(out, by_sorting(y, total), rtol=0, atol=1e-9)
    assert out.min() >= 0.0 and out.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)
    # Karush-Kuhn-Tucker: one shift where positive, at least as large a one where zero
    shift = (y - out)[out > 0]
    assert np.ptp(shift) < 1e-9 and (y[out == 0] <= shift.max() + 1e-9).all()
    assert np.allclose(projected(out, total), out, rtol=0, atol=1e-9)
    assert np.array_equal(out, projected(y, total, project.py_func))


@pytest.mark.parametrize(
    ("y", "total", "expected"),
    [
        ([3.0, 1.0], 4.0, [3.0, 1.0]),
        ([5.0, -1.0], 4.0, [4.0, 0.0]),
        ([2.0, 2.0, -1.0], 3.0, [1.5, 1.5, 0.0]),
        ([-1.0, -1.0], 1.0, [0.5, 0.5]),
        ([4.0, 1.0, -3.0], 2.0, [2.0, 0.0, 0.0]),  # the second falls only after the third
    ],
)
def test_projections_by_hand(y, total, expected):
    assert projected(y, total).tolist() == expected


@pytest.mark.parametrize(
    "y", [[1e9, -5e8, -5e8 + 6e-8], [1e9, 1e9, -2e9], [1e20], [3e15, 3e15, -6e15]]
)
def test_a_total_far_below_the_entries_survives_cancellation(y):
    for function in (project, project.py_func):
        out = projected(y, 6e-8, function)
        assert out.min() >= 0.0 and out.sum() == pytest.approx(6e-8, rel=1e-12)


# ---- draws --------------------------------------------------------------------------------------

DRAWS = 4000


def drawn_dirichlet(alpha, function=sample_dirichlet, draws=DRAWS, seed=1):
    rng, out = np.random.default_rng(seed), np.full((draws, len(alpha)), np.nan)
    for row in out:
        function(np.array(alpha), rng, row)
    return out


def test_dirichlet_draws_have_their_mean_and_variance():
    """Beyond 6 standard errors: below 1e-7 for all numbers together."""
    alpha = np.array([0.5, 3.0, 1.5])
    draws = drawn_dirichlet(alpha)
    mean, n = alpha / alpha.sum(), alpha.sum()
    variance = mean * (1 - mean) / (n + 1)
    assert np.abs(draws.mean(axis=0) - mean).max() < 6 * math.sqrt(variance.max() / DRAWS)
    assert draws.var(axis=0) == pytest.approx(variance, rel=0.15)
    assert np.allclose(draws.sum(axis=1), 1.0) and draws.min() >= 0.0


def test_a_dirichlet_that_underflows_is_one_entry_drawn_in_proportion():
    """Chances 1/4 and 3/4, within 6 standard errors (2e-9); the mean of any Dirichlet."""
    draws = drawn_dirichlet([1e-7, 3e-7, 0.0])
    assert set(draws.ravel()) == {0.0, 1.0} and (draws.sum(axis=1) == 1.0).all()
    share = draws.mean(axis=0)
    assert abs(share[1] - 0.75) < 6 * math.sqrt(0.75 * 0.25 / DRAWS) and share[2] == 0.0
    for alpha in ([1e-7, 3e-7, 0.0], [0.4, 2.0, 0.1]):
        plain = drawn_dirichlet(alpha, sample_dirichlet.py_func, draws=50)
        assert np.array_equal(plain, drawn_dirichlet(alpha, draws=50))


def tables(seed, G, E, S=3, A=2, noise=0.0):
    """Counts so small that priors show, in visits of weight 1/2, and their variances."""
    rng = np.random.default_rng(seed)
    moves, rewards = (G, S, A), (E, S, A)
    return NoisyCounts(
        moves=rng.integers(0, 3, size=(*moves, S)) / 2 + noise * rng.normal(size=(*moves, S)),
        rewards=rng.integers(0, 3, size=(*rewards, 2)) / 2 + noise * rng.normal(size=(*rewards, 2)),
        moves_variance=np.full(moves, noise**2),
        rewards_variance=np.full(rewards, noise**2),
        moves_unit=np.full(moves, 0.5),
        rewards_unit=np.full(rewards, 0.5),
    )


def sampled(given, rng, function=dense.sample_noisy_model):
    P, R = np.full_like(given.moves, np.nan), np.full_like(given.rewards_unit, np.nan)
    function(given, rng, np.empty(P.shape[-1]), P, R)
    return P, R


def wait_for(rng, wanted):
    """Take coins from the stream until the next one says full draw, or says that it is none."""
    state = rng.bit_generator.state
    while (rng.random() < FULL_NOISE_SHARE) != wanted:
        state = rng.bit_generator.state
    rng.bit_generator.state = state
    return rng


def drawn(given, wanted, count=DRAWS):
    """So many full draws, or so many of the others, as two arrays."""
    rng = np.random.default_rng(3)
    draws = [sampled(given, wait_for(rng, wanted)) for _ in range(count)]
    return [np.array(part) for part in zip(*draws, strict=True)]


KINDS_OF_DRAWS = [(True, 1.0, 1.0), (False, LESS_NOISE, MORE_VISITS)]
STAGES = [(1, 1), (2, 3), (1, 2)]


def test_the_share_of_full_draws_and_what_the_others_do():
    """Of a cell with nothing but noise: variance 1 in a tenth of the draws, less in the others.

    The variance of all draws together, within 6 standard errors.
    """
    assert (FULL_NOISE_SHARE, LESS_NOISE, MORE_VISITS) == (0.1, 0.5, 2.0)
    N, v = 1e8, 1e12
    rng = np.random.default_rng(5)
    p = np.array([sampled(large(N, v, v, 1.0), rng)[0][0, 0, 0, 0] for _ in range(DRAWS)])
    shares = FULL_NOISE_SHARE + (1 - FULL_NOISE_SHARE) * LESS_NOISE**2
    assert p.var() == pytest.approx(shares * v / 2 / N**2, rel=0.2)
    assert np.mean((p - 0.5) ** 4) / p.var() ** 2 > 3.5  # a mixture of two normal laws


@pytest.mark.parametrize(("G", "E"), STAGES)
@pytest.mark.parametrize(("wanted", "loud", "sure"), KINDS_OF_DRAWS)
def test_without_noise_it_is_posterior_sampling(wanted, loud, sure, G, E):
    """Dirichlet(visits + 1/S) and Beta(ones + 1/2, zeros + 1/2), visits counted ``sure`` times.

    A draw has standard deviation below 1/2: 5 standard errors of 1000 draws are 0.08, chance 1e-5.
    """
    given = tables(4, G, E)
    P, R = drawn(given, wanted, 1000)
    rows = sure * given.moves / 0.5 + 1 / 3
    exact = rows / rows.sum(axis=-1, keepdims=True)
    assert np.abs(P.mean(axis=0) - exact).max() < 0.08 and np.ptp(exact) > 0.15
    ones, total = sure * given.rewards[..., 1] / 0.5, sure * given.rewards.sum(axis=-1) / 0.5
    exact = (ones + 0.5) / (total + 1)
    assert np.abs(R.mean(axis=0) - exact).max() < 0.08 and np.ptp(exact) > 0.15


@pytest.mark.parametrize(("wanted", "loud", "sure"), KINDS_OF_DRAWS)
def test_without_noise_the_spread_is_that_of_the_posterior(wanted, loud, sure):
    given = tables(4, 1, 1)
    P, R = drawn(given, wanted)
    row = sure * given.moves[0, 1, 1] / 0.5 + 1 / 3
    mean = row / row.sum()
    found = P[:, 0, 1, 1].var(axis=0)
    assert found == pytest.approx(mean * (1 - mean) / (row.sum() + 1), rel=0.15)
    zeros, ones = sure * given.rewards[0, 1, 1] / 0.5 + 0.5
    found = R[:, 0, 1, 1].var()
    assert found == pytest.approx(ones * zeros / (ones + zeros) ** 2 / (ones + zeros + 1), rel=0.15)


def test_a_pair_about_which_nothing_is_known_is_drawn_uniformly():
    zero = tables(0, 1, 1, S=2, A=1)
    zero = zero._replace(moves=0 * zero.moves, rewards=0 * zero.rewards)
    for wanted in (True, False):
        P, R = drawn(zero, wanted)
        for values in (P[:, 0, 0, 0, 0], R[:, 0, 1, 0]):
            assert np.mean(values) == pytest.approx(0.5, abs=0.03)
            assert np.var(values) == pytest.approx(1 / 12, rel=0.1)  # 6 standard errors


def large(N, v, w, unit, S=2, G=1, E=1):
    """So much data that the posterior is a point."""
    return NoisyCounts(
        moves=np.full((G, S, 1, S), N / S),
        rewards=np.full((E, S, 1, 2), N / 2),
        moves_variance=np.full((G, S, 1), v),
        rewards_variance=np.full((E, S, 1), w),
        moves_unit=np.full((G, S, 1), unit),
        rewards_unit=np.full((E, S, 1), unit),
    )


@pytest.mark.parametrize("unit", [1.0, 0.1])
@pytest.mark.parametrize(("wanted", "loud", "sure"), KINDS_OF_DRAWS)
def test_the_noise_that_is_drawn_has_the_released_variance(wanted, loud, sure, unit):
    """Counts so large that the posterior is nearly a point: what is left is mostly the noise.

    p(1) = (c_1 + noise) / total moves by variance v / (2 N^2) for S = 2, as the reward does;
    within 6 standard errors.
    """
    N, v, w = 1e8, 1e10, 4e10
    P, R = drawn(large(N, v, w, unit), wanted)
    own = 0.25 * unit / (sure * N)  # of the posterior itself
    assert P[:, 0, 0, 0, 0].var() == pytest.approx(loud**2 * v / 2 / N**2 + own, rel=0.135)
    assert R[:, 0, 0, 0].var() == pytest.approx(loud**2 * w / 2 / N**2 + own, rel=0.135)


def test_every_stage_reads_its_own_table():
    given = large(1e8, 1.0, 1.0, 1.0, G=2, E=3)
    for g in range(2):
        given.moves[g, 0, 0] = np.array([1 + g, 5.0]) * 1e8
    for e in range(3):
        given.rewards[e, 1, 0] = np.array([1 + e, 5.0]) * 1e8
    P, R = drawn(given, False, 5)
    assert P[:, :, 0, 0, 0] == pytest.approx(np.array([[1 / 6, 2 / 7]] * 5), abs=1e-3)
    assert R[:, :, 1, 0] == pytest.approx(np.array([[5 / 6, 5 / 7, 5 / 8]] * 5), abs=1e-3)


@pytest.mark.parametrize(("G", "E"), [(1, 1), (2, 3)])
@pytest.mark.parametrize("noise", [3.0, 1e3, 1e12])
def test_however_large_the_noise_a_draw_is_a_model(noise, G, E):
    given, rng = tables(9, G, E, noise=noise), np.random.default_rng(9)
    for unit in (0.5, 1 / WEIGHT_STEPS):
        given.moves_unit[:] = given.rewards_unit[:] = unit
        for _ in range(30):
            P, R = sampled(given, rng)
            assert P.min() >= 0.0 and np.allclose(P.sum(axis=-1), 1.0, rtol=0, atol=1e-12)
            assert 0.0 <= R.min() and R.max() <= 1.0


@pytest.mark.parametrize(("G", "E"), STAGES)
def test_compiled_and_plain_draws_agree(G, E):
    given = tables(10, G, E, noise=5.0)
    for wanted in (True, False):
        compiled = sampled(given, wait_for(np.random.default_rng(G), wanted))
        again = wait_for(np.random.default_rng(G), wanted)
        plain = sampled(given, again, dense.sample_noisy_model.py_func)
        for one, other in zip(compiled, plain, strict=True):
            assert np.array_equal(one, other)


# ---- predictions --------------------------------------------------------------------------------


def predicted(first, users, P, actions, floor=0.02, function=dense.predict_occupancy):
    H, S = actions.shape
    f, steps = np.full((H, S), np.nan), np.full((H, S), -1, dtype=np.int64)
    function(np.array(first), float(users), P, actions, floor, f, steps)
    return f, steps


def propagated(first, users, P, actions):
    f, rows = by_sorting(np.array(first) / max(users, 1), 1.0), []
    for h in range(len(actions)):
        rows.append(f)
        move = P[min(h, len(P) - 1)][np.arange(len(f)), actions[h]]
        f = f @ move
    return np.array(rows)


@pytest.mark.parametrize("G", [1, 3])
@pytest.mark.parametrize("users", [0, 50, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_predictions_are_the_propagated_start_law(seed, users, G):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(3, 0.3), size=(G, 3, 2))
    actions = rng.integers(2, size=(4, 3))
    first = rng.normal(size=3) * users + users / 3
    exact = propagated(first, users, P, actions)
    for floor in (0.02, 0.3):
        arguments = (first, users, P, actions, floor)
        f, steps = predicted(*arguments)
        assert np.allclose(f, exact, rtol=0, atol=1e-12)
        assert np.array_equal(steps, np.rint(np.maximum(f, floor) * WEIGHT_STEPS))
        plain = predicted(*arguments, dense.predict_occupancy.py_func)
        assert np.array_equal(f, plain[0]) and np.array_equal(steps, plain[1])
    assert steps.min() == round(0.3 * WEIGHT_STEPS) and steps.max() <= WEIGHT_STEPS


def test_with_one_step_no_model_is_needed():
    nothing = np.full((1, 2, 1, 2), np.nan)
    f, steps = predicted([30.0, 10.0], 40, nothing, np.zeros((1, 2), dtype=np.int64))
    assert f.tolist() == [[0.75, 0.25]]
    assert steps.tolist() == [[3 * WEIGHT_STEPS // 4, WEIGHT_STEPS // 4]]
