import math

import numpy as np
import pytest
from scipy import stats

from tacit.auditing.bounds import (
    clopper_pearson_upper,
    delta_from_rates,
    epsilon_from_rates,
    error_rates_upper,
    mu_from_rates,
    per_look,
)
from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_delta, gaussian_epsilon

RATES = np.array([1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.8, 0.999])


@pytest.mark.parametrize("trials", [1, 7, 100, 20_000, 1_000_000])
@pytest.mark.parametrize("beta", [0.3, 0.025, 1e-6])
def test_clopper_pearson_equals_scipy_on_both_sides(trials: int, beta: float) -> None:
    for count in {0, 1, trials // 3, trials - 1, trials}:
        exact = stats.binomtest(count, trials).proportion_ci(1 - 2 * beta, method="exact")
        upper = float(clopper_pearson_upper(count, trials, beta))
        lower = 1 - float(clopper_pearson_upper(trials - count, trials, beta))
        assert upper == pytest.approx(exact.high, rel=1e-9)
        assert lower == pytest.approx(exact.low, rel=1e-6, abs=1e-12)


def test_clopper_pearson_covers_every_probability_at_every_count() -> None:
    counts = np.arange(31)
    for beta in (0.2, 0.05, 0.001):
        upper = clopper_pearson_upper(counts, 30, beta)
        for p in np.linspace(0.001, 0.999, 500):
            missed = stats.binom.pmf(counts[upper < p], 30, p).sum()
            assert missed <= beta * (1 + 1e-9), (beta, p)


def test_clopper_pearson_is_not_wider_than_it_must_be() -> None:
    # right at the bound the failure probability is all used up
    for count in (0, 3, 17):
        upper = float(clopper_pearson_upper(count, 30, 0.05))
        assert stats.binom.cdf(count, 30, upper) == pytest.approx(0.05, rel=1e-9)


def test_both_error_rates_share_the_failure_probability() -> None:
    fpr, fnr = error_rates_upper(3, 40, 1000, 0.05)
    assert fpr == clopper_pearson_upper(3, 1000, 0.025)
    assert fnr == clopper_pearson_upper(40, 1000, 0.025)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, 20.0])
def test_randomized_response_has_its_own_epsilon(epsilon: float) -> None:
    lie = 1 / (1 + math.exp(epsilon))
    assert epsilon_from_rates(lie, lie, 0.0) == pytest.approx(epsilon, abs=1e-12)
    assert delta_from_rates(lie, lie, epsilon) == pytest.approx(0.0, abs=1e-12)


def test_epsilon_and_delta_are_inverse_to_each_other() -> None:
    for delta in (0.0, 1e-5, 0.1):
        for fpr in RATES:
            for fnr in RATES[RATES < 1 - delta - fpr]:  # a test better than guessing
                epsilon = float(epsilon_from_rates(fpr, fnr, delta))
                assert epsilon > 0
                assert delta_from_rates(fpr, fnr, epsilon) == pytest.approx(delta, abs=1e-12)


def test_larger_error_rates_never_show_more() -> None:
    fpr, fnr = np.meshgrid(RATES, RATES, indexing="ij")
    for shown in (
        epsilon_from_rates(fpr, fnr, 1e-5),
        delta_from_rates(fpr, fnr, 1.0),
        mu_from_rates(fpr, fnr),
    ):
        assert (np.diff(shown, axis=0) <= 1e-12).all()
        assert (np.diff(shown, axis=1) <= 1e-12).all()


def test_no_threshold_on_a_gaussian_shows_more_than_its_exact_epsilon() -> None:
    thresholds = np.linspace(-5, 7, 2001)
    for mu in (0.3, 1.0, 3.0):
        fpr, fnr = stats.norm.sf(thresholds), stats.norm.cdf(thresholds - mu)
        assert mu_from_rates(fpr, fnr) == pytest.approx(mu, abs=1e-6)
        shown = epsilon_from_rates(fpr, fnr, 1e-5)
        true = gaussian_epsilon(mu, 1e-5)
        assert shown.max() <= true + 1e-9
        assert shown.max() == pytest.approx(true, rel=1e-3)  # and the best one shows all of it
        assert delta_from_rates(fpr, fnr, 1.0).max() == pytest.approx(
            gaussian_delta(mu, 1.0), abs=1e-5
        )


def test_error_free_and_pointless_tests() -> None:
    assert epsilon_from_rates(0.0, 0.5, 0.0) == math.inf
    assert epsilon_from_rates(1.0, 1.0, 0.0) == -math.inf
    assert epsilon_from_rates(0.0, 1.0, 0.0) == 0.0
    assert epsilon_from_rates(0.6, 0.6, 0.0) < 0
    assert delta_from_rates(0.0, 0.25, 5000.0) == 0.75
    assert delta_from_rates(0.6, 0.6, 1.0) < 0
    assert mu_from_rates(0.0, 0.5) == math.inf
    assert mu_from_rates(0.0, 1.0) == 0.0
    assert mu_from_rates(0.6, 0.6) < 0


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: clopper_pearson_upper(11, 10, 0.05), "count = 11.*<= 10"),
        (lambda: clopper_pearson_upper(-1, 10, 0.05), "count = -1"),
        (lambda: clopper_pearson_upper(np.array([0.5]), 10, 0.05), "whole numbers"),
        (lambda: clopper_pearson_upper(1, 0, 0.05), "trials = 0.*>= 1"),
        (lambda: clopper_pearson_upper(1, 10, 0.0), "beta = 0.*> 0 and < 1"),
        (lambda: clopper_pearson_upper(1, 10, 1.0), "beta = 1"),
        (lambda: per_look(0.05, 0), "looks = 0.*>= 1"),
        (lambda: per_look(1.5, 2), "beta = 1.5"),
        (lambda: epsilon_from_rates(-0.1, 0.5, 0.0), "fpr = -0.1"),
        (lambda: epsilon_from_rates(0.1, 1.5, 0.0), "fnr = 1.5"),
        (lambda: epsilon_from_rates(0.1, math.nan, 0.0), "fnr = nan"),
        (lambda: epsilon_from_rates(0.1, 0.1, 1.0), "delta = 1"),
        (lambda: delta_from_rates(0.1, 0.1, -1.0), "epsilon = -1"),
        (lambda: mu_from_rates(2.0, 0.1), "fpr = 2.0"),
    ],
)
def test_bad_input_is_named_with_its_range(call, shown: str) -> None:
    with pytest.raises(InvalidInput, match=shown):
        call()
