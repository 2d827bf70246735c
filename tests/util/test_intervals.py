"""The Student t interval of a mean, and what an interval decides."""

import numpy as np
from scipy import stats

from tacit.util.intervals import Interval, half_width, mean_interval


def test_mean_interval_is_students() -> None:
    found = mean_interval(np.array([1.0, 2.0, 3.0, 6.0]))
    expected = stats.t.interval(0.95, 3, 3.0, stats.sem([1, 2, 3, 6]))
    assert found.value == 3.0 and np.allclose([found.low, found.high], expected)
    assert mean_interval(np.array([2.0])) == Interval(2.0, -np.inf, np.inf)


def test_ends_stay_above_what_is_least_and_coverage_is_kept() -> None:
    apart = np.array([0.0, 1.0])
    assert mean_interval(apart).low < 0.0
    found = mean_interval(apart, least=0.0)
    assert found.low == 0.0 and found.high == mean_interval(apart).high
    rng = np.random.default_rng(3)
    for runs in rng.exponential(size=(500, 4)):  # the same truths are covered
        cut, whole = mean_interval(runs, least=0.0), mean_interval(runs)
        assert (cut.low <= 1.0 <= cut.high) == (whole.low <= 1.0 <= whole.high)


def test_half_widths_go_over_the_first_axis() -> None:
    samples = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [6.0, 5.0]])
    found = mean_interval(samples[:, 0], confidence=0.9)
    assert np.allclose(half_width(samples, 0.1), [found.high - found.value, 0.0])


def test_exponentials_keep_the_order_and_do_not_overflow() -> None:
    assert Interval(0.0, -np.inf, np.inf).exponential() == Interval(1.0, 0.0, np.inf)


def test_an_interval_decides_only_what_lies_outside() -> None:
    found = Interval(1.0, 0.8, 1.2)
    assert [found.below(x) for x in (0.7, 1.1, 1.3)] == [False, None, True]
    assert [found.above(x) for x in (0.7, 1.1, 1.3)] == [True, None, False]
    assert found.within(0.8, 1.2) is True and found.within(1.3, 2.0) is False
    assert found.within(0.9, 1.2) is None and found.within(0.1, 0.7) is False
