"""Published bonuses on noisy counts: against a solver, formulas written out, and exact planning."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from tacit.kernels.public.joint_tables import (
    Bonus,
    bonus_induction,
    bonus_model,
    consistent_counts,
)
from tacit.task.pairs import make_pairs

NOTHING = Bonus(0.0, -math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def least_change(noisy: np.ndarray, total: float, slack: float) -> float:
    """By linear programming: min t, |x - noisy| <= t, x >= 0, |sum x - total| <= slack."""
    S = len(noisy)
    eye, t, ones = np.eye(S), -np.ones((S, 1)), np.ones((1, S))
    rows = np.block([[eye, t], [-eye, t], [ones, np.zeros((1, 1))], [-ones, np.zeros((1, 1))]])
    limits = np.concatenate([noisy, -noisy, [total + slack], [slack - total]])
    found = linprog(np.eye(S + 1)[-1], rows, limits, bounds=[(0, None)] * (S + 1))
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("seed", range(40))
def test_consistent_counts_change_as_little_as_a_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, slack = int(rng.integers(1, 6)), float(rng.choice([0.0, 0.5, 5.0]))
    noisy = rng.normal(3.0, 6.0, (1, 1, S))
    visits = np.array([[max(-slack, noisy.sum() + rng.normal(0.0, 10.0))]])
    totals, cells = np.empty((1, 1)), np.empty((1, 1, S))
    consistent_counts(slack, visits, noisy, totals, cells)
    x = cells[0, 0] - 2.0 * slack / S
    assert totals[0, 0] == pytest.approx(cells.sum(), abs=1e-9) and x.min() >= -1e-12
    assert abs(x.sum() - visits[0, 0]) <= slack + 1e-9
    best = least_change(noisy[0, 0], visits[0, 0], slack)
    assert np.abs(x - noisy[0, 0]).max() == pytest.approx(best, abs=1e-7)


def test_consistent_counts_are_never_below_the_truth() -> None:
    """With noise within the slack; and within four times the slack of it."""
    rng, slack = np.random.default_rng(0), 3.0
    truth = rng.integers(0, 10, (50, 4, 5)).astype(float)
    noisy = truth + rng.uniform(-slack, slack, truth.shape)
    visits = truth.sum(axis=2) + rng.uniform(-slack, slack, (50, 4))
    totals, cells = np.empty((50, 4)), np.empty(truth.shape)
    consistent_counts(slack, visits, noisy, totals, cells)
    assert (totals >= truth.sum(axis=2)).all()
    assert np.abs(totals - truth.sum(axis=2)).max() <= 4 * slack
    assert np.abs(cells - truth).max() <= 4 * slack


def test_a_count_below_nothing_is_nothing() -> None:
    totals, cells = np.empty((1, 1)), np.empty((1, 1, 3))
    consistent_counts(1.0, np.array([[-5.0]]), np.array([[[2.0, -1.0, 4.0]]]), totals, cells)
    assert totals[0, 0] == 2.0 and cells[0, 0] == pytest.approx([2 / 3] * 3)


def model(visits: float, bonus: Bonus, later: float = 50.0) -> tuple[float, float, float]:
    """Mean next state, optimistic reward and factor of the spread of one pair of two stages."""
    pairs = make_pairs(np.ones((1, 1), dtype=bool))
    counts = np.array([[visits], [later]])
    P, R, spread = np.empty((2, 1, 1)), np.empty((2, 1)), np.empty((2, 1))
    reward = np.array([[7.0], [7.0]])
    bonus_model(pairs.first, reward, counts, counts[:, :, None] / 2, bonus, P, R, spread)
    return P[0, 0, 0], R[0, 0], spread[0, 0]


def test_the_bonus_is_the_formula() -> None:
    b = NOTHING._replace(shift=4.0, root=3.0, back=20.0, one=5.0, two=6.0)
    P, R, spread = model(96.0, b)
    assert (P, spread) == (0.48, 0.0)
    assert R == pytest.approx(0.07 + 3.0 / math.sqrt(80.0) + 0.05 + 6e-4)
    assert model(96.0, b._replace(least=97.0))[1] == math.inf
    P, R, spread = model(-50.0, b)  # the least denominator is 1
    assert (P, R) == (-25.0, pytest.approx(7.0 + 3.0 + 5.0 + 6.0))
    b = NOTHING._replace(spread=2.0, most=10.0, next=200.0, after=500.0)
    P, R, spread = model(100.0, b)
    assert spread == 0.2
    assert R == pytest.approx(0.07 + 0.2 * math.sqrt(0.5 * (200.0 / 50 + 500.0 / 50**2)))
    assert model(100.0, b, later=1.0)[1] == pytest.approx(0.07 + 0.2 * math.sqrt(0.5 * 100.0))


def random_model(seed: int):
    rng = np.random.default_rng(seed)
    S, A, H = 4, 3, 5
    allowed = rng.random((S, A)) < 0.7
    allowed[:3, 0], allowed[3] = True, False  # the last state ends an episode
    pairs = make_pairs(allowed)
    X = len(pairs.action)
    P = rng.dirichlet(np.ones(S), (H, X))
    return pairs, P, rng.random((H, X)), rng


def by_hand(pairs, P, R, spread, weights, caps, end_reward):
    """The same recursion, vectors in place of loops."""
    H, X, S = P.shape
    Q, V = np.zeros((H, X)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        mean = P[h] @ V[h + 1]
        variance = np.maximum(P[h] @ V[h + 1] ** 2 - mean**2, 0.0)
        ahead = mean + spread[h] * np.sqrt(variance) if h < H - 1 else 0.0
        Q[h] = np.clip(R[h] + ahead, 0.0, caps[h])
        for s in range(S):
            own = slice(pairs.first[s], pairs.first[s + 1])
            if own.start == own.stop:
                V[h, s] = (H - h) * end_reward
            elif len(weights):
                V[h, s] = weights[h, s, pairs.action[own]] @ Q[h, own]
            else:
                V[h, s] = Q[h, own].max()
    return Q, V


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mirror", [False, True])
def test_the_induction_is_the_recursion(seed: int, mirror: bool) -> None:
    pairs, P, R, rng = random_model(seed)
    P = P + rng.normal(0.0, 0.2, P.shape)  # noisy means are no laws
    R[0, 1] = np.inf
    H, X, S = P.shape
    spread, caps = rng.random((H, X)), np.arange(H, 0.0, -1.0)
    weights = rng.dirichlet(np.ones(3), (H, S)) if mirror else np.zeros((0, 1, 1))
    Q, V = np.empty((H, X)), np.empty((H + 1, S))
    bonus_induction(pairs.first, pairs.action, P, R, spread, weights, caps, 0.25, Q, V)
    expected = by_hand(pairs, P, R, spread, weights, caps, 0.25)
    assert pytest.approx(expected[0]) == Q and pytest.approx(expected[1]) == V
    assert Q[0, 1] == caps[0]
