"""Kernels of linear regression against numpy."""

import numpy as np

from tacit.kernels.linear_sums import weighted_regression
from tacit.kernels.lsvi import optimistic_stage

RNG = np.random.default_rng(6)
S, A, D = 3, 2, 4
PHI = RNG.normal(size=(S, A, D))


def test_weighted_regression_is_a_linear_function_of_the_tables() -> None:
    table, reward = RNG.integers(0, 99, (S, A, S)), RNG.integers(0, 99, (S, A))
    values, out = RNG.normal(size=S), np.full(D, np.nan)
    for rewarded in (True, False):
        weighted_regression(table, reward, PHI, values, rewarded, out)
        per_pair = table @ values + (reward if rewarded else 0)
        assert np.allclose(out, np.einsum("sa,sad->d", per_pair, PHI), rtol=1e-12)


def test_an_answered_stage_is_cut_at_both_ends() -> None:
    weights, answer = RNG.normal(size=(S * A, D)), RNG.normal(size=D)
    residual, widths = RNG.random(S * A), RNG.random(S * A)
    Q, V = np.empty((S, A)), np.empty(S)
    optimistic_stage(weights, answer, 1.5, residual, widths, 0.7, 2.0, Q, V)
    raw = 1.5 + weights @ answer - 1.5 * residual + 0.7 * widths
    expected = np.clip(raw, 0.0, 2.0).reshape(S, A)
    assert np.allclose(Q, expected) and np.array_equal(V, Q.max(axis=1))
    assert raw.min() < 0.0 and raw.max() > 2.0
