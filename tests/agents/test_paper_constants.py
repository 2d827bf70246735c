"""Noise as the papers have it, against the tables of docs/papers."""

import math

import pytest

from tacit.agents import paper_constants


@pytest.mark.parametrize(
    ("horizon", "epsilon", "scale"), [(2, 0.2, 60.0), (2, 2.0, 6.0), (20, 1.0, 120.0)]
)
def test_tabular_laplace(horizon, epsilon, scale) -> None:
    assert paper_constants.tabular_laplace(horizon, epsilon) == pytest.approx(scale)
    four = paper_constants.tabular_laplace(horizon, epsilon, tables=4)
    assert four == pytest.approx(8 * horizon / epsilon)
    assert paper_constants.tabular_bit(horizon, epsilon) == pytest.approx(1 / scale)


@pytest.mark.parametrize(
    ("horizon", "epsilon", "delta", "sigma"),
    [(2, 0.2, 0.1, 46.82), (2, 2.0, 0.1, 4.682), (2, 20.0, 0.1, 0.4682), (20, 1.0, 1e-5, 153.3)],
)
def test_tabular_gaussian(horizon, epsilon, delta, sigma) -> None:
    c = paper_constants.tabular_gaussian(delta, "proof")
    assert c * horizon / epsilon == pytest.approx(sigma, rel=1e-3)
    assert paper_constants.tabular_gaussian(delta, "proposition") == pytest.approx(c**2)


@pytest.mark.parametrize(
    ("states", "epsilon", "delta", "sigma"),
    [  # docs/papers/mixture_ldp.md#noise-scales: rewards over H, H = 2S, V <= 1
        (3, 1.0, 0.1, 75.975),
        (3, 10.0, 0.1, 7.598),
        (3, 1.0, 1e-5, 127.994),
        (5, 1.0, 0.1, 132.924),
        (5, 10.0, 0.1, 13.292),
        (5, 1.0, 1e-5, 217.122),
    ],
)
def test_mixture_local(states, epsilon, delta, sigma) -> None:
    found = paper_constants.mixture_local(2 * states, epsilon, delta, small_values=True)
    assert found == pytest.approx(sigma, abs=6e-4)


def test_mixture_local_with_large_values() -> None:
    found = paper_constants.mixture_local(6, 1.0, 0.01, small_values=False)
    assert found == pytest.approx(3304.33, abs=0.01)


def test_mixture_joint() -> None:
    """RemapWalk, K = 10^4: r sigma 825.3 at norm 1, p1 330101 at d H^2 = 400."""
    found = paper_constants.mixture_joint(10, 1.0, 1e-5, 14)
    assert found == pytest.approx(825.3, abs=0.05)
    assert 400 * found == pytest.approx(330101, abs=1)


def test_control_joint() -> None:
    assert paper_constants.control_joint(10, 0.6, 1.0, 1e-5, 10) == pytest.approx(
        (800.0, 500.0), abs=0.05
    )


def test_the_claim_of_shuffling_needs_many_users() -> None:
    assert paper_constants.shuffle_claim(2, 10, 0.5, 1e-6) == math.inf
