"""The tight widths: their formulas, and that they cover what they should."""

import math

import numpy as np
import pytest

from dense import dense
from tacit.kernels.public.obi import (
    EPOCH_GROWTH,
    KINDS,
    WIDTHS,
    BonusRule,
    CellNoise,
    Tails,
    first_bonus,
    obi_tails,
    tail,
)


def tails(kind: str, scale: float, n: int, next_scale: float | None = None) -> Tails:
    noise = CellNoise(KINDS[kind], scale, scale if next_scale is None else next_scale)
    return obi_tails(noise, n, (2, 2, 3), 0.1)


def test_variance_proxies_by_kind() -> None:
    n = 500
    assert tails("laplace", 4.0, n)[:3] == pytest.approx(
        (EPOCH_GROWTH * n * 32, EPOCH_GROWTH * n * 32, 4.0)
    )
    assert tails("gaussian", 4.0, n)[:3] == pytest.approx(
        (EPOCH_GROWTH * n * 16, EPOCH_GROWTH * n * 16, 0)
    )
    bits = tails("randomized-response", 4.0, n)
    assert bits[:3] == pytest.approx((EPOCH_GROWTH * n * 12, EPOCH_GROWTH * n * 8, 0))
    radii = tails("bounded", 4.0, n, 5.0)
    assert radii[:2] == pytest.approx(
        (EPOCH_GROWTH * n * 16 / 2 / math.e, EPOCH_GROWTH * n * 25 / 2 / math.e)
    )
    assert tails("none", 0.0, n)[:3] == (0.0, 0.0, 0.0)


def test_the_logarithm_counts_epochs_and_not_users() -> None:
    for n in (0, 1, 10, 10**6, 10**12):
        epoch = 1 + math.floor(math.log(max(3 * n, 1)) / math.log(EPOCH_GROWTH))
        expected = math.log(4 * 2 * 2 * 3 * epoch * (epoch + 1) / 0.1)
        assert tails("laplace", 1.0, n).log == pytest.approx(expected)
    assert tails("laplace", 1.0, 10**6).log < 17


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "bounded", "randomized-response"])
def test_the_proxy_bounds_the_moment_generating_function(kind: str) -> None:
    """E exp(t z) <= exp(v t^2 / (2 (1 - c t))) for one report's noise, on a grid of t."""
    horizon, p = 3, 0.6
    if kind == "randomized-response":
        scale = 1 / (2 * p - 1)
        bit = scale * np.array([-p, 1 - p])  # a debiased zero: (y - q) / (p - q) with q = 1 - p
        chances = [p, 1 - p]
        bit = scale * (np.array([0.0, 1.0]) - (1 - p))
    one = tails(kind, scale if kind == "randomized-response" else 2.0, 1)
    proxy = one.visits / EPOCH_GROWTH
    for t in np.linspace(0.01, 0.45, 12):
        if kind == "laplace":
            mgf = 1 / (1 - 4 * t**2)
        elif kind == "gaussian":
            mgf = math.exp(2 * t**2)
        elif kind == "bounded":
            y = np.linspace(-0.9999, 0.9999, 200_001)
            f = np.exp(-np.exp(np.minimum(1 / (1 - y**2), 700)))
            mgf = float(np.sum(f * np.exp(2 * t * y)) / np.sum(f))
        else:
            mgf = float(np.dot(chances, np.exp(t * bit))) ** horizon
        assert math.log(mgf) <= proxy * t**2 / (2 * (1 - one.linear * t)) * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_noise_stays_inside_for_all_times(kind: str) -> None:
    """300 noise paths of 3000 reports: none leaves its width at any time (allowed: a share of
    0.1 / 12 of them, over all times)."""
    rng = np.random.default_rng(0)
    draws = rng.laplace(size=(300, 3000)) if kind == "laplace" else rng.normal(size=(300, 3000))
    paths = np.abs(np.cumsum(draws, axis=1))
    widths = []
    for n in range(1, 3001):
        now = tails(kind, 1.0, n)
        widths.append(tail(now.visits, now.linear, now.log))
    assert (paths <= np.array(widths)).all()
    assert (paths > 0.35 * np.array(widths)).any()  # and the width is not idle


def specified(reward, visits, transitions, now: Tails, H: int):
    """docs/papers/tabular_ldp.md#b7 in plain numpy: bounds on r and on p V, no shift, (H - h)."""
    S, A = visits.shape[1:]
    Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))

    def width(proxy, linear):
        return math.sqrt(2 * proxy * now.log) + linear * now.log

    for h in range(H - 1, -1, -1):
        v = V[h + 1]
        span = v.max() - v.min()
        spread = max(((v - v.min()) ** 2).sum(), ((v - v.max()) ** 2).sum())
        for s in range(S):
            for a in range(A):
                N, row = visits[0, s, a], transitions[0, s, a]
                if N <= 0 or (h < H - 1 and row.sum() <= 0):
                    Q[h, s, a] = H - h
                    continue
                most = max(1.0, N + width(now.visits, now.linear))
                Q[h, s, a] = reward[0, s, a] + math.sqrt(EPOCH_GROWTH * most * now.log / 2)
                Q[h, s, a] = (Q[h, s, a] + width(2 * now.visits, now.linear)) / N
                if h < H - 1:
                    most = max(1.0, row.sum() + width(S * now.cell, now.linear))
                    up = row @ v + span * math.sqrt(EPOCH_GROWTH * most * now.log / 2)
                    up += width(spread * now.cell, span * now.linear)
                    Q[h, s, a] += up / row.sum()
        V[h] = np.minimum(H - h, Q[h].max(axis=1))
    return Q, V


@pytest.mark.parametrize("seed", range(8))
def test_the_kernel_is_the_specified_recursion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [rng.normal(200, 300, (1, 2, 2)) for _ in range(2)]
    tables.append(rng.normal(100, 200, (1, 2, 2, 2)))
    now = tails("laplace", 3.0, 50)
    Q, V = np.empty((3, 2, 2)), np.empty((4, 2))
    dense.tight_induction(*tables, now, Q, V)
    plain_Q, plain_V = np.empty_like(Q), np.empty_like(V)
    dense.tight_induction.py_func(*tables, now, plain_Q, plain_V)
    assert np.array_equal(plain_Q, Q) and np.array_equal(plain_V, V)
    expected = specified(*tables, now, 3)
    assert np.allclose(Q, expected[0]) and np.allclose(V, expected[1])


def test_one_entry_for_all_widths() -> None:
    """The same tables, three rules, three different sets of values; the first bonus shrinks."""
    rng = np.random.default_rng(1)
    tables = [rng.normal(4e4, 300, (1, 2, 2)) for _ in range(2)]
    tables.append(rng.normal(2e4, 200, (1, 2, 2, 2)))
    noise, found = CellNoise(KINDS["laplace"], 0.5, 0.5), {}
    bonus = {}
    for name, width in WIDTHS.items():
        Q, V = np.empty((2, 2, 2)), np.empty((3, 2))
        dense.obi_values(*tables, noise, 10**5, BonusRule(width, 2.0, 0.1), Q, V)
        found[name] = Q
        bonus[name] = first_bonus(noise, 10**5, (2, 2, 2), BonusRule(width, 2.0, 0.1))
    assert (found["paper"] > found["corrected"]).all()
    assert (found["corrected"] > found["tight"]).all()
    assert bonus["paper"] > bonus["corrected"] > bonus["tight"] > 0
