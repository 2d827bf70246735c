"""Intervals, bands and tests, checked for coverage by simulation.

Error probabilities: a coverage test draws R data sets with a fixed seed. If the true coverage were
exactly 95%, the count of misses would be Binomial(R, 0.05); limits are set at the 1e-6 quantile of
that law, so a correct method fails with probability at most 1e-6 under another seed.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import InvalidInput
from tacit.simulation.checkpoints import checkpoints
from tacit_lab.report.statistics import compare, holm, knots, price, regret_band

EPISODES = checkpoints(100_000)
STEPS = np.diff(np.concatenate([[0.0], np.sqrt(EPISODES)]))
TRUTH = np.cumsum(STEPS)
DRAWS = 1000
MOST_MISSES = int(stats.binom.isf(1e-6, DRAWS, 0.05))


def wandering(rng: np.random.Generator, seeds: int) -> np.ndarray:
    """Curves with independent increments: knots depend on each other as little as they can."""
    return np.cumsum(rng.gamma(4 * STEPS, 0.25, (seeds, len(STEPS))), axis=1)


def proportional(rng: np.random.Generator, seeds: int) -> np.ndarray:
    """Curves that differ by a skewed factor: knots depend on each other completely."""
    return rng.gamma(4, 0.25, (seeds, 1)) * TRUTH


def misses(draw, seeds: int, shrink: float = 1.0) -> int:
    rng, missed = np.random.default_rng(3), 0
    for _ in range(DRAWS):
        band = regret_band(draw(rng, seeds), EPISODES)
        low = band.mean - shrink * (band.mean - band.low)
        high = band.mean + shrink * (band.high - band.mean)
        truth = TRUTH[np.searchsorted(EPISODES, band.episodes)]
        missed += bool(((truth < low) | (truth > high)).any())
    return missed


@pytest.mark.parametrize("draw", [wandering, proportional])
@pytest.mark.parametrize("seeds", [4, 10])
def test_the_band_covers_the_whole_curve(draw, seeds: int) -> None:
    assert misses(draw, seeds) <= MOST_MISSES


def test_half_the_band_would_not_cover() -> None:
    assert misses(wandering, 10, shrink=0.5) > 3 * MOST_MISSES


def test_knots_do_not_look_at_the_curves_and_end_at_the_end() -> None:
    chosen = EPISODES[knots(EPISODES)]
    assert len(chosen) <= 16 and chosen[-1] == 100_000 and chosen[0] <= 200
    assert np.diff(chosen).max() <= 12_500 + 5_000
    assert knots(np.array([7])).tolist() == [0]


def test_a_band_needs_two_runs_and_is_never_negative() -> None:
    assert regret_band(TRUTH[None], EPISODES) is None
    wild = np.outer([1.0, 100.0], TRUTH)
    band = regret_band(wild, EPISODES)
    assert (band.low >= 0).all() and (np.diff(band.high) >= 0).all()


def test_sign_flips_go_through_all_signs() -> None:
    rng = np.random.default_rng(1)
    for n in (1, 2, 5, 8):
        x, y = rng.normal(0.5, 1, n), rng.normal(0, 1, n)
        sums = [abs(np.dot(s, x - y)) for s in itertools.product((1, -1), repeat=n)]
        found = compare(x, y)
        expected = np.mean(np.array(sums) >= abs((x - y).sum()) - 1e-12)
        assert found.p == pytest.approx(expected) and found.pairs == n
        assert found.least_p == 2.0 ** (1 - n) <= found.p


def test_sign_flips_keep_their_level_on_skewed_regret() -> None:
    """Exact under exchangeability: misses of the level 0.05 are Binomial(R, <= 0.05)."""
    rng, rejected = np.random.default_rng(2), 0
    for _ in range(DRAWS):
        common = rng.lognormal(0, 1, 7)
        first, second = common * rng.lognormal(0, 1, 7), common * rng.lognormal(0, 1, 7)
        rejected += compare(first, second).p <= 0.05
    assert 5 <= rejected <= MOST_MISSES


def test_many_pairs_are_sampled_and_pairing_pays() -> None:
    rng = np.random.default_rng(4)
    users = rng.normal(100, 30, 40)
    first, second = users + rng.normal(5, 3, 40), users + rng.normal(0, 3, 40)
    paired, shuffled = compare(first, second), compare(first, rng.permutation(second))
    assert paired.p < 1e-3 < shuffled.p and paired.difference.low > 0
    assert paired.least_p == pytest.approx(2 / 20_001)
    with pytest.raises(InvalidInput, match="equally long"):
        compare(first, second[:3])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(values: list[float]) -> None:
    adjusted = holm(values)
    for beta in (0.01, 0.05, 0.3):
        left, rejected = sorted(range(len(values)), key=lambda i: values[i]), set()
        while left and values[left[0]] <= beta / len(left):
            rejected.add(left.pop(0))
        clear = [i for i in range(len(values)) if abs(adjusted[i] - beta) > 1e-12]
        assert {i for i in clear if adjusted[i] <= beta} == rejected & set(clear)


def test_holm_controls_all_errors_together_under_strong_dependence() -> None:
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(DRAWS):
        shared = rng.normal(0, 1, 9)
        runs = [shared + rng.normal(0, 0.5, 9) for _ in range(4)]
        pairs = itertools.combinations(runs, 2)
        wrong += min(holm([compare(a, b).p for a, b in pairs])) <= 0.05
    assert wrong <= MOST_MISSES


def test_price_covers_the_true_ratio_and_uses_the_pairing() -> None:
    rng, missed = np.random.default_rng(6), 0
    for _ in range(DRAWS):
        users = rng.lognormal(0, 1, 6)
        free, private = users * rng.lognormal(0, 0.2, 6), 5 * users * rng.lognormal(0, 0.2, 6)
        found = price(private, free)
        missed += not found.low <= 5.0 <= found.high
    assert 20 <= missed <= MOST_MISSES
    assert found.high / found.low < 3
    assert price(np.array([1.0, 0.0]), np.array([1.0, 2.0])) is None
