"""Projection, noisy posterior draws and matched weights, against plain references."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.kernels.noisy_posterior import (
    WEIGHT_STEPS,
    matched_weights,
    project,
    sample_dirichlet,
    sample_noisy_model,
)

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


def tables(seed, G, S=3, A=2, noise=0.0):
    """Counts so small that priors show, and their variances; one for all cells of a pair."""
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, 3, size=(G, S, A, 2, S)) + noise * rng.normal(size=(G, S, A, 2, S)),
        rng.integers(0, 3, size=(S, A, 2)) + noise * rng.normal(size=(S, A, 2)),
        np.full((G, S, A), noise**2),
        np.full((S, A), noise**2),
    )


def sampled(given, pooled, stages, rng, function=sample_noisy_model):
    transitions = given[0]
    G, S, A = transitions.shape[:3]
    P, R = np.full((G, S, A, S), np.nan), np.full((stages, S, A), np.nan)
    function(*given, pooled, rng, np.empty(S), P, R)
    return P, R


def mean_draw(given, pooled, stages, seed=3):
    rng = np.random.default_rng(seed)
    draws = [sampled(given, pooled, stages, rng) for _ in range(DRAWS)]
    return [np.mean(part, axis=0) for part in zip(*draws, strict=True)]


def posterior_means(given, pooled):
    """Without noise: Dirichlet(counts + 1/S) and Beta(ones + 1/2, zeros + 1/2)."""
    transitions, last = given[:2]
    rows = transitions.sum(axis=3) + 1 / transitions.shape[-1]
    rewards = transitions.sum(axis=4)
    rewards = rewards + last if pooled else np.concatenate([rewards, last[None]])
    P = rows / rows.sum(axis=-1, keepdims=True)
    return P, (rewards[..., 1] + 0.5) / (rewards.sum(axis=-1) + 1)


@pytest.mark.parametrize(("pooled", "G", "stages"), [(True, 1, 1), (False, 2, 3), (False, 1, 2)])
def test_without_noise_it_is_posterior_sampling(pooled, G, stages):
    """A draw has standard deviation below 1/2: 5 standard errors is 0.04, chance about 1e-5."""
    given = tables(4, G)
    P, R = mean_draw(given, pooled, stages)
    exact = posterior_means(given, pooled)
    assert np.abs(P - exact[0]).max() < 0.04 and np.abs(R - exact[1]).max() < 0.04
    assert np.ptp(exact[0]) > 0.15 and np.ptp(exact[1]) > 0.15


def test_without_noise_the_spread_is_that_of_the_posterior():
    given, rng = tables(4, 1), np.random.default_rng(5)
    draws = [sampled(given, True, 1, rng) for _ in range(DRAWS)]
    row = given[0][0, 1, 1].sum(axis=0) + 1 / 3
    mean = row / row.sum()
    found = np.var([P[0, 1, 1] for P, _ in draws], axis=0)
    assert found == pytest.approx(mean * (1 - mean) / (row.sum() + 1), rel=0.15)
    ones, zeros = given[0][0, 1, 1].sum(axis=1)[::-1] + given[1][1, 1][::-1] + 0.5
    found = np.var([R[0, 1, 1] for _, R in draws])
    assert found == pytest.approx(ones * zeros / (ones + zeros) ** 2 / (ones + zeros + 1), rel=0.15)


def test_a_pair_about_which_nothing_is_known_is_drawn_uniformly():
    zero = (np.zeros((1, 2, 1, 2, 2)), np.zeros((2, 1, 2)), np.zeros((1, 2, 1)), np.zeros((2, 1)))
    rng = np.random.default_rng(6)
    draws = [sampled(zero, True, 1, rng) for _ in range(DRAWS)]
    for values in ([P[0, 0, 0, 0] for P, _ in draws], [R[0, 1, 0] for _, R in draws]):
        assert np.mean(values) == pytest.approx(0.5, abs=0.03)
        assert np.var(values) == pytest.approx(1 / 12, rel=0.1)  # 6 standard errors


def test_the_noise_that_is_drawn_has_the_released_variance():
    """Counts so large that the posterior is a point: what is left is the noise of the counts.

    p(1) moves by (cell noise, twice, minus its share of the total) / N: variance
    v 2 S p (1-p) / N^2 for S = 2; the reward mean by v_r / N^2, both within 6 standard errors.
    """
    N, v, w = 1e8, 1e10, 4e10
    transitions = np.full((1, 2, 1, 2, 2), N / 4)
    given = (transitions, np.zeros((2, 1, 2)), np.full((1, 2, 1), v), np.full((2, 1), w))
    rng = np.random.default_rng(7)
    draws = [sampled(given, True, 1, rng) for _ in range(DRAWS)]
    found = np.var([P[0, 0, 0, 0] for P, _ in draws])
    assert found == pytest.approx(v / N**2 + 0.25 / N, rel=0.135)
    found = np.var([R[0, 0, 0] for _, R in draws])
    assert found == pytest.approx((2 * v + w) / 2 / N**2 + 0.25 / N, rel=0.135)


def test_at_the_last_stage_only_the_last_table_is_read():
    N, w = 1e8, 4e10
    last = np.full((2, 1, 2), N / 2)
    given = (np.zeros((1, 2, 1, 2, 2)), last, np.full((1, 2, 1), 1e30), np.full((2, 1), w))
    rng = np.random.default_rng(8)
    R = np.array([sampled(given, False, 2, rng)[1][1] for _ in range(DRAWS)])
    assert np.var(R[:, 0, 0]) == pytest.approx(w / 2 / N**2 + 0.25 / N, rel=0.135)


@pytest.mark.parametrize(("pooled", "G", "stages"), [(True, 1, 1), (False, 2, 3)])
@pytest.mark.parametrize("noise", [3.0, 1e3, 1e12])
def test_however_large_the_noise_a_draw_is_a_model(noise, pooled, G, stages):
    given, rng = tables(9, G, noise=noise), np.random.default_rng(9)
    for _ in range(50):
        P, R = sampled(given, pooled, stages, rng)
        assert P.min() >= 0.0 and np.allclose(P.sum(axis=-1), 1.0, rtol=0, atol=1e-12)
        assert 0.0 <= R.min() and R.max() <= 1.0


@pytest.mark.parametrize(("pooled", "G", "stages"), [(True, 1, 1), (False, 2, 3), (False, 1, 1)])
def test_compiled_and_plain_draws_agree(pooled, G, stages):
    given = tables(10, G, noise=5.0)
    compiled = sampled(given, pooled, stages, np.random.default_rng(1))
    plain = sampled(given, pooled, stages, np.random.default_rng(1), sample_noisy_model.py_func)
    for one, other in zip(compiled, plain, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


# ---- weights ------------------------------------------------------------------------------------


def weights(first, users, P, actions, floor=0.02, function=matched_weights):
    H, S = actions.shape
    out = np.full((H, S), -1, dtype=np.int64)
    function(np.array(first), float(users), P, actions, floor, np.full((2, S), np.nan), out)
    return out


def propagated(first, users, P, actions, floor=0.02):
    f, rows = by_sorting(np.array(first) / max(users, 1), 1.0), []
    for h in range(len(actions)):
        rows.append(np.maximum(f, floor))
        move = P[min(h, len(P) - 1)][np.arange(len(f)), actions[h]]
        f = f @ move
    return np.rint(np.array(rows) * WEIGHT_STEPS)


@pytest.mark.parametrize("G", [1, 3])
@pytest.mark.parametrize("users", [0, 50, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_the_propagated_start_law(seed, users, G):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(3, 0.3), size=(G, 3, 2))
    actions = rng.integers(2, size=(4, 3))
    first = rng.normal(size=3) * users + users / 3
    for floor in (0.02, 0.3):
        arguments = (first, users, P, actions, floor)
        found = weights(*arguments)
        assert np.array_equal(found, propagated(*arguments))
        assert np.array_equal(found, weights(*arguments, matched_weights.py_func))
    assert found.min() == round(0.3 * WEIGHT_STEPS) and found.max() <= WEIGHT_STEPS


def test_with_one_step_no_model_is_needed():
    nothing = np.full((1, 2, 1, 2), np.nan)
    found = weights([30.0, 10.0], 40, nothing, np.zeros((1, 2), dtype=np.int64))
    assert found.tolist() == [[768, 256]]
