import math
from functools import partial

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tacit.errors import InvalidInput
from tacit.privacy import accounting
from tacit.privacy.accounting import (
    DISCRETE,
    LEAST_DELTA,
    LEAST_EPSILON,
    MOST_DELTA,
    MOST_EPSILON,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    pure_delta,
)
from tacit.privacy.charges import GaussianCharge
from tacit.privacy.filter import Budget, BudgetExhausted, PrivacyFilter


@pytest.mark.parametrize(
    ("epsilon", "delta", "multiplier"),
    [  # docs/papers/mixture_ldp.md#tight-noise
        (0.1, 0.1, 2.8469244358),
        (0.1, 1e-5, 30.7495661320),
        (1.0, 0.1, 1.0858777652),
        (1.0, 1e-5, 3.7306316348),
        (10.0, 0.1, 0.2818120721),
        (10.0, 1e-5, 0.4998886197),
    ],
)
def test_published_multipliers(epsilon: float, delta: float, multiplier: float) -> None:
    assert 1 / gaussian_mu(epsilon, delta) == pytest.approx(multiplier, rel=3e-8)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.3, 0.1), (1.0, 1.0), (3.0, 2.0), (6.0, 20.0)])
def test_delta_is_the_hockey_stick_integral(mu: float, epsilon: float) -> None:
    def excess(x: float) -> float:
        return max(0.0, stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x))

    crossing = epsilon / mu + mu / 2
    slow = integrate.quad(excess, crossing, crossing + 40, epsabs=1e-14)[0]
    assert gaussian_delta(mu, epsilon) == pytest.approx(slow, rel=1e-6, abs=1e-13)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 30), st.floats(1e-12, 0.5))
def test_calibration_errs_on_the_private_side_and_wastes_nothing(epsilon, delta) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_delta(mu * (1 + 1e-6), epsilon) > delta
    assert gaussian_epsilon(mu, delta) <= epsilon * (1 + 1e-9)
    back = gaussian_epsilon(mu, delta)
    assert back == pytest.approx(epsilon, rel=1e-5, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 30), st.floats(1e-12, 0.5))
def test_epsilon_is_never_below_the_truth(mu, delta) -> None:
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    if epsilon > 1e-6:
        assert gaussian_delta(mu, epsilon * (1 - 1e-6)) > delta


def true_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """With 120 digits: nothing cancels that anybody would notice."""
    with mpmath.workdps(120):
        mu, x = mpmath.mpf(mu), mpmath.mpf(epsilon) / mpmath.mpf(mu)
        return mpmath.ncdf(mu / 2 - x) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - x)


powers = st.floats(-300, math.log10(MOST_DELTA)) | st.floats(-12, -0.01)


@settings(max_examples=300, deadline=None)
@given(st.floats(-12, 9) | st.floats(-3, 2), powers)
def test_every_request_is_met_by_the_true_delta_to_one_part_in_a_million(log_epsilon, log_delta):
    """The whole region that is not refused, whatever cancels or underflows in it."""
    epsilon = min(max(10**log_epsilon, LEAST_EPSILON), MOST_EPSILON)
    delta = min(max(10**log_delta, LEAST_DELTA), MOST_DELTA)
    mu = gaussian_mu(epsilon, delta)
    assert true_delta(mu * (1 + DISCRETE), epsilon) <= delta < true_delta(mu * (1 + 1e-6), epsilon)
    back = gaussian_epsilon(mu * (1 + DISCRETE), delta)
    assert back <= epsilon and true_delta(mu, back) <= delta


@settings(max_examples=200, deadline=None)
@given(st.floats(-12, 3), powers)
def test_epsilon_is_never_below_the_truth_anywhere(log_mu, log_delta) -> None:
    mu, delta = 10**log_mu, max(10**log_delta, LEAST_DELTA)
    epsilon = gaussian_epsilon(mu, delta)
    assert true_delta(mu * (1 - 1e-9), epsilon) <= delta
    if epsilon > 1e-6 * mu:
        assert true_delta(mu * (1 + 1e-6), epsilon) > delta


@settings(max_examples=200, deadline=None)
@given(st.floats(-12, 2), st.floats(-12, 3))
def test_delta_is_right_where_it_can_be_and_a_bound_elsewhere(log_mu, log_epsilon) -> None:
    mu, epsilon = 10**log_mu, 10**log_epsilon
    found, true = gaussian_delta(mu, epsilon), true_delta(mu, epsilon)
    if true > 1e-300:
        assert abs(found / true - 1) < 1e-8
    else:
        assert found <= 1e-299


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (1.0, 1e-301, "delta = 1e-301"),
        (1.0, 0.9999999, "delta = 1, but .* <= 0.999999"),
        (1e-13, 1e-5, "epsilon = 1e-13"),
        (1e10, 1e-5, "epsilon = 1"),
    ],
)
def test_requests_that_could_not_be_certified_are_refused(epsilon, delta, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        gaussian_mu(epsilon, delta)
    if delta < LEAST_DELTA:
        with pytest.raises(InvalidInput, match="must be 0 or >= 1e-300"):
            gaussian_epsilon(1.0, delta)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.25, 1.0), (1.0, 4.0), (4.0, 2.0), (4.0, 30.0)])
def test_discrete_noise_on_the_coarsest_grid_is_covered_by_the_raised_mu(mu, epsilon) -> None:
    """Hockey stick of the discrete Gaussian, term by term, at 2^16 steps per standard deviation."""
    steps = 2**16
    shift = round(mu * steps)
    x = np.arange(-14 * steps, 14 * steps + shift, dtype=np.float64)
    here, there = np.exp(-((x - shift) ** 2) / 2 / steps**2), np.exp(-(x**2) / 2 / steps**2)
    delta = np.maximum(here - math.exp(epsilon) * there, 0.0).sum() / there.sum()
    assert delta <= gaussian_delta(shift / steps * (1 + DISCRETE), epsilon)
    assert delta >= gaussian_delta(shift / steps * (1 - DISCRETE), epsilon)


def test_it_agrees_with_the_privacy_loss_distribution() -> None:
    for mu in (0.2, 1.0, 2.5):
        slow = pld.from_gaussian_mechanism(1 / mu).get_epsilon_for_delta(1e-5)
        assert gaussian_epsilon(mu, 1e-5) == pytest.approx(slow, abs=2e-4)


def test_it_is_tighter_than_the_textbook_and_the_renyi_route() -> None:
    """zCDP rho = 1/2 is mu = 1: 4.38 exact, 4.73 by RDP, 5.30 by the textbook formula."""
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(dp_accounting.ZCDpEvent(0.5))
    exact = gaussian_epsilon(1.0, 1e-5)
    assert exact == pytest.approx(4.37718, abs=1e-4)
    assert accountant.get_epsilon(1e-5) == pytest.approx(4.7285, abs=1e-3)
    assert exact < accountant.get_epsilon(1e-5) < 0.5 + 2 * math.sqrt(0.5 * math.log(1e5))


def test_edges() -> None:
    assert gaussian_epsilon(0.0, 1e-5) == 0.0 and gaussian_delta(0.0, 1.0) == 0.0
    assert gaussian_epsilon(1.0, 0.0) == math.inf
    assert gaussian_epsilon(0.1, 0.1) == 0.0, "delta alone covers it"
    assert gaussian_delta(1e-3, 50.0) == 0.0
    assert gaussian_delta(40.0, 1.0) == pytest.approx(1.0)


@given(st.floats(0, 20), st.floats(0, 20))
def test_pure_delta_is_the_two_point_hockey_stick(epsilon, at) -> None:
    p = 1 / (1 + math.exp(-epsilon))
    direct = max(0.0, p - math.exp(at) / (1 + math.exp(epsilon)))
    assert pure_delta(epsilon, at) == pytest.approx(direct, abs=1e-9)
    assert np.isclose(pure_delta(epsilon, epsilon), 0.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_requests_are_refused(bad: float) -> None:
    with pytest.raises(InvalidInput, match="epsilon = "):
        gaussian_mu(bad, 1e-5)
    with pytest.raises(InvalidInput, match="delta = "):
        gaussian_mu(1.0, bad if bad != 0.0 else 1.0)


@pytest.mark.parametrize(
    ("mu", "delta"), [(1e-9, 1e-12), (1e-3, 1e-300), (1e-6, 0.4), (50.0, 1e-9)]
)
def test_extremes_are_finite_safe_and_silent(mu: float, delta: float) -> None:
    epsilon = gaussian_epsilon(mu, delta)
    assert math.isfinite(epsilon) and gaussian_delta(mu, epsilon) <= delta
    assert 0.0 <= gaussian_delta(mu, 5.0) <= 1.0


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-5, 0.1])
def test_what_is_calibrated_just_fits_the_budget_of_the_filter(epsilon, delta) -> None:
    mu, budget = gaussian_mu(epsilon, delta), Budget(epsilon, delta)
    filled = PrivacyFilter(budget)
    filled.commit(filled.reserve(GaussianCharge.of(mu, 1.0)))
    assert not filled.closed
    with pytest.raises(BudgetExhausted):
        PrivacyFilter(budget).reserve(GaussianCharge.of(1.001 * mu, 1.0))


def test_searches_begin_where_those_of_dp_accounting_end() -> None:
    rng, log_delta = np.random.default_rng(0), accounting._log_delta
    for _ in range(1000):
        epsilon, sigma = 10 ** rng.uniform(-12, 9), 10 ** rng.uniform(-9, 9)
        delta = 10 ** rng.uniform(*rng.choice([(-300, -1e-6), (-12, -0.01)]))
        with np.errstate(all="ignore"):
            theirs = (
                dp_accounting.get_sigma_gaussian(epsilon, delta),
                dp_accounting.get_epsilon_gaussian(sigma, delta),
            )
        needed = accounting._near(partial(log_delta, epsilon=epsilon), delta, 0.1)
        shown = accounting._near(partial(log_delta, sigma), delta, 0.0)
        assert (needed, shown) == theirs
