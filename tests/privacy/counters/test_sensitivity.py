"""How far replacing one item can move what is published."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.counters.recorded import NAMES, make, rows_of
from tacit.privacy.counters.base import RoundedRows
from tacit.privacy.counters.blt import BufferedToeplitz, blt
from tacit.privacy.counters.normalised import Normalised
from tacit.privacy.counters.toeplitz import Toeplitz
from tacit.privacy.counters.tree import Tree


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[str, np.ndarray, np.ndarray, int]:
    """A counter, two streams that differ in one item, and the bound on their cells."""
    name = draw(st.sampled_from(NAMES))
    n, size = draw(st.integers(1, 40)), draw(st.integers(1, 3))
    largest = draw(st.sampled_from([1, 7, 1000, 2**40]))
    cell = st.integers(-largest, largest)
    seed = draw(st.integers(0, 2**32 - 1))
    stream = np.random.default_rng(seed).integers(-largest, largest + 1, (n, size))
    other = stream.copy()
    position = draw(st.sampled_from([0, n - 1, n // 2, min(1, n - 1)]))
    other[position] = draw(st.lists(cell, min_size=size, max_size=size))
    return name, stream, other, largest


@settings(max_examples=250, deadline=None)
@given(neighbours())
def test_replacing_one_item_never_moves_the_published_rows_further(
    case: tuple[str, np.ndarray, np.ndarray, int],
) -> None:
    # Later items may react to releases: given the same releases they are the same in both worlds.
    name, stream, other, largest = case
    n, size = stream.shape
    counter = make(name, n)
    moved = (rows_of(counter, other) - rows_of(counter, stream)).astype(float)
    distance = float(np.linalg.norm((other - stream).astype(float)))
    allowed = counter.shift(distance, size, largest)
    assert np.linalg.norm(moved) <= allowed * (1 + 1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [7, 8, 9, 33])
def test_the_bound_is_attained_by_the_first_item(name: str, n: int) -> None:
    counter = make(name, n)
    stream, other = np.zeros((2, n, 1), dtype=int)
    other[0] = 10**9
    moved = np.linalg.norm(rows_of(counter, other) - rows_of(counter, stream))
    assert moved == pytest.approx(counter.column_norm() * 1e9, rel=1e-8)


def test_levels_counted_with_ceil_would_be_caught() -> None:
    moved = rows_of(Tree(8), np.eye(8, 1, dtype=int))
    assert np.linalg.norm(moved) == 2.0 > math.sqrt(math.ceil(math.log2(8)))


def test_only_rows_from_the_replaced_position_on_differ() -> None:
    for name in NAMES:
        counter = make(name, 17)
        stream, other = np.zeros((2, 17, 1), dtype=int)
        other[9] = 1000
        moved = np.flatnonzero(rows_of(counter, other) != rows_of(counter, stream))
        assert moved.min() >= counter.nodes(10).start


@pytest.mark.parametrize("name", ["tree", "honaker"])
def test_block_sums_need_no_rounding(name: str) -> None:
    assert make(name, 100).rounding_sensitivity(7, 1000) == 0.0


@pytest.mark.parametrize("counter", [Toeplitz(40), Normalised(40), blt(40, 2), blt(40, 4)])
@pytest.mark.parametrize("largest", [3, 2**30, 2**53 // 40, 2**62 // 40])
def test_rounded_rows_stay_within_the_stated_error_of_the_exact_ones(
    counter: RoundedRows, largest: int
) -> None:
    n, size = counter.length, 2
    rng = np.random.default_rng(5)
    stream = rng.integers(-largest, largest + 1, (n, size))
    stream[:, 1] = largest  # no cancellation
    if isinstance(counter, BufferedToeplitz):
        scales, decays = map(list, (counter.scales, counter.decays))
        c = [Fraction(1)] + [
            sum(Fraction(s) * Fraction(t) ** k for s, t in zip(scales, decays, strict=True))
            for k in range(n - 1)
        ]
    else:
        c = [Fraction(x) for x in counter.coefficients]
    scaled = counter.norms if isinstance(counter, Normalised) else np.ones(n)
    rows = rows_of(counter, stream)
    error = counter.unit_error() * (2 if largest > 2**53 else 1)  # large items are rounded too
    allowed = Fraction(1, 2) + Fraction(largest * error)
    for t in range(n):
        for i in range(size):
            exact = sum(c[t - s] * int(stream[s, i]) / Fraction(scaled[s]) for s in range(t + 1))
            assert abs(int(rows[t, i]) - exact) <= allowed
    expected = math.sqrt(n * size) * (1 + 2 * largest * error)
    assert counter.rounding_sensitivity(size, largest) == expected


@pytest.mark.parametrize("name", ["tree", "honaker"])
def test_block_sums_are_exact_up_to_the_last_unit_of_what_is_allowed(name: str) -> None:
    counter, largest = make(name, 40), 2**62 // 40
    stream = np.full((40, 1), largest)
    other = stream.copy()
    other[3] -= 1
    moved = rows_of(counter, stream) - rows_of(counter, other)
    assert set(np.unique(moved)) == {0, 1}
    assert np.linalg.norm(moved) == np.linalg.norm(counter.factors()[1][:, 3])


def test_rounding_costs_next_to_nothing_on_a_fine_grid() -> None:
    counter, sensitivity = blt(10_000), 2.0**24
    extra = counter.rounding_sensitivity(100, 2**24)
    assert 1000.0 <= extra < 1.02 * 1000.0
    assert extra < 1e-4 * counter.column_norm() * sensitivity
