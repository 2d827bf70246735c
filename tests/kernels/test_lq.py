"""Formulas of linear control against slower or independent computations."""

import numpy as np
import pytest

from tacit.kernels.excitation import direction_sums, directions, uniform_at
from tacit.kernels.public import lq
from tacit.kernels.public.lq_learning import Start, expected_moments, regret_curvature
from tacit.kernels.public.lq_optimism import project
from tacit.kernels.raw.lq_rollout import LinearTruth, lq_start, lq_step
from tacit.problems import make_problem

THERMAL = make_problem("lq-thermal")


def random_model(rng, n=3, d=2):
    theta = rng.normal(size=(n + d, n))
    return theta / np.linalg.norm(theta)


def optimal(theta, H, setting):
    n = theta.shape[1]
    gains, P = np.empty((H, len(theta) - n, n)), np.empty((H + 1, n, n))
    gradient = np.empty_like(theta)
    return lq.optimal_cost_gradient(theta, setting, gains, P, gradient), gradient, gains


def test_the_gradient_is_that_of_the_optimal_cost() -> None:
    rng = np.random.default_rng(0)
    theta, step = random_model(rng), 1e-6
    costs, X = (np.eye(3), 0.3 * np.eye(2)), np.diag([1.0, 0.2, 0.1])
    setting = lq.ControlCosts(*costs, 0.01 * np.eye(3), X)
    _, gradient, _ = optimal(theta, 7, setting)
    for i in range(5):
        for j in range(3):
            up, down = theta.copy(), theta.copy()
            up[i, j] += step
            down[i, j] -= step
            slope = optimal(up, 7, setting)[0] - optimal(down, 7, setting)[0]
            assert slope / (2 * step) == pytest.approx(gradient[i, j], abs=1e-8)


def test_uncertain_models_get_the_gains_of_the_average_cost() -> None:
    """With H = 2 the averaged cost is a plain quadratic, minimised here by hand."""
    rng = np.random.default_rng(1)
    theta, sigma = random_model(rng), np.diag([0.1, 0.2, 0.05, 0.3, 0.02])
    Q, R = np.diag([1.0, 2.0, 0.5]), 0.3 * np.eye(2)
    gains, P = np.empty((2, 2, 3)), np.empty((3, 3, 3))
    lq.riccati(theta, sigma, lq.ControlCosts(Q, R, Q, Q), gains, P)
    G = theta @ Q @ theta.T + np.trace(Q) * sigma
    G[:3, :3] += Q
    G[3:, 3:] += R
    assert np.allclose(gains[0], -np.linalg.solve(G[3:, 3:], G[3:, :3]))
    assert not gains[1].any() and np.allclose(P[1], Q)


def test_gains_are_capped_in_spectral_norm() -> None:
    rng = np.random.default_rng(2)
    for shape in ((4, 1, 3), (4, 2, 3), (4, 3, 3), (4, 3, 1)):
        gains = rng.normal(size=shape)
        before = gains.copy()
        lq.cap_gains(gains, 0.8)
        for K, whole in zip(gains, before, strict=True):
            assert np.linalg.norm(K, 2) == pytest.approx(min(0.8, np.linalg.norm(whole, 2)))
            assert np.allclose(K * np.linalg.norm(whole), whole * np.linalg.norm(K))


def test_expected_moments_are_those_of_simulated_users() -> None:
    system, rng = THERMAL, np.random.default_rng(3)
    gains = 0.5 * system.optimal_gains()
    mean, spread = np.empty((24, 6)), np.empty((4, 6))
    start = Start(system.starts[0], np.zeros((4, 4)))
    none = np.zeros((24, 2))
    expected_moments(system.theta, gains, none, 0.0, start, system.noise_covariance, mean, spread)
    from tacit.policies.linear import LinearPolicy

    users = [system.rollout(LinearPolicy(gains), rng) for _ in range(2000)]
    x = np.array([user.states[:-1] for user in users])
    z = np.concatenate([x, np.array([user.actions for user in users])], axis=2)
    assert np.allclose(z.mean(axis=0), mean, atol=0.01)
    off = x - x.mean(axis=0)
    assert np.allclose(np.einsum("khi,khj->ij", off, z) / 2000, spread, atol=0.01)


def test_curvature_predicts_the_cost_of_small_errors() -> None:
    system, rng = THERMAL, np.random.default_rng(4)
    gamma, size = np.empty((6, 6)), 1e-3
    setting = system.setting
    regret_curvature(system.theta, 24, setting, 1e-5, gamma)
    root = rng.normal(size=(6, 6))
    sigma, losses, none = size**2 * root @ root.T, [], np.zeros(24)
    for _ in range(400):
        off = size * root @ rng.normal(size=(6, 4))
        _, _, gains = optimal(system.theta + off, 24, setting)
        moments = np.empty((25, 4, 4))
        cost = lq.policy_cost(system.theta, setting, gains, 1.0, none, moments)
        losses.append(cost - system.optimal_cost())
    assert np.mean(losses) == pytest.approx(np.trace(gamma @ sigma), rel=0.25)


def test_projection_is_the_nearest_feasible_point() -> None:
    rng = np.random.default_rng(5)
    met = 0
    for _ in range(60):
        lam, T = rng.uniform(0.2, 5.0, 4), 0.6 * rng.normal(size=(4, 2))
        outside, radius = rng.normal(size=(4, 2)), rng.uniform(0.1, 1.0)
        Y = outside.copy()
        meets = project(Y, T, lam, radius, np.empty((4, 3)))
        if not meets:
            continue
        met += 1

        def square(M, lam=lam):
            return (lam[:, None] * M**2).sum()

        assert square(Y - T) <= radius**2 * (1 + 1e-9) and np.linalg.norm(Y) <= 1 + 1e-9
        for _ in range(300):
            other = Y + 0.1 * rng.normal(size=(4, 2))
            if square(other - T) <= radius**2 and np.linalg.norm(other) <= 1:
                assert square(other - outside) >= square(Y - outside) - 1e-9
    assert met > 20


def test_excitation_is_a_function_of_its_key_and_looks_random() -> None:
    """Means and correlations within 5 standard errors."""
    draws = np.array([[uniform_at(7, user, cell) for cell in range(20)] for user in range(2000)])
    assert draws.min() > 0 and draws.max() < 1
    assert np.abs(draws.mean(axis=0) - 0.5).max() < 5 * np.sqrt(1 / 12 / 2000)
    correlation = np.corrcoef(draws.T) - np.eye(20)
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)
    assert uniform_at(7, 3, 4) == draws[3, 4] != uniform_at(8, 3, 4)
    for d in (1, 2, 3):
        q, total, squares = np.empty((5, d)), np.empty((5, d)), np.empty((d, d))
        directions(11, 0, q)
        assert np.allclose(np.linalg.norm(q, axis=1), 1.0)
        direction_sums(11, 0, 1, total, squares)
        assert np.array_equal(total, q) and np.allclose(squares, q.T @ q)
        direction_sums(11, 0, 4000, total, squares)
        assert np.abs(total).max() < 5 * np.sqrt(4000)
        assert np.allclose(squares / 20_000, np.eye(d) / d, atol=0.03)


def test_plain_python_gives_the_same_excitation() -> None:
    if not hasattr(uniform_at, "py_func"):
        pytest.skip("no compiler here")
    for key, user, cell in ((0, 0, 0), (2**62, 2**40, 100), (12345, 678, 9)):
        assert uniform_at.py_func(key, user, cell) == uniform_at(key, user, cell)


def truth(starts) -> LinearTruth:
    rng = np.random.default_rng(5)
    Q, R = np.diag([1.0, 2.0, 0.5]), np.array([[0.3, 0.1], [0.1, 0.2]])
    return LinearTruth(random_model(rng), 0.1 * np.eye(3), np.asarray(starts, dtype=float), Q, R)


def test_a_step_costs_its_quadratic_form() -> None:
    rng, of = np.random.default_rng(6), truth(np.zeros((1, 3)))
    x, u, after = rng.normal(size=3), rng.normal(size=2), np.empty(3)
    cost = lq_step(of, x, u, np.full(5, 0.1), after)
    assert cost == pytest.approx(x @ of.Q @ x + u @ of.R @ u)


def test_starts_are_equally_likely() -> None:
    """By the quartiles of the normal law."""
    of, x = truth(np.arange(12).reshape(4, 3)), np.empty(3)
    for g, row in (
        (-9.0, 0),
        (-0.7, 0),
        (-0.6, 1),
        (-0.1, 1),
        (0.1, 2),
        (0.6, 2),
        (0.7, 3),
        (9, 3),
    ):
        lq_start(of, float(g), x)
        assert np.array_equal(x, of.starts[row])
