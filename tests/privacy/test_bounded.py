"""Bounded noise: its law, its true delta against other ways to compute it, and the goldens."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tacit.errors import InvalidInput
from tacit.kernels.raw.noise import fill_bounded
from tacit.privacy.bounded import (
    VARIANCE,
    bounded_delta,
    calibrate_radius,
    log_density,
    paper_radius,
    tabular_delta,
    tabular_shifts,
)

ROOT2 = math.sqrt(2)


def raw(y):
    return math.exp(-math.exp(1 / (1 - y * y))) if abs(y) < 0.999 else 0.0


MASS = integrate.quad(raw, -1, 1, epsabs=1e-14)[0]


def test_the_law_against_direct_integration():
    variance = integrate.quad(lambda y: y * y * raw(y) / MASS, -1, 1, epsabs=1e-14)[0]
    assert pytest.approx(variance, abs=1e-11) == VARIANCE
    assert pytest.approx(0.0819532, abs=5e-8) == VARIANCE
    assert math.sqrt(VARIANCE) == pytest.approx(0.28627, rel=3e-5)
    x = np.array([-2.0, -0.97, 0.0, 0.5, 1.0])
    assert np.exp(log_density(x)) == pytest.approx([raw(v) for v in x], rel=1e-12)


def test_samples_follow_the_density():
    """Seeded; Kolmogorov-Smirnov at 1e-6, and noise of 0.9 or 1.1 times the radius is refused."""
    whole = np.zeros(20_000, dtype=np.int64)
    fill_bounded(np.full(20_000, 2e9), np.random.default_rng(5), whole)
    draws = whole / 1e9
    assert np.abs(draws).max() < 2.0
    grid = np.linspace(-1, 1, 4001)
    cdf = integrate.cumulative_simpson([raw(y) for y in grid], x=grid, initial=0) / MASS

    def fit(radius):
        return stats.kstest(draws, lambda x: np.interp(x / radius, grid, cdf)).pvalue

    assert fit(2.0) > 1e-6 > max(fit(1.8), fit(2.2))
    error = VARIANCE * 4 * math.sqrt(2 / 20_000)
    assert abs(draws.var() - VARIANCE * 4) < 6 * error


def test_the_acceptance_rate_is_the_stated_one():
    assert math.exp(math.e) * MASS / 2 == pytest.approx(0.4165, abs=1e-4)


def test_compiled_and_plain_python_agree():
    out = []
    for function in (fill_bounded, fill_bounded.py_func):
        values, rng = np.zeros(200, dtype=np.int64), np.random.default_rng(6)
        function(np.full(200, 1.5e6), rng, values)
        out.append((values.tolist(), rng.random()))
    assert out[0] == out[1]


def one_cell(radius, shift, epsilon):
    """delta of a single shifted cell: the likelihood ratio is monotone, so one threshold."""
    move = shift / radius

    def gain(y):
        return max(raw(y) - math.exp(epsilon) * raw(y - move), 0.0) / MASS

    low, high = -1.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        beyond = abs(middle - move) < 0.999 and gain(middle) <= 0.0
        low, high = (low, middle) if beyond else (middle, high)
    return integrate.quad(gain, -1, low, epsabs=1e-14, epsrel=1e-10, limit=500)[0]


@pytest.mark.parametrize(
    ("radius", "shift", "epsilon"),
    [(10.0, 1.0, 0.0), (10.0, 1.0, 0.2), (4.0, 2.0, 2.0), (30.0, 2.0, 0.5), (1.5, 2.0, 5.0)],
)
def test_one_cell_against_direct_integration(radius, shift, epsilon):
    exact = one_cell(radius, shift, epsilon)
    bound = bounded_delta([radius], [shift], epsilon)
    assert exact - 1e-13 <= bound <= exact * 1.002 + 1e-11
    assert bounded_delta([radius], [-shift], epsilon) == bound


@pytest.mark.parametrize("second", [9.0, 400.0])
@pytest.mark.parametrize("points", [16, 4096])
def test_two_cells_against_direct_integration(second, points):
    """Also with noises of very different loss, and on a grid too coarse to be tight."""
    radii, shifts, epsilon = np.array([6.0, second]), np.array([2.0, 1.0]), 1.0
    y = (np.arange(3000) + 0.5) / 1500 - 1
    laws = []
    for move in shifts / radii:
        here = np.array([raw(v) for v in y]) / MASS / 1500
        laws.append((here, np.array([raw(v - move) for v in y]) / MASS / 1500))
    (a, b), (c, d) = laws
    exact = np.maximum(np.outer(a, c) - math.exp(epsilon) * np.outer(b, d), 0).sum()
    bound = bounded_delta(radii, shifts, epsilon, points)
    assert exact * (1 - 1e-6) <= bound <= exact * (1.002 if points > 16 else 2.0)


def test_a_finer_grid_only_tightens():
    radii, shifts = np.array([36.3] * 4 + [36.3 * ROOT2] * 2), [2, 2, 2, 2, 1, 1]
    deltas = [bounded_delta(radii, shifts, 0.2, points=p) for p in (256, 1024, 4096, 16384)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[2] <= deltas[3] * 1.001


GOLDEN = [  # epsilon, C = 1 with eps' = eps / (3H): R1 and true delta; with eps' = eps
    (0.2, 91.05, 0.0167, 15.17, 0.324),
    (2.0, 9.105, 0.276, 1.517, 1.000),
    (20.0, 0.910, 1.000, 0.152, 1.000),
]


@pytest.mark.parametrize(("epsilon", "divided", "first", "whole", "second"), GOLDEN)
def test_true_delta_of_the_published_radii(epsilon, divided, first, whole, second):
    """The coarser numbers of docs/papers/tabular_ldp.md#bounded-noise, up to 17% too high."""
    for budget, radius, delta in ((epsilon / 6, divided, first), (epsilon, whole, second)):
        published = paper_radius(budget, 0.1, states=2, actions=2)
        assert published == pytest.approx(radius, rel=2e-3)
        measured = tabular_delta(published, ROOT2, 2, epsilon)
        assert delta / 1.17 <= measured <= delta * 1.001


def test_at_epsilon_20_integer_counts_are_disclosed():
    """The support is shorter than a count: docs/papers/tabular_ldp.md#e7."""
    radius = paper_radius(20 / 6, 0.1, 2, 2)
    assert radius < 1.0
    assert bounded_delta([radius], [2.0], 20.0) == 1.0
    assert tabular_delta(radius, ROOT2, 2, 20.0) == 1.0


@pytest.mark.parametrize(
    ("epsilon", "delta", "needed", "std"),
    [
        (0.2, 0.1, 36.30, 10.39),
        (0.2, 1e-5, 633.9, 181.5),
        (2.0, 0.1, 13.74, 3.93),
        (2.0, 1e-5, 97.97, 28.0),
        (20.0, 0.1, 6.71, 1.92),
        (20.0, 1e-5, 25.38, 7.27),
    ],
)
def test_needed_radii(epsilon, delta, needed, std):
    radius = calibrate_radius(epsilon, delta, horizon=2, ratio=ROOT2)
    assert needed / 1.17 <= radius <= needed * 1.001
    assert std / 1.17 <= math.sqrt(VARIANCE) * radius <= std * 1.003
    assert tabular_delta(radius, ROOT2, 2, epsilon) <= delta  # private
    assert tabular_delta(radius * 0.999, ROOT2, 2, epsilon) > delta  # and not wasteful
    assert tabular_delta(radius / 2, ROOT2, 2, epsilon) > 1.5 * delta  # halved noise is caught


def patterns(horizon, S=2, A=2, rewards=(0.0, 0.5, 1.0)):
    """All shifts one replaced trajectory can cause: sorted sizes in (R, Nr) and in Np."""
    tables = set()
    for steps in itertools.product(itertools.product(range(S), range(A), rewards), repeat=horizon):
        reward, visits = np.zeros((2, S, A))
        transitions = np.zeros((S, A, S))
        for h, (s, a, r) in enumerate(steps):
            reward[s, a] += r
            visits[s, a] += 1
            if h < horizon - 1:
                transitions[s, a, steps[h + 1][0]] += 1
        tables.add((tuple(reward.ravel()), tuple(visits.ravel()), tuple(transitions.ravel())))
    found = set()
    for x, y in itertools.combinations(sorted(tables), 2):
        moves = [np.abs(np.subtract(a, b)) for a, b in zip(x, y, strict=True)]
        one = tuple(sorted(np.concatenate(moves[:2]), reverse=True))
        found.add((one, tuple(sorted(moves[2], reverse=True))))
    return found


def below(p, q):
    return all((np.array(a) <= np.array(b)).all() for a, b in zip(p, q, strict=True))


def test_undominated_patterns_and_the_worst_of_them():
    """S = A = H = 2: three remain, and (2,2,2,2 | 1,1) is worst at every radius and epsilon."""
    found = patterns(2)
    top = [p for p in found if not any(p != q and below(p, q) for q in found)]
    assert len(top) == 3
    first, second = tabular_shifts(2)
    worst = (tuple(first) + (0.0,) * 4, tuple(second) + (0.0,) * 6)
    assert worst in top
    for epsilon, radius in itertools.product((0.0, 0.2, 2.0, 20.0), (0.9, 3.0, 14.0, 60.0)):
        limit = tabular_delta(radius, ROOT2, 2, epsilon)
        for one, two in top:
            radii = [radius] * len(one) + [radius * ROOT2] * len(two)
            assert bounded_delta(radii, one + two, epsilon) <= limit * 1.002 + 2e-12


def test_no_pattern_of_three_steps_is_worse():
    found = patterns(3, rewards=(0.0, 1.0))
    top = [p for p in found if not any(p != q and below(p, q) for q in found)]
    for epsilon, radius in ((0.2, 20.0), (2.0, 6.0), (20.0, 5.0)):
        limit = tabular_delta(radius, ROOT2, 3, epsilon)
        for one, two in top:
            radii = [radius] * len(one) + [radius * ROOT2] * len(two)
            assert bounded_delta(radii, one + two, epsilon, 512) <= limit * 1.05 + 2e-12


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 3.0), st.floats(0.1, 3.0), st.floats(0.0, 5.0), st.floats(2.0, 40.0))
def test_two_shifts_are_never_worse_than_their_sum(a, b, epsilon, radius):
    """The lemma behind the worst pattern, for log-concave noise."""
    together = bounded_delta([radius], [a + b], epsilon)
    apart = bounded_delta([radius, radius], [a, b], epsilon)
    assert apart <= together * 1.005 + 2e-12


@settings(max_examples=30, deadline=None)
@given(st.floats(0.0, 10.0), st.floats(0.5, 50.0), st.integers(1, 5))
def test_delta_falls_with_radius_and_epsilon_and_grows_with_the_horizon(epsilon, radius, horizon):
    here = tabular_delta(radius, 1.5, horizon, epsilon)
    assert 0.0 <= here <= 1.0
    slack = 1.01 * here + 2e-12
    assert tabular_delta(radius * 1.3, 1.5, horizon, epsilon) <= slack
    assert tabular_delta(radius, 1.5, horizon, epsilon + 0.5) <= slack
    assert tabular_delta(radius, 1.5, horizon + 1, epsilon) >= here / 1.01 - 2e-12


def test_a_delta_is_at_most_one() -> None:
    """Also where what is rounded up would make it more."""
    for shift in (1.5, 1.9, 1.99, 2.0, 50.0):
        assert 0.9 < bounded_delta([1.0] * 9, [shift] * 9, 0.0) <= 1.0


def test_nothing_moves_nothing_leaks_and_one_step_has_no_transitions():
    assert bounded_delta([3.0, 3.0], [0.0, 0.0], 0.5) == 0.0
    assert bounded_delta([3.0, 3.0], [1.0, 0.0], 0.5) == bounded_delta([3.0], [1.0], 0.5)
    assert bounded_delta([1e5], [1e-3], 0.0) < 1e-7
    assert [s.tolist() for s in tabular_shifts(1)] == [[1.0] * 4, [0.0] * 2]
    assert tabular_delta(5.0, 0.1, 1, 0.5) == tabular_delta(5.0, 9.0, 1, 0.5)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: bounded_delta([1.0, 2.0], [1.0], 1.0), "shape"),
        (lambda: bounded_delta([[1.0]], [[1.0]], 1.0), "shape"),
        (lambda: bounded_delta([0.0], [1.0], 1.0), "radius must be > 0"),
        (lambda: bounded_delta([math.nan], [1.0], 1.0), "finite"),
        (lambda: bounded_delta([1.0], [math.inf], 1.0), "finite"),
        (lambda: bounded_delta([1.0], [1.0], -1.0), "epsilon = -1"),
        (lambda: bounded_delta([1.0], [1.0], 501.0), "epsilon = 501"),
        (lambda: bounded_delta([1.0], [1.0], 1.0, points=3), "points = 3"),
        (lambda: tabular_delta(0.0, 1.0, 2, 1.0), "radius = 0"),
        (lambda: tabular_delta(1.0, -1.0, 2, 1.0), "ratio = -1"),
        (lambda: tabular_shifts(0), "horizon = 0"),
        (lambda: calibrate_radius(1.0, 0.0, 2, 1.0), "delta = 0"),
        (lambda: calibrate_radius(1.0, 1.0, 2, 1.0), "delta = 1"),
        (lambda: calibrate_radius(math.nan, 0.1, 2, 1.0), "epsilon = nan"),
        (lambda: paper_radius(0.0, 0.1, 2, 2), "epsilon = 0"),
        (lambda: paper_radius(1.0, 0.1, 0, 2), "states = 0"),
    ],
)
def test_bad_input_is_named(ask, says):
    with pytest.raises(InvalidInput, match=says):
        ask()
