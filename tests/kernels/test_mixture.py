"""The kernels of value-targeted regression against plain linear algebra."""

import numpy as np
import pytest

import tacit
from tacit.kernels.cholesky import (
    factor,
    factor_or_floor,
    log_determinant,
    solve_lower,
    solve_transposed,
)
from tacit.kernels.public.mixture import (
    FamilyRegression,
    StageRegressions,
    Widths,
    mirror_step,
    transition_induction,
    value_targeted_induction,
    work_space,
)
from tacit.statistics.distances import ISOMETRIC, packed
from tacit.task.features import transition_features


def definite(seed: int, n: int) -> np.ndarray:
    m = np.random.default_rng(seed).normal(size=(n, n))
    return m @ m.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 5, 18])
def test_cholesky_solves(n: int) -> None:
    A, b = definite(n, n), np.arange(1.0, n + 1)
    L, x = np.zeros((n, n)), np.zeros(n)
    assert factor(A, L, 1e-9)
    assert np.allclose(np.tril(L), np.linalg.cholesky(A))
    solve_lower(L, b, x)
    solve_transposed(L, x, x)
    assert np.allclose(A @ x, b)
    assert log_determinant(L) == pytest.approx(np.linalg.slogdet(A)[1])


@pytest.mark.parametrize("shift", [0.5, -1.0, -1e6, np.nan, np.inf])
def test_an_indefinite_or_broken_matrix_is_floored_and_never_fails(shift: float) -> None:
    A = definite(3, 6)
    A[2, 2] += shift
    A[2, 1] += shift
    A[1, 2] = A[2, 1]
    L = np.zeros((6, 6))
    factor_or_floor(A.copy(), L, 1.0)
    repaired = np.tril(L) @ np.tril(L).T
    assert np.isfinite(repaired).all() and np.linalg.eigvalsh(repaired).min() > 1e-3
    if shift == -1.0:
        values, vectors = np.linalg.eigh(A)
        assert np.allclose(repaired, (vectors * np.maximum(values, 1.0)) @ vectors.T)


def specified(task, transitions, widths, reward, H, S, A):
    """docs/papers/mixture_jdp.md#linopt-vi with known rewards, line by line."""
    p = transition_features(task, whole=True)
    V, Q = np.zeros((H + 1, S)), np.zeros((H, S, A))
    rows, columns = np.tril_indices(p.width)
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                value = reward[h, s, a]
                if h < H - 1:
                    weights = np.where(rows == columns, 1.0, 1 / ISOMETRIC)
                    lam = np.zeros((p.width, p.width))
                    lam[rows, columns] = transitions.gram[h, 0] * weights
                    lam = lam + lam.T - np.diag(np.diag(lam)) + widths.shift[h] * np.eye(p.width)
                    theta = np.linalg.solve(lam, transitions.target[h, 0])
                    mid = (V[h + 1].max() + V[h + 1].min()) / 2
                    x = p.phi[s * A + a].T @ (V[h + 1] - mid)
                    length = np.sqrt(x @ np.linalg.solve(lam, x))
                    log = min(np.linalg.slogdet(lam)[1], widths.most[h])
                    stat = widths.spread[h] * np.sqrt(widths.log + log)
                    direct = widths.direct[h] * np.linalg.norm(np.linalg.solve(lam, x))
                    rest = min(widths.fixed[h] * length, direct)
                    value += mid + x @ theta + widths.scale * (stat * length + rest)
                Q[h, s, a] = np.clip(value, 0, H - h)
            V[h, s] = Q[h, s].max()
    return Q, V


@pytest.mark.parametrize("seed", range(3))
def test_the_induction_is_the_specified_one(seed: int) -> None:
    problem = tacit.problem("remap-walk", horizon=4)
    H, S, A = 4, 10, 4
    task = problem.task(users=100, reveal=["reward"])
    p = transition_features(task, whole=True)
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(H - 1, 30, 4))
    gram = np.array([[packed(x, ISOMETRIC).sum(axis=0)] for x in data])
    target = rng.normal(0, 20, size=(H - 1, 1, 4))
    ones = np.ones(H - 1)
    transitions = StageRegressions(gram, target, ones, ones, ISOMETRIC)
    widths = Widths(
        0.3, 1.0, 2 * ones, 0.7 * ones, 3.0, 5.0 * ones, 1.5 * ones, rng.uniform(1, 9, H - 1)
    )
    none = StageRegressions(np.zeros((0, 1, 1)), np.zeros((0, 1, 1)), ones, ones, ISOMETRIC)
    reward = np.broadcast_to(problem.R, (H, S, A)).copy()
    Q, V, reach = np.zeros((H, S, A)), np.zeros((H + 1, S)), np.zeros((2, H - 1))
    blank = np.ones((S * A, 1)), np.zeros(S * A, dtype=np.int64)
    families = (
        FamilyRegression(transitions, widths, p.phi, p.block, work_space(1, 4)),
        FamilyRegression(none, widths, *blank, work_space(1, 1)),
    )
    caps, greedy = np.arange(H, -1, -1.0), np.zeros((0, S, A))
    value_targeted_induction(*families, 0.0, reward, caps, True, greedy, Q, V, reach)
    expected = specified(task, transitions, widths, reward, H, S, A)
    assert np.allclose(Q, expected[0]) and np.allclose(V, expected[1])
    assert len(np.unique(Q[0])) > 10 and np.median(Q[0]) < H
    spread = (V[1:H].max(axis=1) - V[1:H].min(axis=1)) / 2
    assert np.allclose(reach[1], spread)


def test_a_mirror_step_is_exponential_weights() -> None:
    rng = np.random.default_rng(0)
    Q, logits, weights = rng.random((2, 3, 4)), np.zeros((2, 3, 4)), np.zeros((2, 3, 4))
    for _ in range(5):
        mirror_step(logits, Q, np.array([1.0, 500.0]), weights)
    for h, rate in enumerate([5.0, 2500.0]):
        exact = np.exp(rate * (Q[h] - Q[h].max(axis=1, keepdims=True)))
        assert np.allclose(weights[h], exact / exact.sum(axis=1, keepdims=True))
    assert logits.max() == 0.0


def test_transition_planning_recovers_the_optimum_from_exact_counts() -> None:
    problem = tacit.problem("river-swim", states=4, horizon=6)
    counts = 1e9 * problem.P
    Q, V = np.zeros((6, 4, 2)), np.zeros((7, 4))
    reward = np.broadcast_to(problem.R, (6, 4, 2)).copy()
    caps = np.arange(6, -1, -1.0)
    transition_induction(counts, np.zeros_like(counts), reward, caps, 0.1, Q, V)
    assert np.allclose(V, problem.optimal_values(), atol=1e-3)
    blind = np.zeros_like(counts)
    transition_induction(blind, blind, reward, caps, 1.0, Q, V)
    assert (V[:4] >= problem.optimal_values()[:4]).all()
