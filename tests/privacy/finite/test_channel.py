"""Exact privacy of finite randomizers: brute force, classes of outputs, composition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import listed
from tacit.errors import InvalidInput
from tacit.privacy.finite.bits import BinaryResponse, UnaryEncoding
from tacit.privacy.finite.channel import Channel, Pair
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection

EPSILONS = st.floats(0.01, 12.0)
COIN = [[0.75, 0.25], [0.25, 0.75]]


def test_a_biased_coin_by_hand():
    coin = Channel(COIN)
    assert coin.epsilon == pytest.approx(math.log(3), abs=1e-15)
    assert coin.delta(0.0) == pytest.approx(0.5)
    assert coin.delta(math.log(2)) == pytest.approx(0.25)
    assert coin.delta(math.log(3)) == pytest.approx(0.0, abs=1e-15)


def test_different_supports_mean_no_finite_epsilon_but_a_delta():
    leak = Channel([[0.9, 0.1, 0.0], [0.9, 0.0, 0.1]])
    assert leak.epsilon == math.inf
    assert leak.delta(50.0) == pytest.approx(0.1)


def test_the_order_of_the_pair_matters_and_the_worse_one_is_reported():
    p, q = np.array([0.5, 0.5]), np.array([0.98, 0.02])
    forward = max(0.5 - 2 * 0.98, 0) + max(0.5 - 2 * 0.02, 0)
    backward = max(0.98 - 2 * 0.5, 0) + max(0.02 - 2 * 0.5, 0)
    assert forward > backward
    for rows in ([p, q], [q, p]):
        assert Channel(rows).delta(math.log(2)) == pytest.approx(forward)


def test_an_output_nobody_produces_changes_nothing():
    assert Channel([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]]).epsilon == Channel(COIN).epsilon


@settings(max_examples=25, deadline=None)
@given(EPSILONS, st.integers(2, 8), st.floats(0.0, 3.0))
def test_classes_equal_brute_force(epsilon, domain, at):
    for oracle in (
        SubsetSelection.calibrate(epsilon, domain),
        KaryResponse.calibrate(epsilon, domain),
        UnaryEncoding.calibrate(epsilon, domain),
        UnaryEncoding.calibrate(epsilon, domain, symmetric=True),
    ):
        classes, brute = oracle.channel(), Channel(listed.pmf(oracle))
        assert classes.epsilon == pytest.approx(brute.epsilon, abs=1e-11)
        assert classes.delta(at) == pytest.approx(brute.delta(at), abs=1e-12)
        assert brute.epsilon == pytest.approx(oracle.epsilon, abs=1e-11)


def test_classes_equal_brute_force_for_bits():
    rows = np.array([[0, 0, 0, 1], [1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, 1]])
    response = BinaryResponse.calibrate(1.5, domain=4, differing=2)
    assert max(np.abs(a - b).sum() for a in rows for b in rows) == 2
    brute = Channel(listed.pmf(response, rows))
    assert response.channel().epsilon == pytest.approx(brute.epsilon, abs=1e-13)
    assert response.channel().delta(0.4) == pytest.approx(brute.delta(0.4), abs=1e-14)


@pytest.mark.parametrize("make", [SubsetSelection.calibrate, UnaryEncoding.calibrate])
def test_composition_is_above_the_exact_product_and_close(make):
    oracle = make(0.8, 4)
    rows = listed.pmf(oracle)
    for m in (2, 3):
        several = [
            np.array([math.prod(row[list(outputs)]) for outputs in products(rows.shape[1], m)])
            for row in rows[:2]  # all pairs of cells are alike
        ]
        exact = Channel(np.array(several))
        for at in (0.3, 1.1):
            bound = oracle.channel().composed_delta(m, at)
            assert exact.delta(at) <= bound <= exact.delta(at) + 2e-4 * m


def products(outputs, m):
    return itertools.product(range(outputs), repeat=m)


def test_composition_at_any_size_and_its_limits():
    pair = SubsetSelection.calibrate(0.2, 72).channel()
    assert sum(pair.outputs) == math.comb(72, SubsetSelection.calibrate(0.2, 72).size)
    assert pair.composed_delta(100, 100 * pair.epsilon) == 0.0
    assert pair.composed_delta(1, 0.1) == pytest.approx(pair.delta(0.1), abs=1e-3)


def test_composition_keeps_a_disclosed_output():
    leak = Channel([[0.9, 0.1, 0.0], [0.9, 0.0, 0.1]]).pairs[0]
    assert leak.composed_delta(2, 5.0) == pytest.approx(0.19, abs=1e-6)


@pytest.mark.parametrize(
    ("pmf", "says"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], "sums to 0.9"),
        ([[1.5, -0.5], [0.5, 0.5]], "cannot be negative"),
        ([[math.nan, 1.0], [0.5, 0.5]], "must be finite"),
        ([0.5, 0.5], r"shape \(2,\)"),
        ([[0.5, 0.5]], r"shape \(1, 2\)"),
        ([["a", "b"], ["c", "d"]], "real numbers"),
    ],
)
def test_bad_matrices_are_named(pmf, says):
    with pytest.raises(InvalidInput, match=says):
        Channel(pmf)


HALF = np.log([0.5, 0.5])


@pytest.mark.parametrize(
    ("first", "second", "outputs", "says"),
    [
        (np.log([0.5, 0.4]), HALF, (1, 1), "sums to 0.9"),
        (HALF, np.array([math.nan, 0.0]), (1, 1), "second"),
        (HALF, np.array([0.1, -1.0]), (1, 1), "<= 0"),
        (HALF, HALF, (1,), r"shape \(2,\)"),
        (HALF, HALF, (1, 0), "outputs = 0"),
        (np.array([]), np.array([]), (), "not empty"),
    ],
)
def test_bad_pairs_are_named(first, second, outputs, says):
    with pytest.raises(InvalidInput, match=says):
        Pair(first, second, outputs)


@pytest.mark.parametrize(
    "ask",
    [
        lambda pair: pair.delta(-0.1),
        lambda pair: pair.delta(math.nan),
        lambda pair: pair.composed_delta(0, 1.0),
        lambda pair: pair.composed_delta(2, 0.1, step=0.0),
    ],
)
def test_bad_questions_are_refused(ask):
    with pytest.raises(InvalidInput, match="must be"):
        ask(Channel(COIN).pairs[0])
