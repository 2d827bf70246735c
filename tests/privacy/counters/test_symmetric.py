"""Symmetric matrices as vectors of equal norm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import InvalidInput
from tacit.privacy.counters import pack, packed_size, unpack

VECTORS = st.integers(1, 5).flatmap(
    lambda d: arrays(float, packed_size(d), elements=st.floats(-1e6, 1e6, allow_subnormal=False))
)


@given(VECTORS)
def test_packing_is_an_isometry_with_an_inverse(vector: np.ndarray) -> None:
    matrix = unpack(vector)
    assert np.array_equal(matrix, matrix.T)
    np.testing.assert_allclose(pack(matrix), vector, rtol=1e-15, atol=1e-300)
    np.testing.assert_allclose(unpack(pack(matrix)), matrix, rtol=1e-15, atol=1e-300)
    assert np.linalg.norm(matrix) == pytest.approx(np.linalg.norm(vector), rel=1e-12, abs=1e-140)


def test_order_and_weights() -> None:
    packed = pack(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]]))
    root = np.sqrt(2)
    np.testing.assert_allclose(
        packed, [1, 2 * root, 3 * root, 4, 5 * root, 6], rtol=1e-15, atol=1e-300
    )


def test_a_replaced_user_moves_the_vector_by_the_frobenius_distance() -> None:
    rng = np.random.default_rng(2)
    users = rng.normal(size=(20, 4))
    old, new = (pack(np.outer(x, x)) for x in rng.normal(size=(2, 4)))
    others = pack(users.T @ users)
    x, y = np.eye(4)[:2]
    worst = np.linalg.norm(pack(np.outer(x, x)) - pack(np.outer(y, y)))
    assert worst == pytest.approx(np.sqrt(2))  # orthogonal unit vectors
    moved = np.linalg.norm((others + old) - (others + new))
    assert moved == pytest.approx(np.linalg.norm(unpack(old) - unpack(new)), rel=1e-12)


def test_leading_axes_are_kept_and_rounding_asymmetry_is_averaged_out() -> None:
    stages = np.stack([np.eye(3), 2 * np.eye(3)])[None]
    assert pack(stages).shape == (1, 2, 6)
    np.testing.assert_array_equal(unpack(pack(stages)), stages)
    almost = np.array([[1.0, 0.3 + 1e-12], [0.3, 1.0]])
    assert pack(almost)[1] == pytest.approx((0.3 + 0.5e-12) * np.sqrt(2), rel=1e-15)


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.array([[1.0, np.nan], [np.nan, 1.0]]),
        np.ones((2, 3)),
        np.ones(4),
        np.ones((0, 0)),
        "abc",
    ],
)
def test_what_is_not_a_symmetric_matrix_is_refused(matrix: object) -> None:
    with pytest.raises(InvalidInput, match="matrix"):
        pack(matrix)  # type: ignore[arg-type]


@pytest.mark.parametrize("vector", [np.ones(2), np.ones(4), np.ones(0), 1.0, np.full(3, np.inf)])
def test_what_is_not_a_packed_vector_is_refused(vector: object) -> None:
    with pytest.raises(InvalidInput, match="vector"):
        unpack(vector)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="dimension = 0"):
        packed_size(0)
