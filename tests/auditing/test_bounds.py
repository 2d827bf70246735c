"""Bounds from counts and from moments: right to many digits, and wrong no more often than stated.

Statistical tests have fixed seeds. A bound that is wrong in exactly the stated share of cases would
fail one of them with probability below 1e-4.
"""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.auditing.bounds import (
    LARGEST_MU,
    RATE_SHARE,
    ScoreMoments,
    clopper_pearson_lower,
    epsilon_from_guesses,
    mu_from_pairs,
    shares_of_looks,
)
from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_epsilon

BETAS = st.sampled_from([0.3, 0.05, 1e-3, 1e-6])


def at_most(trials: int, rate: float, chance: float = 1e-4) -> int:
    """What so many events of that rate exceed with probability below ``chance``."""
    return int(stats.binom.isf(chance, trials, rate))


# ---- shares ----


@pytest.mark.parametrize("trials", [1, 7, 100, 20_000, 1_000_000])
@pytest.mark.parametrize("beta", [0.3, 0.025, 1e-6])
def test_clopper_pearson_equals_scipy(trials: int, beta: float) -> None:
    for count in {0, 1, trials // 3, trials - 1, trials}:
        exact = stats.binomtest(count, trials).proportion_ci(1 - 2 * beta, method="exact").low
        assert clopper_pearson_lower(count, trials, beta) == pytest.approx(exact, rel=1e-9)


def test_clopper_pearson_to_many_digits() -> None:
    """At the bound, so many or more happen with probability beta (summed with 40 digits)."""
    for count, trials, beta in ((1, 10, 0.05), (9000, 10_000, 0.01), (63, 64, 1e-9)):
        p = float(clopper_pearson_lower(count, trials, beta))
        with mpmath.workdps(40):
            q = mpmath.mpf(p)
            tail = mpmath.fsum(
                mpmath.binomial(trials, k) * q**k * (1 - q) ** (trials - k)
                for k in range(count, trials + 1)
            )
        assert float(tail) == pytest.approx(beta, rel=1e-9)


def test_clopper_pearson_covers_every_probability() -> None:
    """Exactly: the chance of a bound above p, summed over all counts."""
    counts = np.arange(31)
    for beta in (0.2, 0.05, 0.001):
        lower = clopper_pearson_lower(counts, 30, beta)
        for p in np.linspace(0.001, 0.999, 500):
            missed = stats.binom.pmf(counts[lower > p], 30, p).sum()
            assert missed <= beta * (1 + 1e-9), (beta, p)


@given(st.integers(1, 500), BETAS)
def test_more_of_them_show_more(trials: int, beta: float) -> None:
    lower = clopper_pearson_lower(np.arange(trials + 1), trials, beta)
    assert lower[0] == 0.0 and (np.diff(lower) > 0).all() and lower[-1] < 1.0
    assert (lower[1:] < np.arange(1, trials + 1) / trials).all()


# ---- guesses ----


def test_epsilon_of_guesses_by_hand() -> None:
    """Q and r from scipy's beta quantiles, the rest by the formula of the definition."""
    q = stats.beta.ppf(0.05, 900, 101)
    assert epsilon_from_guesses(900, 1000, 5000, 0.0, 0.05) == pytest.approx(math.log(q / (1 - q)))
    q = stats.beta.ppf(0.05 * (1 - RATE_SHARE), 900, 101)
    r = stats.beta.ppf(0.05 * RATE_SHARE, 1000, 4001)
    expected = math.log((q - 0.01 / r) / (1 - q))
    assert epsilon_from_guesses(900, 1000, 5000, 0.01, 0.05) == pytest.approx(expected)


def test_epsilon_of_guesses_at_its_ends() -> None:
    assert epsilon_from_guesses(0, 0, 100, 0.0, 0.05) == -math.inf
    assert epsilon_from_guesses(0, 50, 100, 1e-5, 0.05) == -math.inf
    assert epsilon_from_guesses(50, 100, 100, 0.0, 0.05) < 0.0
    none_wrong = epsilon_from_guesses(1000, 1000, 1000, 0.0, 0.05)
    low = 0.05 ** (1 / 1000)
    assert none_wrong == pytest.approx(math.log(low / (1 - low)))


@given(st.integers(2, 300), st.sampled_from([0.0, 1e-5, 0.05]), BETAS)
def test_right_guesses_show_more_and_delta_takes_away(made: int, delta: float, beta: float) -> None:
    correct = np.arange(made + 1)
    shown = epsilon_from_guesses(correct, np.full(made + 1, made), 400, delta, beta)
    finite = shown[np.isfinite(shown)]
    assert (np.diff(finite) > 0).all() and np.isneginf(shown[: len(shown) - len(finite)]).all()
    more = epsilon_from_guesses(correct, np.full(made + 1, made), 400, delta + 0.01, beta)
    assert (more <= shown).all()
    one = [float(epsilon_from_guesses(int(k), made, 400, delta, beta)) for k in correct]
    assert shown.tolist() == one


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 4.0])
def test_randomized_response_is_bounded_tightly_and_rarely_above(epsilon: float) -> None:
    """Its guesses are right with probability e / (1 + e), no more is possible."""
    rng, trials, beta, audits = np.random.default_rng(1), 20_000, 0.1, 2000
    correct = rng.binomial(trials, 1 / (1 + math.exp(-epsilon)), size=audits)
    shown = epsilon_from_guesses(correct, np.full(audits, trials), trials, 0.0, beta)
    above = int(np.count_nonzero(shown > epsilon))
    assert above <= at_most(audits, beta)
    assert above >= audits * beta / 2  # not wider than it must be
    assert np.median(shown) > epsilon - 0.1


def test_a_delta_that_is_used_up() -> None:
    """With probability delta the world itself comes out, else a randomized response.

    It is (epsilon, delta)-DP and no better: guesses are right with probability
    delta + (1 - delta) p, wrong with (1 - delta) (1 - p), and right = delta + e^eps wrong.
    """
    epsilon, delta, trials, beta, audits = 1.0, 0.2, 20_000, 0.1, 2000
    p = 1 / (1 + math.exp(-epsilon))
    rng = np.random.default_rng(2)
    correct = rng.binomial(trials, delta + (1 - delta) * p, size=audits)
    shown = epsilon_from_guesses(correct, np.full(audits, trials), trials, delta, beta)
    assert np.count_nonzero(shown > epsilon) <= at_most(audits, beta)
    assert np.median(shown) == pytest.approx(epsilon, abs=0.06)
    ignored = epsilon_from_guesses(correct, np.full(audits, trials), trials, 0.0, beta)
    assert (ignored > epsilon).all()  # without delta the claim would be refuted every time


def test_seldom_guesses_pay_for_delta_by_how_seldom_they_are() -> None:
    """The world comes out with probability delta, else nothing: (0, delta)-DP.

    All guesses are right, so at half of that delta there is no epsilon at all.
    """
    delta, trials, beta, audits = 0.05, 10_000, 0.1, 2000
    made = np.random.default_rng(3).binomial(trials, delta, size=audits)
    shown = epsilon_from_guesses(made, made, trials, delta, beta)
    assert np.count_nonzero(shown > 0.0) <= at_most(audits, beta)
    assert (epsilon_from_guesses(made, made, trials, delta / 2, beta) > 4.0).all()


def test_thresholds_on_a_gaussian_show_its_exact_epsilon_and_no_more() -> None:
    """Expected counts of guesses from both ends, with so many trials that bounds are limits."""
    trials, mu, delta = 10**12, 1.0, 1e-2
    high = np.linspace(0.5, 3.5, 2000)  # world 1 from here on, world 0 up to mu - high
    right, wrong = stats.norm.sf(high - mu), stats.norm.sf(high)
    made = np.rint((right + wrong) * trials).astype(np.int64)
    correct = np.rint(right * trials).astype(np.int64)
    best = float(epsilon_from_guesses(correct, made, trials, delta, 1e-3).max())
    assert best < gaussian_epsilon(mu, delta)
    assert best == pytest.approx(gaussian_epsilon(mu, delta), rel=1e-4)


# ---- moments ----


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_moments_are_those_of_numpy_however_the_scores_come(values: list, cuts: list) -> None:
    scores, moments = np.array(values), ScoreMoments()
    for part in np.split(scores, sorted(min(cut, len(scores)) for cut in cuts)):
        moments.add(part)
    size = float(np.abs(scores).max()) + 1e-30
    assert moments.count == len(scores)
    assert moments.mean == pytest.approx(scores.mean(), abs=1e-12 * size)
    squares = ((scores - scores.mean()) ** 2).sum()
    assert moments.squares == pytest.approx(squares, rel=1e-9, abs=1e-10 * size**2)


def test_moments_far_from_zero_keep_their_digits() -> None:
    scores = 1e9 + np.random.default_rng(0).normal(size=10_000)
    moments = ScoreMoments()
    for part in np.split(scores, 100):
        moments.add(part)
    assert moments.squares == pytest.approx(((scores - scores.mean()) ** 2).sum(), rel=1e-6)


def moments_of(count: int, mean: float, squares: float) -> ScoreMoments:
    return ScoreMoments(count, mean, squares)


def pairs_of(
    count: int, gap: float, spread: float = 1.0
) -> tuple[ScoreMoments, ScoreMoments, ScoreMoments]:
    """Both worlds of unit variance, and differences of that spread."""
    squares = count - 1.0
    return (
        moments_of(count, 0.0, squares),
        moments_of(count, gap, squares),
        moments_of(count, gap, spread**2 * squares),
    )


@pytest.mark.parametrize("count", [3, 40, 4000])
@pytest.mark.parametrize("beta", [0.3, 0.01, 1e-6])
@pytest.mark.parametrize("spread", [0.0, 0.1, math.sqrt(2.0)])
def test_the_bound_on_mu_by_the_quantiles_of_scipy(count: int, beta: float, spread: float) -> None:
    least = 2.0 + stats.t.ppf(beta / 2, count - 1) * spread / math.sqrt(count)
    widest = math.sqrt((count - 1) / stats.chi2.ppf(beta / 2, count - 1))
    expected = max(0.0, least / widest)
    assert mu_from_pairs(*pairs_of(count, 2.0, spread), beta) == pytest.approx(expected, rel=1e-9)


COUPLINGS = {"same noise": 1.0, "half of it": 0.7, "independent": 0.0, "opposite": -1.0}


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("count", [5, 40, 400])
@pytest.mark.parametrize("mu", [0.0, 0.3, 4.0])
def test_the_bound_on_mu_is_rarely_above_however_the_worlds_depend_on_each_other(
    count: int, mu: float, coupling: float
) -> None:
    """Of 3000 audits a share beta is above, by either side of 1e-4."""
    rng, beta, audits = np.random.default_rng([count, int(10 * mu)]), 0.1, 3000
    above, share = 0, COUPLINGS[coupling]
    for _ in range(audits):
        noise, other = rng.normal(size=(2, count))
        mixed = share * noise + math.sqrt(1 - share**2) * other
        first, second = 5.0 + 3.0 * noise, 5.0 + 3.0 * (mu + mixed)
        worlds = ScoreMoments(), ScoreMoments(), ScoreMoments()
        for moments, values in zip(worlds, (first, second, second - first), strict=True):
            moments.add(values)
        above += mu_from_pairs(*worlds, beta) > mu * (1 + 1e-12)
    assert above <= at_most(audits, beta)
    if share == 1.0 and mu > 0.0:  # half of beta is all that is used up, and no less
        assert above >= stats.binom.ppf(1e-4, audits, beta / 2)


def test_common_noise_shows_in_few_trials_what_independent_noise_shows_in_many() -> None:
    """At the mu of epsilon 1: nine tenths in 500 trials, of both worlds, instead of 50,000."""
    beta = 0.01
    assert mu_from_pairs(*pairs_of(500, 0.268, 0.0), beta) > 0.9 * 0.268
    assert mu_from_pairs(*pairs_of(25_000, 0.268, math.sqrt(2.0)), beta) < 0.92 * 0.268


def test_scores_may_be_shifted_and_scaled() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(size=300), rng.normal(1.0, size=300)
    found = []
    for shift, scale in ((0.0, 1.0), (17.0, 1e-3), (-5.0, 40.0)):
        first, second = (shift + scale * values for values in scores)
        worlds = ScoreMoments(), ScoreMoments(), ScoreMoments()
        for moments, values in zip(worlds, (first, second, second - first), strict=True):
            moments.add(values)
        found.append(mu_from_pairs(*worlds, 0.05))
    assert found == pytest.approx([found[0]] * 3, rel=1e-9) and 0.5 < found[0] < 1.0


def test_the_wider_world_counts() -> None:
    first, second, apart = pairs_of(100, 1.0)
    wide = moments_of(100, 0.0, 4 * 99.0)
    usual = mu_from_pairs(first, second, apart, 0.05)
    for worlds in ((wide, second), (first, wide)):
        assert mu_from_pairs(*worlds, apart, 0.05) == pytest.approx(usual / 2)


def test_edges_of_the_bound_on_mu() -> None:
    none = ScoreMoments(), ScoreMoments(), ScoreMoments()
    assert mu_from_pairs(*none, 0.05) == 0.0
    assert mu_from_pairs(*pairs_of(1, 2.0), 0.05) == 0.0
    assert mu_from_pairs(*pairs_of(50, -1.0), 0.05) == 0.0  # reversed
    assert mu_from_pairs(*pairs_of(50, 0.0), 0.05) == 0.0
    still = moments_of(50, 1.0, 0.0)
    assert mu_from_pairs(still, still, moments_of(50, 0.0, 0.0), 0.05) == 0.0
    assert mu_from_pairs(still, still, moments_of(50, 1.0, 0.0), 0.05) == LARGEST_MU
    assert mu_from_pairs(*pairs_of(50, 100.0), 0.05) == LARGEST_MU


@given(st.integers(2, 200), BETAS)
def test_worlds_further_apart_show_more(count: int, beta: float) -> None:
    shown = [mu_from_pairs(*pairs_of(count, gap), beta) for gap in (*np.arange(0, 45, 1.5), 1e12)]
    assert (np.diff(shown) >= 0.0).all() and shown[0] == 0.0 and shown[-1] == LARGEST_MU


# ---- looks ----


@given(st.integers(1, 40))
def test_looks_share_out_all_of_the_error_probability(looks: int) -> None:
    shares = shares_of_looks(looks)
    assert len(shares) == looks and min(shares) > 0.0
    assert sum(shares) == pytest.approx(1.0, abs=1e-12) and sum(shares) <= 1.0 + 1e-15
    assert shares[-1] == (1.0 if looks == 1 else 0.75)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: clopper_pearson_lower(11, 10, 0.05), "count = 11 of 10.*0 <= count <= trials"),
        (lambda: clopper_pearson_lower(-1, 10, 0.05), "count = -1"),
        (lambda: clopper_pearson_lower(np.array([0.5]), 10, 0.05), "whole numbers"),
        (lambda: clopper_pearson_lower(1, 10, 0.0), "beta = 0.*> 0 and < 1"),
        (lambda: clopper_pearson_lower(1, 10, 1.0), "beta = 1"),
        (lambda: epsilon_from_guesses(1, 2, 0, 0.0, 0.05), "trials = 0.*>= 1"),
        (lambda: epsilon_from_guesses(3, 2, 9, 0.0, 0.05), "count = 3 of 2"),
        (lambda: epsilon_from_guesses(3, 10, 9, 1e-5, 0.05), "count = 10 of 9"),
        (lambda: epsilon_from_guesses(1, 2, 9, 1.0, 0.05), "delta = 1"),
        (lambda: epsilon_from_guesses(1, 2, 9, math.nan, 0.05), "delta = nan"),
        (lambda: mu_from_pairs(ScoreMoments(), ScoreMoments(), ScoreMoments(), 1.0), "beta = 1"),
        (lambda: shares_of_looks(0), "looks = 0.*>= 1"),
    ],
)
def test_bad_input_is_named_with_its_range(call, shown: str) -> None:
    with pytest.raises(InvalidInput, match=shown):
        call()
