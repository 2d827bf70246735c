"""The specifications' tables of published noise and of what it truly gives."""

import pytest

from tacit.errors import InvalidInput
from tacit.privacy import published
from tacit.privacy.accounting import gaussian_mu


@pytest.mark.parametrize(
    ("horizon", "epsilon", "scale"), [(2, 0.2, 60.0), (2, 2.0, 6.0), (20, 1.0, 120.0)]
)
def test_tabular_laplace(horizon, epsilon, scale) -> None:
    noise = published.tabular_laplace(horizon, epsilon)
    assert noise.scales["scale"] == pytest.approx(scale)
    assert noise.true_epsilon(0.0) == pytest.approx(epsilon * (6 * horizon - 2) / (6 * horizon))
    assert noise.true_delta(epsilon) == 0.0


@pytest.mark.parametrize(
    ("horizon", "epsilon", "delta0", "sigma", "true_delta"),
    [
        (2, 0.2, 0.1, 46.82, 4.8e-4),
        (2, 2.0, 0.1, 4.682, 0.011),
        (2, 20.0, 0.1, 0.4682, 0.986),
        (20, 1.0, 1e-5, 153.3, 1.02e-4),
    ],
)
def test_tabular_gaussian(horizon, epsilon, delta0, sigma, true_delta) -> None:
    noise = published.tabular_gaussian(horizon, epsilon, delta0)
    assert noise.scales["std"] == pytest.approx(sigma, rel=1e-3)
    assert noise.true_delta(epsilon) == pytest.approx(true_delta, rel=0.02)


def test_tabular_gaussian_as_printed_is_safe_and_wasteful() -> None:
    printed = published.tabular_gaussian(2, 1.0, 1e-5, proof=False)
    tight = 1 / (published.tabular_gaussian(2, 1.0, 1e-5).mu or 1)
    assert printed.true_delta(1.0) < 1e-5
    assert printed.scales["std"] / (4.2426406871 * 3.7306316348) == pytest.approx(7.4, abs=0.05)
    assert tight < 1 / (printed.mu or 1)


def test_tabular_response_and_psrl() -> None:
    assert published.tabular_response(2, 2.0).true_epsilon(0.0) == pytest.approx(2.0 * 10 / 12)
    assert published.tabular_psrl(2, 2.0).scales["scale"] == pytest.approx(8.0)
    assert published.tabular_psrl(2, 2.0).true_epsilon(0.0) == pytest.approx(2.0 * 14 / 16)


@pytest.mark.parametrize(
    ("states", "epsilon", "delta", "sigma", "true_epsilon"),
    [  # docs/papers/mixture_ldp.md#noise-scales: rewards over H, H = 2S, V <= 1
        (3, 1.0, 0.1, 75.975, 0.0),
        (3, 10.0, 0.1, 7.598, 1.714),
        (3, 1.0, 1e-5, 127.994, 0.246),
        (5, 1.0, 0.1, 132.924, 0.0),
        (5, 10.0, 0.1, 13.292, 2.155),
        (5, 1.0, 1e-5, 217.122, 0.294),
    ],
)
def test_mixture_local(states, epsilon, delta, sigma, true_epsilon) -> None:
    noise = published.mixture_local(
        2 * states,
        epsilon,
        delta,
        values=[1.0] * (2 * states - 1),
        states=states,
        rewards_over_horizon=True,
    )
    assert noise.scales["std"] == pytest.approx(sigma, abs=6e-4)
    assert noise.true_epsilon(delta) == pytest.approx(true_epsilon, abs=6e-4)


def test_mixture_local_general_features() -> None:
    noise = published.mixture_local(6, 1.0, 0.01, values=[5.0, 4.0, 3.0, 2.0, 1.0])
    assert noise.scales["std"] == pytest.approx(3304.33, abs=0.01)
    # 26.5 times the 124.64 that a joint analysis of clipped features needs
    least = noise.scales["std"] * noise.mu / gaussian_mu(1.0, 0.01)
    assert least == pytest.approx(124.64, rel=1e-3)


@pytest.mark.parametrize("levels", [1, 14])
@pytest.mark.parametrize(
    ("epsilon", "row"),
    [
        (0.1, [0.049, 0.033, 0.019, 0.012, 0.008]),
        (1.0, [0.609, 0.406, 0.238, 0.159, 0.106]),
        (10.0, [8.23, 5.28, 3.00, 1.98, 1.31]),
        (50.0, [71.9, 41.5, 21.1, 13.1, 8.3]),
    ],
)
def test_mixture_joint(levels, epsilon, row) -> None:
    for horizon, true in zip((1, 2, 5, 10, 20), row, strict=True):
        noise = published.mixture_joint(horizon, epsilon, 1e-5, levels)
        assert noise.true_epsilon(1e-5) == pytest.approx(true, rel=0.01, abs=6e-4)


def test_mixture_joint_scales() -> None:
    """RemapWalk, K = 10^4: r sigma 825.3 at norm 1, p1 330101 at d H^2 = 400."""
    noise = published.mixture_joint(10, 1.0, 1e-5, 14)
    assert noise.scales["std per unit norm"] == pytest.approx(825.3, abs=0.05)
    assert 400 * noise.scales["std per unit norm"] == pytest.approx(330101, abs=1)


@pytest.mark.parametrize(("weight", "one", "ten"), [(1.0, 0.610, 6.89), (1 / 20, 0.0228, 0.244)])
def test_linear_joint(weight, one, ten) -> None:
    for epsilon, true in ((1.0, one), (10.0, ten)):
        noise = published.linear_joint(20, epsilon, 1e-5, weight)
        assert noise.true_epsilon(1e-5) == pytest.approx(true, rel=0.01)


@pytest.mark.parametrize(("horizon", "true"), [(20, 0.639), (25, 1.018), (30, 1.50), (50, 4.54)])
def test_linear_batches_break_their_claim_for_long_horizons(horizon, true) -> None:
    noise = published.linear_batches(10, horizon, 5000, 1.0, 1e-5)
    assert noise.true_epsilon(1e-5) == pytest.approx(true, rel=0.01)


def test_linear_batches_at_ten() -> None:
    noise = published.linear_batches(10, 20, 5000, 10.0, 1e-5)
    assert noise.true_epsilon(1e-5) == pytest.approx(8.23, rel=0.01)


@pytest.mark.parametrize(
    ("horizon", "epsilon", "true"),
    [(20, 1.0, 2.32), (20, 10.0, 32.5), (10, 1.0, 1.70), (5, 1.0, 1.33)],
)
def test_linear_adaptive_breaks_its_claim(horizon, epsilon, true) -> None:
    noise = published.linear_adaptive(horizon, epsilon, 1e-5)
    assert noise.true_epsilon(1e-5) == pytest.approx(true, rel=0.01)


@pytest.mark.parametrize(
    ("gain", "row"),
    [
        (0.6, (0.042, 0.521, 6.92, 28.0)),
        (0.2, (0.051, 0.627, 8.49, 35.4)),
        (0.05, (0.059, 0.732, 10.1, 43.4)),
    ],
)
def test_control_joint(gain, row) -> None:
    for epsilon, true in zip((0.1, 1.0, 10.0, 30.0), row, strict=True):
        noise = published.control_joint(10, gain, epsilon, 1e-5, 10)
        assert noise.true_epsilon(1e-5) == pytest.approx(true, rel=0.012)


def test_control_joint_scales() -> None:
    noise = published.control_joint(10, 0.6, 1.0, 1e-5, 10)
    assert noise.scales["moment std"] == pytest.approx(800.0, abs=0.05)
    assert noise.scales["target std"] == pytest.approx(500.0, abs=0.05)


def test_bad_requests() -> None:
    with pytest.raises(InvalidInput, match="epsilon = 0"):
        published.tabular_laplace(2, 0.0)
    with pytest.raises(InvalidInput, match="delta = 1"):
        published.tabular_gaussian(2, 1.0, 1.0)
