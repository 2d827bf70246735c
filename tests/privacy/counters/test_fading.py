"""The fading counter: rows are C x + z, the charge is exact, weights come from rows alone."""

import math

import numpy as np
import pytest

from tacit.errors import InvalidInput
from tacit.privacy.counters.fading import Fading

ALPHA = 1 / 1.15
NOISE = 1000.0


def fading(length: int, pairs: int = 1, width: int = 2, alone: int = 0) -> Fading:
    """Pairs with some cells each, their totals, and cells of no pair."""
    groups = np.concatenate([np.repeat(np.arange(pairs), width), np.arange(pairs)])
    groups = np.concatenate([groups, np.full(alone, -1)])
    return Fading(length, ALPHA, NOISE, groups, pairs * width + np.arange(pairs))


def rows(counter: Fading, stream: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
    """What is published."""
    state = counter.init(stream.shape[1], int(np.abs(stream).max()) + 1)
    noise = np.zeros(stream.shape, dtype=np.int64) if noise is None else noise
    out = []
    for item in stream:
        counter.step(state, item, lambda node: noise[node])
        out.append(state.public["row"].copy())
    return np.array(out)


def test_rows_are_faded_sums_to_half_a_step() -> None:
    counter, rng = fading(30), np.random.default_rng(0)
    stream = rng.integers(-(2**30), 2**30, size=(30, 3))
    _, C = counter.factors()
    assert np.abs(rows(counter, stream) - C @ stream).max() <= 0.5 + 1e-4
    assert np.array_equal(counter.expected(stream), rows(counter, stream))


def test_replacing_one_item_never_moves_the_rows_further() -> None:
    rng = np.random.default_rng(1)
    for n in (1, 2, 7, 40):
        counter = fading(n)
        for largest in (1, 1000, 2**40):
            stream = rng.integers(-largest, largest + 1, size=(n, 3))
            for position in {0, n // 2, n - 1}:
                other = stream.copy()
                other[position] = rng.integers(-largest, largest + 1, size=3)
                moved = np.linalg.norm((rows(counter, other) - rows(counter, stream)).astype(float))
                allowed = counter.shift(float(np.linalg.norm(other - stream)), 3, largest)
                assert moved <= allowed * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 5, 33])
def test_the_first_item_attains_the_column_norm(n: int) -> None:
    counter = fading(n)
    stream = np.zeros((n, 3), dtype=np.int64)
    stream[0, 0] = 10**12
    assert np.linalg.norm(rows(counter, stream)) == pytest.approx(counter.column_norm() * 1e12)
    closed = math.sqrt((1 - ALPHA ** (2 * n)) / (1 - ALPHA**2))
    assert counter.column_norm() == pytest.approx(closed)


def test_what_is_released_is_a_function_of_published_rows() -> None:
    """Two streams and two noises with the same rows: the same releases, bit for bit."""
    counter, rng = fading(6, pairs=2, alone=1), np.random.default_rng(2)
    stream = rng.integers(0, 10**6, size=(6, 7))
    noise = rng.integers(-2000, 2000, size=(6, 7))
    other = stream.copy()
    other[2] += rng.integers(0, 1000, size=7)
    shift = counter.expected(stream) - counter.expected(other)
    found = []
    for data, drawn in ((stream, noise), (other, noise + shift)):
        state = counter.init(7, 2 * 10**6)
        found.append([counter.step(state, item, lambda k, z=drawn: z[k])[0] for item in data])
    assert np.array_equal(found[0], found[1])


def test_a_pair_seen_long_ago_keeps_its_signal_and_growing_batches_their_share() -> None:
    """Cells have the noise of one row; growing batches keep 1 / (1 + alpha) of one release."""
    n, users, rng = 40, 1.15 ** np.arange(40) * 1e6, np.random.default_rng(3)
    counter = fading(n)
    stream = np.zeros((n, 3), dtype=np.int64)
    stream[:, 0] = stream[:, 2] = users
    quiet = counter.init(3, 2**40)
    for item in stream:
        released, _ = counter.step(quiet, item, lambda k: np.zeros(3, dtype=np.int64))
    signal = released[0] / counter.column_norm()
    assert signal / users.sum() == pytest.approx(1 / (1 + ALPHA), rel=0.02)
    once = np.zeros((n, 3), dtype=np.int64)
    once[3] = [10**6, 0, 10**6]
    ends = []
    for _ in range(300):
        state, noise = counter.init(3, 2**40), rng.normal(0, NOISE, size=(n, 3)).astype(np.int64)
        for item in once:
            released, _ = counter.step(state, item, lambda k, z=noise: z[k])
        ends.append(released[:2])
    first, empty = np.array(ends).T
    assert first.mean() >= 0.99e6 and empty.mean() == pytest.approx(0.0, abs=5 * NOISE / 300**0.5)
    assert empty.std() == pytest.approx(NOISE, rel=0.15) and first.std() < 1.15 * NOISE


@pytest.mark.parametrize(("total", "shown"), [(0.5, 0), (1.0, 0), (1.25, 1), (3.0, 1)])
def test_one_row_is_released_as_it_is_if_its_total_exceeds_the_noise(total, shown) -> None:
    counter = fading(2)
    item = np.array([600, -20, int(total * NOISE)])
    nothing = np.zeros(3, dtype=np.int64)
    released, _ = counter.step(counter.init(3, 10**6), item, lambda node: nothing)
    assert released == pytest.approx(shown * item)


def test_it_goes_on_from_a_saved_state_bit_for_bit() -> None:
    counter, rng = fading(5, pairs=2, alone=2), np.random.default_rng(4)
    stream, noise = rng.integers(0, 9999, size=(5, 8)), rng.integers(-999, 999, size=(5, 8))
    state, other = counter.init(8, 9999), counter.init(8, 9999)
    for k, item in enumerate(stream):
        whole, _ = counter.step(state, item, lambda k: noise[k])
        other = counter.from_arrays(other.to_arrays(), 8, 9999)
        resumed, _ = counter.step(other, item, lambda k: noise[k])
        assert np.array_equal(whole, resumed), k
    with pytest.raises(InvalidInput, match="all of them were made"):
        counter.close(state, whole, stream[0], lambda k: noise[0])


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        Fading(3, 1.0, 1.0, np.zeros(2, dtype=int), np.zeros(1, dtype=int))
    with pytest.raises(InvalidInput, match="groups are named for 3 cells"):
        fading(3).init(4, 10)


def test_rows_of_a_pair_are_added_by_their_weights_at_the_noise_of_one() -> None:
    """Weights are what a row's total shows beyond the noise; fixed rows, added up by hand."""
    counter = fading(2, width=1)
    stream = np.array([[600, 3000], [0, 0]], dtype=np.int64)
    state, nothing = counter.init(2, 10**6), np.zeros(2, dtype=np.int64)
    for item in stream:
        released, _ = counter.step(state, item, lambda node: nothing)
    found, levels = rows(counter, stream), np.array([3000.0, 3000.0 * ALPHA])
    weights = levels / NOISE - 1.0
    assert released == pytest.approx(weights @ found / np.linalg.norm(weights), rel=1e-5)
