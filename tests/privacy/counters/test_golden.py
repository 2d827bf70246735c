"""Numbers of docs/papers/mixture_jdp.md#counter-errors, lq_jdp.md and linear_jdp.md there."""

import math

import numpy as np
import pytest

from privacy.counters.recorded import make
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.counters.blt import blt
from tacit.privacy.counters.toeplitz import Toeplitz
from tacit.privacy.counters.tree import Honaker, Tree

# docs/papers/mixture_jdp.md#counter-errors: worst and rms over all prefixes.
TABLE = {
    17: {"tree": (4.472, 3.208), "honaker": (3.723, 2.668), "toeplitz": (1.963, 1.815)},
    100: {"tree": (6.481, 4.725), "honaker": (5.154, 3.734), "toeplitz": (2.531, 2.371)},
    1_000: {"tree": (9.487, 7.027), "honaker": (7.282, 5.357), "toeplitz": (3.265, 3.102)},
    10_000: {"tree": (13.491, 9.511), "honaker": (10.112, 7.131), "toeplitz": (3.998, 3.836)},
}
BLT = {
    17: {2: (1.964, 1.816), 3: (1.964, 1.816)},
    100: {2: (2.537, 2.373), 3: (2.532, 2.371)},
    1_000: {2: (3.321, 3.133), 3: (3.282, 3.123), 4: (3.265, 3.103)},
    10_000: {2: (4.216, 3.990), 3: (4.033, 3.859), 4: (4.003, 3.840)},
}


def worst_and_rms(name: str, n: int) -> tuple[float, float]:
    counter = make(name, n)
    stds = np.array([counter.error_std(t) for t in range(1, n + 1)]) * counter.column_norm()
    return stds.max(), math.sqrt((stds**2).mean())


@pytest.mark.parametrize("n", TABLE)
def test_error_at_equal_privacy(n: int) -> None:
    for name, expected in TABLE[n].items():
        assert worst_and_rms(name, n) == pytest.approx(expected, abs=6e-4), name


@pytest.mark.parametrize("n", BLT)
def test_error_at_equal_privacy_of_buffered_counters(n: int) -> None:
    for buffers, expected in BLT[n].items():
        found = worst_and_rms(f"blt-{buffers}", n)
        if (n, buffers) == (1_000, 3):  # the table has a local optimum there; ours is below it
            expected = (3.2699, 3.1056)
        assert found == pytest.approx(expected, rel=0.005), buffers
        assert found[0] <= BLT[n][buffers][0] * 1.0005


def test_long_buffered_counters() -> None:
    for buffers, worst in ((2, 5.297), (3, 4.854), (4, 4.758)):  # errors grow with t
        counter = blt(100_000, buffers)
        assert counter.column_norm() * counter.error_std(100_000) == pytest.approx(worst, rel=5e-4)


def test_control_paper_numbers() -> None:
    assert worst_and_rms("tree", 999) == pytest.approx((9.49, 7.03), abs=0.005)
    assert worst_and_rms("honaker", 999) == pytest.approx((7.28, 5.36), abs=0.005)
    assert worst_and_rms("toeplitz", 999) == pytest.approx((3.26, 3.10), abs=0.005)
    assert Toeplitz(17).column_norm() ** 2 == pytest.approx(1.96, abs=0.005)
    assert Toeplitz(23).column_norm() ** 2 == pytest.approx(2.06, abs=0.005)
    for one, n, released in (
        *((98.13, 1_000, 320.4), (13.15, 10_000, 52.57), (196.3, 10_000, 784.7)),
        *((98.13, 17, 192.7), (13.15, 23, 27.10), (316.6, 23, 652.4)),
    ):
        assert one * Toeplitz(n).column_norm() ** 2 == pytest.approx(released, rel=1e-3)


def test_linear_paper_numbers() -> None:
    assert Toeplitz(13).column_norm() ** 2 == pytest.approx(1.877, abs=5e-4)


def test_worst_error_of_the_mixture_example() -> None:
    # docs/papers/mixture_jdp.md#noise-scales: four statistics, nine steps, (1, 1e-5).
    per_unit = math.sqrt(4 * 9) / gaussian_mu(1.0, 1e-5)
    assert worst_and_rms("tree", 9_999)[0] * per_unit == pytest.approx(302, abs=0.5)
    assert worst_and_rms("toeplitz", 9_999)[0] * per_unit == pytest.approx(89.5, abs=0.05)


@pytest.mark.parametrize(
    ("n", "tree", "root"), [(128, 56, 6.8), (1024, 110, 10.7), (4096, 156, 13.8)]
)
def test_worst_variance_of_the_field_study(n: int, tree: float, root: float) -> None:
    assert worst_and_rms("tree", n)[0] ** 2 == pytest.approx(tree)
    assert worst_and_rms("toeplitz", n)[0] ** 2 == pytest.approx(root, abs=0.05)


def test_the_normalised_root_has_less_noise_in_every_prefix() -> None:
    """docs/papers/mixture_jdp.md#normalised-root: worst and mean variance at equal privacy."""
    for n, worst, mean in ((17, 3.248, 2.982), (100, 5.526, 5.131), (1024, 9.491, 8.948)):
        found = worst_and_rms("normalised", n)
        assert (found[0] ** 2, found[1] ** 2) == pytest.approx((worst, mean), abs=6e-4)
        one, other = make("normalised", n), make("toeplitz", n)
        for t in range(1, n + 1):
            most = other.column_norm() * other.error_std(t)
            assert one.column_norm() * one.error_std(t) <= most * (1 + 1e-12)
    assert worst_and_rms("toeplitz", 1024)[0] ** 2 == pytest.approx(10.710, abs=6e-4)
    assert worst_and_rms("toeplitz", 1024)[1] ** 2 == pytest.approx(9.671, abs=6e-4)
    last = [make(name, 1024) for name in ("normalised", "toeplitz")]
    ends = [(c.column_norm() * c.error_std(1024)) ** 2 for c in last]
    assert ends == pytest.approx([6.894, 10.710], abs=6e-4)


def test_example_coefficients_of_the_mixture_paper() -> None:
    t, a = (0.99984868, 0.99471715, 0.86430171), (0.99899418, 0.97254620, 0.46157915)
    ours = blt(10_000, 3)
    np.testing.assert_allclose(1 - ours.decays, 1 - np.array(t), rtol=0.01)
    np.testing.assert_allclose(1 - ours.poles[1:], 1 - np.array(a), rtol=0.01)
    assert ours.column_norm() * ours.error_std(10_000) == pytest.approx(4.0333, abs=1e-3)


@pytest.mark.parametrize("counter", [Tree(1000), Honaker(1000), Toeplitz(1000), blt(1000)])
def test_one_charge_for_the_whole_stream(counter: Tree) -> None:
    shift = counter.column_norm() * 70.0 + counter.rounding_sensitivity(5, 100)
    assert counter.shift(70.0, size=5, largest=100) == shift
