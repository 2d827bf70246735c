"""Amplification bounds: goldens, brute force, and how bounds must behave.

The goldens are those of docs/papers/tabular_ldp.md#b8-bound.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from contracts import listed
from privacy.shuffle.exact import worst_delta
from tacit.errors import InvalidInput
from tacit.privacy.finite.bits import UnaryEncoding
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection, _calibrated
from tacit.privacy.shuffle.blanket import Blanket, Crowd, calibrate
from tacit.privacy.shuffle.positive_part import expected_positive_part


def subset(epsilon: float, domain: int, size: int | None = None) -> SubsetSelection:
    if size is None:
        return SubsetSelection.calibrate(epsilon, domain)
    return _calibrated(SubsetSelection, epsilon, domain, size)


def crowd(epsilon: float, domain: int, size: int | None = None) -> Blanket:
    return Blanket((subset(epsilon, domain, size),))


@pytest.mark.parametrize(
    ("users", "domain", "size", "local", "epsilon", "delta"),
    [
        (5, 3, 1, 1.0, 0.4, 0.0754354),
        (1000, 8, 1, 2.0, 0.25, 1.00664e-5),
        (200, 72, 19, 1.0, 0.1, 1.61539e-3),
    ],
)
def test_goldens(users, domain, size, local, epsilon, delta) -> None:
    blanket = crowd(local, domain, size)
    assert blanket.delta(users, epsilon, fineness=512.0) == pytest.approx(delta, rel=4e-6)
    assert delta * (1 - 4e-6) <= blanket.delta(users, epsilon) <= delta * 1.001


TABLE = {  # epsilon at delta = 1e-6 for n = 10, 100, 200, 1000, 10000, as printed
    (8, 0.2): "0.176 0.055 0.038 0.016 0.0045",
    (8, 1.0): "0.997 0.369 0.256 0.109 0.032",
    (8, 2.0): "1.999 0.973 0.688 0.293 0.086",
    (8, 4.0): "4.0 3.82 3.28 1.59 0.388",
    (72, 1.0): "0.996 0.351 0.243 0.103 0.030",
    (72, 2.0): "1.998 0.888 0.627 0.267 0.078",
    (72, 4.0): "4.0 2.02 1.63 0.862 0.261",
}


@pytest.mark.parametrize(("domain", "local"), TABLE)
def test_the_table_of_amplified_epsilons(domain: int, local: float) -> None:
    blanket = crowd(local, domain)
    printed = TABLE[domain, local].split()
    for users, text in zip((10, 100, 200, 1000, 10_000), printed, strict=True):
        half_a_digit = 0.6 * 10.0 ** -len(text.partition(".")[2])
        assert blanket.epsilon_at(users, 1e-6) == pytest.approx(float(text), abs=half_a_digit)


BRUTE = [
    (domain, size, users, local, epsilon)
    for domain, size in ((3, 1), (4, 1), (4, 2), (5, 2))
    for users in (2, 3, 4)
    for local, epsilon in ((1.0, 0.4), (2.0, 0.6))
]


@pytest.mark.parametrize(("domain", "size", "users", "local", "epsilon"), BRUTE)
def test_the_bound_is_never_below_the_worst_dataset(domain, size, users, local, epsilon) -> None:
    report = subset(local, domain, size)
    exact = worst_delta(listed.pmf(report), users, epsilon, [(0, 1)])
    bound = Blanket((report,)).delta(users, epsilon)
    assert exact * (1 - 1e-9) <= bound <= (1.1 if size == 1 else 1.7) * exact


def test_exact_values_of_the_spec() -> None:
    """0.074387 with five users; and 6 users on two public steps are two crowds of 3, not one of 6.

    A bound with n = B would claim 0.2845 where the truth is 0.4116.
    """
    five = worst_delta(listed.pmf(subset(1.0, 3, 1)), 5, 0.4, [(0, 1)])
    assert five == pytest.approx(0.074387, abs=1e-6)
    report = subset(2.0, 4, 1)
    truth = worst_delta(listed.pmf(report), 3, 0.6, [(0, 1)])
    assert truth == pytest.approx(0.412, abs=1e-3)
    wrong = Blanket((report,)).delta(6, 0.6)
    assert wrong == pytest.approx(0.284, abs=1e-3) and wrong < truth
    assert Blanket((report,)).delta(3, 0.6) >= truth


def coined(reports: tuple[SubsetSelection, ...]) -> np.ndarray:
    """Every user's fair coin over the steps, and then the report of that step."""
    rows = [
        np.concatenate([listed.pmf(r)[cell] for r, cell in zip(reports, cells, strict=True)])
        for cells in itertools.product(*(range(r.domain) for r in reports))
    ]
    return np.array(rows) / len(reports)


@pytest.mark.parametrize("domains", [(2, 2), (3, 3), (4, 2)])
def test_users_who_draw_their_own_step_are_one_crowd(domains: tuple[int, int]) -> None:
    reports = tuple(subset(2.0, domain, 1) for domain in domains)
    exact = worst_delta(coined(reports), 4, 0.6, [(0, math.prod(domains) - 1), (0, 1)])
    bound = Blanket(reports).delta(4, 0.6)
    assert exact * (1 - 1e-9) <= bound <= 1.15 * exact
    assert bound < min(Blanket((report,)).delta(2, 0.6) for report in reports)


def test_one_user_alone_is_not_amplified() -> None:
    report = subset(1.5, 6, 2)
    assert Blanket((report,)).delta(1, 0.5) == pytest.approx(report.channel().delta(0.5), rel=1e-6)
    assert Blanket((report,)).epsilon_at(1, 0.0) == report.epsilon
    assert Blanket((report,)).delta(50, report.epsilon) == 0.0


def one_bit(local: float, users: int, epsilon: float) -> float:
    """Delta of k-ary response on two cells: anonymous bits, and one that tells the worlds apart."""
    e, level, found = math.exp(local), math.exp(epsilon), []
    for others, weight in enumerate(binom.pmf(np.arange(users), users - 1, 2 / (e + 1))):
        law = np.append(binom.pmf(np.arange(others + 1), others, 0.5), 0.0)
        here, there = (
            np.append(0.0, law[:-1]),
            law,
        )  # own bit: first kind or not
        gain = (e * here + there) - level * (here + e * there)
        found.append(weight * np.maximum(gain, 0.0).sum() / (e + 1))
    return math.fsum(found)


def test_tiny_deltas_keep_their_digits() -> None:
    """Against the binomial sums of one bit, which have no cancellation, down to 1e-40."""
    for users, epsilon in ((100, 0.6), (1000, 0.5), (3000, 0.4)):
        bit = one_bit(1.0, users, epsilon)
        assert bit < 1e-5
        assert crowd(1.0, 2).delta(users, epsilon, 256.0) == pytest.approx(bit, rel=0.05)


def test_a_million_users() -> None:
    few, many = (crowd(2.0, 8).delta(n, e) for n, e in ((10**4, 0.1), (10**6, 0.01)))
    assert 0 < few < 1e-6 and 0 < many < 1e-6


def test_the_sum_against_enumeration() -> None:
    """All 4^3 outcomes of three terms, also where the mean is not negative."""
    values, weights = np.array([1.0, -0.7, -0.2]), np.array([0.2, 0.3, 0.4])
    for shift in (-0.3, 0.0, 0.5):
        shifted = values + shift
        outcomes = zip(np.append(shifted, 0.0), np.append(weights, 0.1), strict=True)
        exact = math.fsum(
            math.prod(w for _, w in three) * max(sum(z for z, _ in three), 0.0)
            for three in itertools.product(list(outcomes), repeat=3)
        )
        bound = expected_positive_part(shifted, weights, 3, 64.0)
        assert exact <= bound <= exact * (1 + 1e-4)


def multinomial_sum(values: np.ndarray, weights: np.ndarray, n: int) -> float:
    """E[(Z_1 + ... + Z_n)_+] over all ways to share out n terms: positive summands only."""
    values, weights = np.append(values, 0.0), np.append(weights, 1.0 - weights.sum())
    parts = []
    for bars in itertools.combinations(range(n + len(values) - 1), len(values) - 1):
        counts = np.diff([-1, *bars, n + len(values) - 1]) - 1
        total = math.fsum(counts * values)
        if total > 0.0:
            ways = math.factorial(n) / math.prod(math.factorial(c) for c in counts)
            parts.append(total * ways * math.prod(weights**counts))
    return math.fsum(parts)


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0.05, 6.0),
    st.integers(3, 30),
    st.integers(1, 2),
    st.integers(1, 9),
    st.floats(0.01, 0.999),
)
def test_the_convolution_is_never_below_the_exact_sum(local, domain, size, users, share) -> None:
    """Also where it is tiny: the smallest here are below 1e-20."""
    blanket = crowd(local, domain, size)
    values, weights = blanket.terms(share * local)
    exact = multinomial_sum(values, weights, users)
    for fineness in (4.0, 32.0):
        bound = expected_positive_part(values, weights, users, fineness)
        assert exact * (1 - 1e-12) <= bound
    assert bound <= exact * 1.01 + 1e-300


randomizers = st.builds(subset, st.floats(0.05, 4.0), st.integers(3, 12), st.integers(1, 2))


@settings(max_examples=25, deadline=None)
@given(randomizers, st.integers(1, 300), st.floats(0.0, 0.99))
def test_bounds_fall_with_users_and_epsilon_and_never_exceed_the_report(
    report, users, share
) -> None:
    blanket, epsilon = Blanket((report,)), share * report.epsilon
    here = blanket.delta(users, epsilon)
    assert 0.0 <= here <= report.channel().delta(epsilon) * (1 + 1e-8)
    slack = 1 + 2e-3  # of the grids, which are not the same
    assert blanket.delta(2 * users, epsilon) <= here * slack
    assert blanket.delta(users, min(1.05 * epsilon + 0.01, report.epsilon)) <= here * slack
    central = blanket.epsilon_at(users, 1e-6)
    assert central <= report.epsilon and blanket.delta(users, central) <= 1e-6


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 500),
    st.floats(0.05, 2.0),
    st.sampled_from([1e-3, 1e-6, 1e-9]),
    st.integers(3, 40),
)
def test_calibration_keeps_its_promise_and_wastes_nothing(users, epsilon, delta, domain) -> None:
    asked = Crowd(users, epsilon, delta)
    (report,) = calibrate(asked, (domain,), 8.0)
    blanket = Blanket((report,))
    assert blanket.delta(users, epsilon) <= delta
    assert report.epsilon <= 8.0 and report.epsilon >= epsilon * (1 - 1e-9)
    if 1.02 * report.epsilon < 8.0:
        louder = type(report).calibrate(1.02 * report.epsilon, domain)
        if louder.size == report.size:
            assert Blanket((louder,)).delta(users, epsilon) > delta


def test_a_guess_is_taken_only_where_it_is_right() -> None:
    """To six digits, and never below the bound: what is stated does not follow the request."""
    blanket = crowd(2.0, 4)
    exact = blanket.epsilon_at(200, 1e-4)
    assert 0.0 < exact < blanket.epsilon
    for factor in (0.01, 0.5, 1 - 1e-3, 1 + 1e-3, 1.5, 100.0):
        assert blanket.epsilon_at(200, 1e-4, factor * exact) == exact
    near = exact * (1 + 5e-7)
    assert blanket.delta(200, near) <= 1e-4 and blanket.epsilon_at(200, 1e-4, near) == near


def test_calibration_respects_the_local_limit() -> None:
    asked = Crowd(10_000, 1.0, 1e-6)
    assert calibrate(asked, (8,), 3.0)[0].epsilon == pytest.approx(3.0)
    assert calibrate(asked, (8,), 0.5)[0].epsilon == pytest.approx(0.5)
    assert calibrate(Crowd(10, 1.0, 0.0), (8,), 8.0)[0].epsilon == pytest.approx(1.0)


def test_calibration_of_drawn_steps_is_joint() -> None:
    asked = Crowd(300, 1.0, 1e-6)
    reports = calibrate(asked, (8, 8, 4), 8.0)
    assert [report.domain for report in reports] == [8, 8, 4]
    assert {type(report) for report in reports} == {KaryResponse}
    assert Blanket(reports).delta(300, 1.0) <= 1e-6
    louder = tuple(KaryResponse.calibrate(1.01 * r.epsilon, r.domain) for r in reports)
    assert Blanket(louder).delta(300, 1.0) > 1e-6
    alone = calibrate(asked._replace(users=100), (8,), 8.0)[0]
    assert reports[0].epsilon > alone.epsilon  # one crowd of 300 against three of 100


def test_equal_steps_are_one_report() -> None:
    report = subset(1.0, 8, 1)
    assert Blanket((report,) * 5).delta(40, 0.3) == pytest.approx(
        Blanket((report,)).delta(40, 0.3), rel=1e-9
    )


def test_what_is_refused() -> None:
    with pytest.raises(InvalidInput, match="subset-selection or k-ary"):
        Blanket((UnaryEncoding.calibrate(1.0, 4),))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="subset-selection or k-ary"):
        Blanket(())
    with pytest.raises(InvalidInput, match="users = 0"):
        crowd(1.0, 4).delta(0, 0.1)
    with pytest.raises(InvalidInput, match="epsilon = -1"):
        crowd(1.0, 4).delta(5, -1.0)
    assert isinstance(calibrate(Crowd(1000, 1.0, 1e-6), (8,), 8.0)[0], KaryResponse)
