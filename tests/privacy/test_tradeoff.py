"""The two numbers that people read, by closed form, by simulation, and never below the truth."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtr, ndtri

from tacit.privacy.accounting import gaussian_delta, gaussian_mu
from tacit.privacy.tradeoff import Tradeoff

DRAWS = 1_000_000
mpmath.mp.dps = 60


def pure(epsilon: float, delta: float = 0.0) -> Tradeoff:
    return Tradeoff(((epsilon, delta),))


def logs(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def close_to(share: float, chance: float) -> bool:
    """Within 5 standard deviations; false with probability below 6e-7 if the chance is right."""
    return abs(share - chance) < 5 * math.sqrt(chance * (1 - chance) / DRAWS)


@given(st.floats(0.01, 6), st.floats(0.0, 6))
def test_the_conversion_is_attained_by_randomized_response(epsilon: float, at: float) -> None:
    keep = expit(epsilon)
    exact = max(0.0, keep - math.exp(at) * (1 - keep))
    assert pure(epsilon).delta(at) == pytest.approx(exact, abs=1e-12)


@given(st.floats(0.05, 3), st.floats(0.01, 4), st.floats(0.0, 4))
def test_points_never_promise_more_than_the_gaussian_that_has_them(
    mu: float, epsilon: float, at: float
) -> None:
    stated = pure(epsilon, gaussian_delta(mu, epsilon))
    assert stated.delta(at) >= gaussian_delta(mu, at) - 1e-12
    whole = Tradeoff(stated.points, mu)
    assert whole.delta(at) == gaussian_delta(mu, at)
    assert stated.best_guess() >= whole.best_guess() and stated.found(0.01) >= whole.found(0.01)


def test_of_two_points_the_better_one_counts() -> None:
    both = Tradeoff(((4.0, 1e-9), (1.0, 1e-5)))
    assert both.delta(1.0) == 1e-5 and both.delta(5.0) == 1e-9
    assert both.best_guess() == pure(1.0, 1e-5).best_guess() < pure(4.0, 1e-9).best_guess()
    assert both.found(0.01) == pure(1.0, 1e-5).found(0.01)
    assert both.found(0.999) == pure(1.0, 1e-5).found(0.999)


def test_nothing_known_and_nothing_revealed() -> None:
    assert Tradeoff(()).best_guess() == Tradeoff(()).found(0.01) == 1.0
    for silent in (pure(0.0), Tradeoff(((0.0, 1e-5),), 0.0)):
        assert silent.best_guess() == 0.5 and silent.found(0.01) == 0.01


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-6), (4.0, 1e-3)])
def test_the_best_test_against_gaussian_noise_does_as_well_as_stated(
    epsilon: float, delta: float
) -> None:
    mu = gaussian_mu(epsilon, delta)
    curve, rng = Tradeoff(((epsilon, delta),), mu), np.random.default_rng(1)
    without, with_it = rng.standard_normal(DRAWS), mu + rng.standard_normal(DRAWS)
    right = (np.mean(without < mu / 2) + np.mean(with_it > mu / 2)) / 2
    assert curve.best_guess() == pytest.approx(float(ndtr(mu / 2)), rel=1e-9)
    assert close_to(right, curve.best_guess())
    threshold = float(-ndtri(0.01))
    assert curve.found(0.01) == pytest.approx(float(ndtr(mu - threshold)), rel=1e-9)
    assert close_to(np.mean(without > threshold), 0.01)
    assert close_to(np.mean(with_it > threshold), curve.found(0.01))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_best_test_against_randomized_response_does_as_well_as_stated(epsilon: float) -> None:
    """Below a false-alarm rate of 1 - p it accuses some of those who answer yes, above it all."""
    keep, rng = float(expit(epsilon)), np.random.default_rng(2)
    no, yes = rng.random(DRAWS) > keep, rng.random(DRAWS) < keep
    assert close_to((np.mean(~no) + np.mean(yes)) / 2, pure(epsilon).best_guess())
    assert pure(epsilon).best_guess() == pytest.approx(keep, rel=1e-9)
    some = min(1.0, 0.01 / (1 - keep))
    rest = max(0.0, (0.01 - (1 - keep)) / keep)  # of those who answer no
    coins = rng.random(DRAWS)
    accused = [np.where(answers, coins < some, coins < rest) for answers in (no, yes)]
    assert close_to(accused[0].mean(), 0.01)
    assert close_to(accused[1].mean(), pure(epsilon).found(0.01))


def exact_point(epsilon: float, delta: float, a: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    e, d, a = (mpmath.mpf(x) for x in (epsilon, delta, a))
    power = mpmath.exp(e)
    return (power + d) / (1 + power), min(power * a + d, 1 - (1 - d - a) / power, mpmath.mpf(1))


@given(
    logs(1e-8, 1e4), st.one_of(st.just(0.0), logs(1e-300, 0.1)), st.sampled_from([0.01, 0.3, 0.9])
)
def test_bounds_from_points_are_never_below_the_exact_ones(
    epsilon: float, delta: float, a: float
) -> None:
    guess, found = exact_point(epsilon, delta, a)
    stated = pure(epsilon, delta)
    assert guess <= stated.best_guess() <= min(1.0, guess * (1 + 1e-11))
    assert max(found, a) <= stated.found(a) <= min(1.0, max(found, a) * (1 + 1e-11))


@given(logs(1e-9, 200.0), st.sampled_from([0.01, 0.3]))
def test_bounds_from_mu_are_never_below_the_exact_ones(mu: float, a: float) -> None:
    curve = Tradeoff(((1.0, 1.0),), mu)
    quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(a) - 1)
    guess, found = mpmath.ncdf(mpmath.mpf(mu) / 2), mpmath.ncdf(quantile + mpmath.mpf(mu))
    assert guess <= curve.best_guess() <= min(1.0, guess * (1 + 1e-11))
    assert found <= curve.found(a) <= min(1.0, found * (1 + 1e-11))


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(1.0, 1e-5, 16), (0.1, 1e-6, 149)])
def test_odds_move_by_more_than_e_to_the_epsilon_far_more_often_than_delta(
    epsilon: float, delta: float, times: int
) -> None:
    """Why nothing is said about odds where there is a delta.

    The privacy loss of Gaussian noise has the law N(mu^2 / 2, mu^2) under the truth, so it exceeds
    epsilon with probability Phi(mu / 2 - epsilon / mu). And that is not even a bound: somebody who
    is only told whether the output lies above a threshold sees such odds more often.
    """
    mu = gaussian_mu(epsilon, delta)
    chance = float(ndtr(mu / 2 - epsilon / mu))
    assert round(chance / delta) == times
    loss = mu * (mu + np.random.default_rng(3).standard_normal(4 * DRAWS)) - mu**2 / 2
    assert close_to(np.mean(loss > epsilon), chance)

    def ratio(threshold: float) -> float:
        return float(ndtr(mu - threshold) / ndtr(-threshold))

    threshold = mu / 2 + epsilon / mu  # where the odds of the whole output are e^epsilon
    while ratio(threshold - 0.01) > math.exp(epsilon):
        threshold -= 0.01
    assert float(ndtr(mu - threshold)) > 1.2 * chance
