"""Frequency oracles: the exact law, and what is computed from it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import listed
from tacit.errors import InvalidInput
from tacit.privacy.finite import best_oracle
from tacit.privacy.finite.bits import BinaryResponse, UnaryEncoding
from tacit.privacy.finite.chances import ONE, log_above, log_ratio
from tacit.privacy.finite.channel import Channel
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection, best_size


def symmetric_unary(epsilon, domain):
    return UnaryEncoding.calibrate(epsilon, domain, symmetric=True)


ORACLES = {
    "subset": SubsetSelection.calibrate,
    "k-ary": KaryResponse.calibrate,
    "unary": UnaryEncoding.calibrate,
    "symmetric": symmetric_unary,
}
EVERY = pytest.mark.parametrize("make", ORACLES.values(), ids=ORACLES)
EPSILONS = st.floats(0.01, 25.0)


def assert_private(oracle, epsilon):
    """The privacy test: brute force over all cells and outputs, and the claim is not below it."""
    brute = Channel(listed.pmf(oracle)).epsilon
    assert brute <= epsilon * (1 + 1e-12) + 1e-12
    assert brute <= oracle.epsilon + 1e-11 and oracle.epsilon <= epsilon


@EVERY
@settings(max_examples=25, deadline=None)
@given(epsilon=EPSILONS, domain=st.integers(2, 7))
def test_calibration_keeps_to_epsilon_and_wastes_nothing(make, epsilon, domain):
    oracle = make(epsilon, domain)
    assert_private(oracle, epsilon)
    assert oracle.epsilon >= epsilon * (1 - 1e-8)


@EVERY
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_noise_for_twice_the_epsilon_does_not_pass(make, epsilon):
    assert_private(make(epsilon, 6), epsilon)
    with pytest.raises(AssertionError):
        assert_private(make(2 * epsilon, 6), epsilon)


@EVERY
@settings(max_examples=20, deadline=None)
@given(epsilon=EPSILONS, domain=st.integers(2, 7), data=st.data())
def test_estimates_are_unbiased_with_the_stated_covariance(make, epsilon, domain, data):
    oracle = make(epsilon, domain)
    cell = data.draw(st.integers(0, domain - 1))
    law, reports = listed.pmf(oracle)[cell], listed.outputs(oracle)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    estimates = np.array([listed.estimate(oracle, report, 1) for report in reports])
    mean = law @ estimates
    size = np.abs(estimates).max()
    assert mean == pytest.approx(np.eye(domain)[cell], abs=1e-11 * max(1.0, size))
    exact = (estimates - mean).T @ (law[:, None] * (estimates - mean))
    stated = listed.covariance(oracle, cell)
    assert stated == pytest.approx(exact, rel=1e-6, abs=1e-10 * max(1.0, size**2))
    assert stated[cell, cell] == oracle.variance_inside
    assert stated[cell - 1, cell - 1] == oracle.variance_outside


@EVERY
def test_variances_are_the_textbook_ones(make):
    oracle = make(1.3, 11)
    p, q = oracle.p, oracle.q
    assert oracle.variance_outside == pytest.approx(q * (1 - q) / (p - q) ** 2)
    assert oracle.variance_inside == pytest.approx(p * (1 - p) / (p - q) ** 2)
    mix = 0.3 * oracle.variance_inside + 0.7 * oracle.variance_outside
    assert oracle.variance(0.3) == pytest.approx(mix)


@settings(max_examples=60, deadline=None)
@given(EPSILONS, st.integers(2, 40), st.integers(0, 10**7), st.integers(0, 2**32 - 1))
def test_estimates_of_subset_selection_add_up_to_the_users(epsilon, domain, n, seed):
    oracle = SubsetSelection.calibrate(epsilon, domain)
    p, q = oracle.chances
    assert p + (domain - 1) * q == oracle.size  # exactly: then so do the estimates
    share = np.random.default_rng(seed).dirichlet(np.ones(domain))
    counts = np.random.default_rng(seed).multinomial(n, share)
    hits = listed.aggregate(oracle, counts, np.random.default_rng(seed))
    assert hits.sum() == oracle.size * n
    assert sum((int(h) - n * q) / (p - q) for h in hits) == n
    estimates = listed.estimate(oracle, hits, n)
    assert estimates.sum() == pytest.approx(n, abs=1e-11 * max(1.0, np.abs(estimates).sum()))


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-6, 30.0), st.integers(2, 300))
def test_subset_size_has_the_least_variance(epsilon, domain):
    def variance(size):
        e = math.exp(epsilon)
        weight = size * e + domain - size
        p = size * e / weight
        q = size * (e * (size - 1) + domain - size) / ((domain - 1) * weight)
        return q * (1 - q) / (p - q) ** 2

    best = best_size(epsilon, domain)
    assert 1 <= best <= max(1, domain // 2)
    least = min(variance(size) for size in range(1, domain // 2 + 1))
    assert variance(best) <= least * (1 + 1e-6)


def test_the_probabilities_are_those_of_the_specification():
    for epsilon, domain in ((0.2, 8), (1.0, 72), (3.0, 10)):
        oracle = SubsetSelection.calibrate(epsilon, domain)
        w, e, d = oracle.size, math.exp(epsilon), domain
        weight = w * e + d - w
        assert oracle.p == pytest.approx(w * e / weight, rel=1e-14)
        assert oracle.q == pytest.approx(w * (e * (w - 1) + d - w) / ((d - 1) * weight), rel=1e-13)
        assert oracle.blanket == pytest.approx(d / weight, rel=1e-13)
    kary = KaryResponse.calibrate(2.0, 5)
    assert kary.p == pytest.approx(math.exp(2) / (math.exp(2) + 4), rel=1e-14)
    unary = UnaryEncoding.calibrate(2.0, 5)
    assert unary.p == 0.5 and unary.q == pytest.approx(1 / (math.exp(2) + 1), rel=1e-14)
    even = symmetric_unary(2.0, 5)
    assert even.p == pytest.approx(math.e / (math.e + 1), rel=1e-14)
    assert even.p + even.q == 1.0


def test_epsilon_beyond_the_grid_gets_what_the_grid_can_give():
    for make in ORACLES.values():
        oracle = make(500.0, 8)
        assert 40.0 < oracle.epsilon < 100.0
        assert 0.0 < oracle.q < oracle.p <= 1.0


def test_large_domains_work():
    oracle = SubsetSelection.calibrate(0.5, 2**14)
    assert oracle.channel().epsilon == pytest.approx(0.5, abs=1e-9)
    assert oracle.variance_outside == pytest.approx(4 / (0.5**2), rel=0.03)


@EVERY
def test_the_smallest_epsilon_in_the_largest_domain_is_still_on_the_grid(make):
    oracle = make(1e-9, 2**20)
    assert oracle.chances[0] > oracle.chances[1]
    assert 0.99e-9 < oracle.epsilon <= 1e-9


def test_the_calculator_picks_by_predicted_variance():
    assert isinstance(best_oracle(1.0, 9), SubsetSelection)
    assert isinstance(best_oracle(6.0, 8), KaryResponse)
    assert best_oracle(0.3, 2).variance(0.5) == KaryResponse.calibrate(0.3, 2).variance(0.5)
    for epsilon in (0.1, 1.0, 5.0):
        for domain in (2, 9, 100):
            chosen = best_oracle(epsilon, domain)
            assert chosen.epsilon <= epsilon
            others = [make(epsilon, domain).variance(1 / domain) for make in ORACLES.values()]
            assert chosen.variance(1 / domain) == min(others)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 2**70), st.integers(1, 2**70))
def test_logarithms_are_never_too_small(top, bottom):
    """Checked with 60 decimal digits."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        exact = (Decimal(top) / Decimal(bottom)).ln()
        above = log_above(Fraction(top, bottom))
        assert Decimal(above) >= exact
        assert Decimal(above) - exact <= Decimal("4e-15") * abs(exact) + Decimal("1e-300")
        assert abs(Decimal(log_ratio(Fraction(top, bottom))) - exact) <= Decimal("3e-14")


@pytest.mark.parametrize("near", [1, 2, 2**11])
def test_logarithms_next_to_one(near):
    above = log_above(Fraction(ONE + near, ONE))
    assert near / ONE * (1 - near / ONE) <= above <= near / ONE * (1 + 1e-14)


BAD_EPSILONS = [0.0, -1.0, 1e-12, math.nan, math.inf, "1", None, True]


@EVERY
@pytest.mark.parametrize("epsilon", BAD_EPSILONS)
def test_bad_epsilons_are_refused(make, epsilon):
    with pytest.raises(InvalidInput, match="epsilon = .* but it must be"):
        make(epsilon, 8)
    with pytest.raises(InvalidInput, match="epsilon = .* but it must be"):
        best_oracle(epsilon, 8)


@EVERY
@pytest.mark.parametrize("domain", [1, 0, -3, 2.5, math.nan, 2**20 + 1, "8"])
def test_bad_domains_are_refused(make, domain):
    with pytest.raises(InvalidInput, match="domain = .* >= 2 and <= "):
        make(1.0, domain)


@EVERY
def test_bad_cells_and_generators_are_refused(make):
    oracle, rng = make(1.0, 4), np.random.default_rng(0)
    for cell in (-1, 4, 1.5, math.nan, "0"):
        for use in (oracle.encode_secure, lambda c: oracle.encode(c, rng)):
            with pytest.raises(InvalidInput, match="cell = .* >= 0 and <= 3"):
                use(cell)
    with pytest.raises(InvalidInput, match="share = 1.5"):
        oracle.variance(1.5)
    for no_rng in (None, 0, np.random):
        with pytest.raises(InvalidInput, match="numpy Generator"):
            oracle.encode(0, no_rng)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SubsetSelection(8, 2, ONE // 4), "own = .* > size / domain = 2 / 8"),
        (lambda: SubsetSelection(8, 0, ONE // 2), "size = 0"),
        (lambda: SubsetSelection(8, 8, ONE // 2), "size = 8"),
        (lambda: SubsetSelection(8, 2, ONE), "own = "),
        (lambda: KaryResponse(8, 2, ONE // 2), "size = 2"),
        (lambda: UnaryEncoding(8, 5, 5), "keep = 5 .* > flip = 5"),
        (lambda: UnaryEncoding(8, ONE, 5), "keep = "),
        (lambda: UnaryEncoding(8, 5, 0), "flip = 0"),
        (lambda: BinaryResponse(8, 3, ONE // 2), "truth = .* > 1/2"),
        (lambda: BinaryResponse(8, 9, ONE - 1), "differing = 9, .* <= 8"),
        (lambda: BinaryResponse(0, 1, ONE - 1), "domain = 0"),
    ],
)
def test_impossible_randomizers_cannot_be_made(make, says):
    with pytest.raises(InvalidInput, match=says):
        make()


@EVERY
@settings(max_examples=25, deadline=None)
@given(
    epsilon=st.floats(0.01, 12.0),
    masses=st.integers(2, 6).flatmap(
        lambda n: st.lists(
            st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=n, max_size=n
        ).filter(lambda pairs: all(map(any, zip(*pairs, strict=True))))
    ),
)
def test_log_ratios_are_those_of_the_enumerated_law(make, epsilon, masses):
    """For people whose cell is drawn from one distribution or from another; sums to one."""
    first, second = (np.array(column) / sum(column) for column in zip(*masses, strict=True))
    oracle = make(epsilon, len(masses))
    outputs, pmf = listed.outputs(oracle), listed.pmf(oracle)
    found = oracle.log_ratio(outputs, first, second)
    assert found == pytest.approx(np.log(second @ pmf) - np.log(first @ pmf), abs=1e-9)
    assert (first @ pmf) @ np.exp(found) == pytest.approx(1.0, abs=1e-9)
    assert np.abs(found).max() <= oracle.epsilon + 1e-12
