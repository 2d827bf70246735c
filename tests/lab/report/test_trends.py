"""Exponents, the K that beats a baseline, forecasts; error probabilities as in test_statistics."""

import numpy as np
import pytest
from scipy import stats

from tacit.errors import InvalidInput
from tacit.simulation.checkpoints import checkpoints
from tacit_lab.report.statistics import first_reaching, forecast, growth, slope, smallest_winning

EPISODES = checkpoints(100_000)
DRAWS = 1000
MOST_MISSES = int(stats.binom.isf(1e-6, DRAWS, 0.05))


def test_an_exact_power_law_is_found_exactly() -> None:
    runs = np.outer([1.0, 2.0, 3.0], EPISODES**0.75)
    found = growth(runs, EPISODES)
    assert found.exponent.value == pytest.approx(0.75)
    assert found.exponent.low == pytest.approx(0.75) == found.exponent.high
    assert (found.low, found.high) == (10_000, 100_000)
    assert found.at(np.array([50_000.0]))[0] == pytest.approx(6 ** (1 / 3) * 50_000**0.75)


def test_exponents_over_seeds_cover_although_points_of_a_seed_depend() -> None:
    rng, missed = np.random.default_rng(0), 0
    epsilons = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
    for _ in range(DRAWS):
        walk = np.cumsum(rng.normal(0, 0.2, (5, 5)), axis=1)  # one seed's points move together
        found = slope(epsilons, np.exp(walk) * 100 / epsilons)
        missed += not found.exponent.low <= -1 <= found.exponent.high
    assert 20 <= missed <= MOST_MISSES


def test_no_exponent_without_logarithms_or_spread() -> None:
    assert slope(np.array([1.0, 2.0]), np.array([[1.0, 0.0]])) is None
    assert slope(np.array([2.0, 2.0]), np.array([[1.0, 3.0]])) is None


def curve(rng: np.random.Generator, seeds: int, level: float) -> np.ndarray:
    """Regret level * sqrt(K k) on average: below k exactly from level^2 K on."""
    return rng.gamma(9, level / 9, (seeds, 1)) * np.sqrt(EPISODES[-1] * EPISODES)


def test_the_smallest_winning_k_is_seldom_too_small() -> None:
    """True crossing at 0.25 K: an earlier K may be shown with probability at most 5%."""
    rng, early, shown = np.random.default_rng(1), 0, 0
    for _ in range(DRAWS):
        found = smallest_winning(EPISODES, list(curve(rng, 8, 0.5).T), 1.0)
        early += found.verdict == "beats" and found.episodes < 25_000
        shown += found.verdict == "beats"
    assert early <= MOST_MISSES and shown > 0.9 * DRAWS


def test_an_agent_as_good_as_the_baseline_is_seldom_called_better_or_worse() -> None:
    rng, better, worse = np.random.default_rng(2), 0, 0
    for _ in range(DRAWS):
        runs = rng.normal(1, 0.1, (6, 1)) * EPISODES
        found = smallest_winning(EPISODES, list(runs.T), 1.0)
        better += found.verdict == "beats"
        worse += found.verdict == "worse"
    assert 20 <= better <= MOST_MISSES and 20 <= worse <= MOST_MISSES


def test_the_answer_in_words() -> None:
    rng = np.random.default_rng(3)

    def say(runs: np.ndarray) -> str:
        return smallest_winning(EPISODES, list(runs.T), 1.0).words()

    good, bad = curve(rng, 6, 0.1), 1.2 * np.outer([1, 1.01, 0.99], EPISODES)
    assert say(good).startswith("from K = ")
    assert say(bad) == "not within K = 100,000 (worse, with confidence)"
    assert say(good[:1]).startswith("not decided within K = 100,000 (means are below from ")
    assert say(bad[:1]) == "not within K = 100,000"
    steady = np.outer([0.5, 0.5], EPISODES)
    assert say(steady) == "from K = 1 on"


def test_first_reaching_interpolates_and_says_never() -> None:
    runs = np.sqrt(100.0 * EPISODES) * np.array([[1.0], [10.0], [1e4]])
    found = first_reaching(runs, EPISODES, 1.0)
    assert found[0] == pytest.approx(100) and found[1] == pytest.approx(10_000)
    assert np.isnan(found[2])
    assert first_reaching(np.zeros((1, len(EPISODES))), EPISODES, 1.0)[0] == 1


def test_forecast_of_a_power_law_with_its_mark() -> None:
    rng = np.random.default_rng(4)
    factors = rng.lognormal(0, 0.1, 6)
    needed = {e: 1000 * factors / e**2 for e in (1.0, 2.0, 4.0)}
    outside, inside = forecast(needed, 0.5), forecast(needed, 3.0)
    assert outside.extrapolated and not inside.extrapolated
    assert outside.exponent.value == pytest.approx(-2)
    assert outside.users.low < 4000 < outside.users.high
    with pytest.raises(InvalidInput, match="at least two epsilons .* there is 1"):
        forecast({1.0: factors, 2.0: np.full(6, np.nan)}, 0.5)
    with pytest.raises(InvalidInput, match="there are none"):
        forecast({}, 0.5)


def test_forecast_interval_covers() -> None:
    rng, missed = np.random.default_rng(5), 0
    for _ in range(DRAWS):
        needed = {e: 1000 * rng.lognormal(0, 0.3, 6) / e for e in (1.0, 2.0, 4.0)}
        found = forecast(needed, 0.5)
        missed += not found.users.low <= 2000 <= found.users.high
    assert 20 <= missed <= MOST_MISSES
