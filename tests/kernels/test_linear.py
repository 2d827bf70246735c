"""Kernels of linear regression against numpy."""

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public.lsvi import factorise, feature_widths, optimistic_values, solve_stage
from tacit.kernels.raw.linear_sums import noisy_answer, weighted_regression

RNG = np.random.default_rng(6)
S, A, D = 3, 2, 4
H = 2
PHI = RNG.normal(size=(S, A, D))


def regularised() -> tuple[Array, Array, Array]:
    """Positive definite matrices [H, d, d], their factors, and features [S A, d]."""
    rows = RNG.normal(size=(H, 9, D))
    lam = np.swapaxes(rows, 1, 2) @ rows
    factors = np.full_like(lam, np.nan)
    factorise(lam, 1e-9, factors)
    return lam, factors, PHI.reshape(S * A, D)


def test_weighted_regression_is_a_linear_function_of_the_tables() -> None:
    table, reward = RNG.integers(0, 99, (S, A, S)), RNG.integers(0, 99, (S, A))
    values, out = RNG.normal(size=S), np.full(D, np.nan)
    for rewarded in (True, False):
        weighted_regression(table, reward, PHI, values, rewarded, out)
        per_pair = table @ values + (reward if rewarded else 0)
        assert np.allclose(out, np.einsum("sa,sad->d", per_pair, PHI), rtol=1e-12)


def test_an_answered_stage_is_cut_at_both_ends() -> None:
    lam, factors, phi = regularised()
    answer, excess, widths = RNG.normal(size=D), RNG.random((H, D)), RNG.random((H, S * A))
    Q, V = np.full((H, S, A), np.nan), np.empty(S)
    own = np.empty(D)
    solve_stage(factors, 1, 9 * answer - 1.5 * excess[1], own)
    optimistic_values(phi, own, 1.5, widths[1], 0.7, 2.0, Q[1], V)
    w = np.linalg.solve(lam[1], 9 * answer - 1.5 * excess[1])
    raw = 1.5 + phi @ w + 0.7 * widths[1]
    expected = np.clip(raw, 0.0, 2.0).reshape(S, A)
    assert np.allclose(Q[1], expected) and np.array_equal(V, Q[1].max(axis=1))
    assert np.isnan(Q[0]).all()
    assert raw.min() < 0.0 and raw.max() > 2.0


def test_widths_are_lengths_in_the_inverse() -> None:
    lam, factors, phi = regularised()
    widths = np.full((H, S * A), np.nan)
    feature_widths(factors, phi, widths)
    squares = np.einsum("pi,hij,pj->hp", phi, np.linalg.inv(lam), phi)
    assert np.allclose(widths**2, squares, rtol=1e-12)


def test_an_answer_is_clipped_put_on_the_grid_and_noisy() -> None:
    table, reward = RNG.integers(0, 99, (H, S, A, S)), RNG.integers(0, 99, (H, S, A))
    noise, out = RNG.integers(-(2**30), 2**30, D), np.full(D, np.nan)
    values = np.array([np.nan, 7.0, 1.25])
    noisy_answer(table, reward, PHI, values, 1, 3.0, 0.5, True, noise, out)
    per_pair = table[1] @ (np.array([0.0, 3.0, 1.25]) - 0.5) + reward[1]
    exact = np.rint(np.einsum("sa,sad->d", per_pair, PHI))
    assert np.array_equal(out, (exact + noise) * 2.0**-24)


def test_answers_beyond_32_bits_stay_whole() -> None:
    """A million people are 2^44 steps of the grid."""
    table, reward = np.full((1, S, A, S), 2**40), np.zeros((1, S, A), dtype=np.int64)
    noise, out = np.array([0, 1, -1, 2**40]), np.full(D, np.nan)
    ones = np.ones((S, A, D))
    noisy_answer(table, reward, ones, np.ones(S), 0, 1.0, 0.0, False, noise, out)
    assert out.tolist() == ((S * A * S * 2**40 + noise) * 2.0**-24).tolist()
