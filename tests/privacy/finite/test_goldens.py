"""Numbers of docs/papers/tabular_ldp.md#noise-scales and docs/papers/mixture_ldp.md#b3."""

import itertools
import math

import numpy as np
import pytest

from contracts import listed
from tacit.privacy.finite.bits import BinaryResponse, UnaryEncoding
from tacit.privacy.finite.channel import Channel
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection

ONE_STEP = [  # epsilon, S, H, H sqrt(v), Np cell, visits N_h(s), inside / outside
    (0.2, 2, 2, 17.56, 22.98, 26.5, 0.99),
    (2.0, 2, 2, 1.145, 1.558, 2.02, 3.9),
    (20.0, 2, 2, 9.1e-5, 1.3e-4, 1.8e-4, 7.0),
    (1.0, 6, 20, 37.7, 52.94, 120.0, 1.3),
]


@pytest.mark.parametrize(("epsilon", "S", "H", "cell", "transition", "visits", "inside"), ONE_STEP)
def test_one_step_reports(epsilon, S, H, cell, transition, visits, inside):
    """Cells are (s, rho, s'): column "one step" of docs/papers/tabular_ldp.md#noise-scales."""
    oracle = SubsetSelection.calibrate(epsilon, 2 * S**2)
    assert H * math.sqrt(oracle.variance_outside) == pytest.approx(cell, rel=5e-3)
    elsewhere = listed.covariance(oracle, 0)[-2 * S :, -2 * S :]
    assert H * math.sqrt(elsewhere[:2, :2].sum()) == pytest.approx(transition, rel=2e-2)
    assert H * math.sqrt(elsewhere.sum()) == pytest.approx(visits, rel=1e-2)
    assert oracle.variance_inside / oracle.variance_outside == pytest.approx(inside, rel=2e-2)


def test_chosen_sizes():
    sizes = {e: SubsetSelection.calibrate(e, 8).size for e in (0.2, 2.0, 20.0)}
    assert sizes == {0.2: 4, 2.0: 1, 20.0: 1}
    assert SubsetSelection.calibrate(1.0, 72).size == 19
    assert SubsetSelection.calibrate(2.0, 8).own == KaryResponse.calibrate(2.0, 8).own


def test_subset_selection_against_unary_bits():
    """D = 9 (S = 3, on-policy support)."""
    subset, unary = SubsetSelection.calibrate(1.0, 9), UnaryEncoding.calibrate(1.0, 9)
    assert subset.variance_outside == pytest.approx(2.69, abs=5e-3)
    assert unary.variance_outside == pytest.approx(3.68, abs=5e-3)
    assert subset.variance_inside == pytest.approx(4.21, abs=5e-3)
    assert unary.variance_inside == pytest.approx(4.68, abs=5e-3)
    subset, unary = SubsetSelection.calibrate(10.0, 9), UnaryEncoding.calibrate(10.0, 9)
    assert subset.variance_inside == pytest.approx(3.6e-4, rel=2e-2)
    assert unary.variance_inside == pytest.approx(1.0, abs=5e-3)
    for epsilon, std in ((1.0, 4.29), (10.0, 0.030)):  # one of H - 1 = 5 stages: unary's figure
        variance = UnaryEncoding.calibrate(epsilon, 9).variance_outside
        assert math.sqrt(5 * variance) == pytest.approx(std, rel=5e-3)


@pytest.mark.parametrize("domain", [8, 10])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0])
def test_the_worst_ratio_is_exactly_epsilon(domain, epsilon):
    pmf = listed.pmf(SubsetSelection.calibrate(epsilon, domain))
    assert Channel(pmf).epsilon == pytest.approx(epsilon, abs=1e-12)
    assert len(set(np.round(pmf.ravel(), 14))) == 2  # two values, one ratio


def test_a_small_epsilon_costs_four_over_its_square():
    """v -> 4 ((D-1)/D)^2 / eps^2 as eps -> 0."""
    for domain in (8, 72):
        variance = SubsetSelection.calibrate(1e-4, domain).variance_outside
        assert variance * 1e-8 == pytest.approx(4 * ((domain - 1) / domain) ** 2, rel=1e-3)


def trajectories(horizon, S=2, A=2):
    step = itertools.product(range(S), range(A), (0, 1))
    return list(itertools.product(step, repeat=horizon))


def bits(trajectory, S=2, A=2):
    """Reward, visit and transition indicators of every step: Algorithm 5's row of bits."""
    H = len(trajectory)
    reward, visit = np.zeros((2, H, S, A), dtype=np.int64)
    transition = np.zeros((H - 1, S, A, S), dtype=np.int64)
    for h, (s, a, rho) in enumerate(trajectory):
        reward[h, s, a], visit[h, s, a] = rho, 1
        if h < H - 1:
            transition[h, s, a, trajectory[h + 1][0]] = 1
    return np.concatenate([reward.ravel(), visit.ravel(), transition.ravel()])


def test_trajectory_bits_over_all_trajectories_one_step():
    """H = 1: all eight rows, all 2^8 outputs; the ratio is (6H - 2) eps0, not 6H eps0."""
    rows = np.array([bits(t) for t in trajectories(1)])
    response = BinaryResponse.calibrate(1.0, rows.shape[1], differing=4)
    assert Channel(listed.pmf(response, rows)).epsilon == pytest.approx(
        4 * response.epsilon_per_bit, abs=1e-12
    )
    assert response.epsilon == pytest.approx(1.0, abs=1e-12) and response.epsilon <= 1.0


def test_trajectory_bits_over_all_trajectories_two_steps():
    """H = 2: all pairs of 64 rows; bits that agree cancel, the others are enumerated."""
    rows = [bits(t) for t in trajectories(2)]
    apart = {int(np.abs(x - y).sum()) for x, y in itertools.combinations(rows, 2)}
    assert max(apart) == 6 * 2 - 2
    whole = BinaryResponse.calibrate(2.0, len(rows[0]), differing=10)
    worst = 0.0
    for m in apart:
        part = BinaryResponse(m, m, whole.truth)
        pair = np.array([np.zeros(m, dtype=np.int64), np.ones(m, dtype=np.int64)])
        worst = max(worst, Channel(listed.pmf(part, pair)).epsilon)
    assert worst == pytest.approx(10 * whole.epsilon_per_bit, abs=1e-12)
    assert worst == pytest.approx(whole.epsilon, abs=1e-12)
    assert whole.channel().epsilon == pytest.approx(worst, abs=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "H", "paper", "tight"),
    [(0.2, 2, 60.00, 50.00), (2.0, 2, 5.993, 4.992), (20.0, 2, 0.5358, 0.4255)]
    + [(1.0, 20, 523.1, 514.3)],
)
def test_response_noise_on_a_transition_count(epsilon, H, paper, tight):
    for differing, std in ((6 * H, paper), (6 * H - 2, tight)):
        response = BinaryResponse.calibrate(epsilon, differing, differing)
        assert math.sqrt((H - 1) * response.variance_outside) == pytest.approx(std, rel=2e-4)
        e = math.exp(epsilon / differing)
        assert response.variance_outside == pytest.approx(e / (e - 1) ** 2, rel=1e-9)


@pytest.mark.parametrize(("H", "m", "level"), [(2, 1, 10), (20, 1, 118)])
def test_the_local_level_of_the_shuffle_variant(H, m, level):
    """(2H (m + 2) - 2) eps_b, not about H eps_b: docs/papers/tabular_ldp.md#e12."""
    response = BinaryResponse.calibrate(0.1 * level, level, differing=2 * H * (m + 2) - 2)
    assert response.epsilon_per_bit == pytest.approx(0.1, rel=1e-9)
