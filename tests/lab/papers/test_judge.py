"""Verdicts say "not decided" exactly where the limit is within the error."""

import math

import numpy as np
import pytest

from papers.made_up import runs
from tacit_lab.figures.judge import bend, growth, jackknife, mean, second_half

SAME = [100.0, 120.0, 90.0, 110.0]


def test_two_standard_errors_of_a_mean() -> None:
    found = mean(np.array([1.0, 2.0, 3.0, 4.0]))
    error = np.std([1, 2, 3, 4], ddof=1) / 2
    assert (found.low, found.high) == pytest.approx((2.5 - 2 * error, 2.5 + 2 * error))
    assert mean(np.array([3.0])).below(1e9) is None


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    samples = np.random.default_rng(5).normal(size=(12, 3))
    found = jackknife([samples], lambda left: float(left[0][:, 1].mean()))
    plain = mean(samples[:, 1])
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    alone = jackknife([samples[:1]], lambda left: 0.0)
    assert math.isinf(alone.high) and alone.below(5.0) is None


def test_exponents_have_errors_where_problems_differ() -> None:
    alike = growth(runs("a", SAME, power=0.5))
    assert alike.value == pytest.approx(0.5) and alike.within(0.49, 0.51) is True
    mixed = runs("b", SAME, power=0.5)
    other = runs("c", SAME, power=1.0)
    object.__setattr__(mixed, "results", (*mixed.results[:2], *other.results[2:]))
    wide = growth(mixed)
    assert 0.5 < wide.value < 1.0 and wide.below(0.8) is None
    assert bend(other, runs("d", SAME, power=0.5)).above(0.4) is True
    assert bend(mixed, mixed).above(0.0) is None


def test_one_problem_is_judged_by_its_runs() -> None:
    found = growth(runs("a", [100.0], power=0.7, spread=0.2))
    assert found.value == pytest.approx(0.7) and found.high == pytest.approx(0.7)


def test_the_second_half() -> None:
    """Checkpoints at 100 and 1000: the middle of 1000 users is known at 100 only."""
    assert second_half(runs("a", SAME, power=1.0)).value == pytest.approx(9.0)
    assert second_half(runs("a", SAME, power=0.0)).value == pytest.approx(0.0)
