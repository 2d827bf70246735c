"""What a planner of linear systems works out about models it has in mind; no data reach it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.public.lq import (
    ControlCosts,
    closed_loop,
    linear_step,
    policy_cost,
    product,
    riccati,
    spectral_norm,
    start_cost,
)


class Served(NamedTuple):
    """Public facts of the batches served so far, stacked; j counts batches, p = n instruments."""

    users: Array  # [j]
    gains: Array  # [j, H, d, n]
    amplitude: Array  # [j]
    pushes: Array  # sums over users of q_h [j, H, d]
    squares: Array  # sums over users and steps of q q^T [j, d, d]
    reference: Array  # [j, D, n]
    path: Array  # [j, H, n]
    whitener: Array  # [j, n, n]
    instruments: Array  # [j, H, p]
    weights: Array  # [j, 4]
    misfit: Array  # variance that the reference's error was expected to add to a residual [j]
    response: Array  # released sums in natural units [j, p, n]
    cross: Array  # [j, n, n]
    excited: Array  # [j, d, n]
    residual: Array  # [j, n, n]; of no size where the noise law was revealed


class Projection(NamedTuple):
    """What residuals are taken against, and what they are projected on."""

    reference: Array  # Theta_ref [D, n]
    path: Array  # m [H, n]
    whitener: Array  # T [n, n]
    instruments: Array  # phi [H, p]


class ResponseBlocks(NamedTuple):
    """Responses of users, block by block."""

    response: Array  # phi^T e [S, p, n]
    cross: Array  # T sum_h (x_h - m_h) e_h^T [S, n, n]
    excited: Array  # q^T e [S, d, n]
    squares: Array  # sum_h q_h q_h^T [S, d, d]
    residual: Array  # sum_h e_h e_h^T [S, n, n]


class Start(NamedTuple):
    """Mean and covariance of the first state."""

    mean: Array
    covariance: Array


@kernel
def expected_moments(
    theta: Array,
    gains: Array,
    pushes: Array,
    variance: float,
    start: Start,
    W: Array,
    mean: Array,
    spread: Array,
) -> None:
    """Mean of z_h [H, D] under a model, and sum_h Cov(x_h) [I, K_h^T] [n, D].

    Args:
        theta: the model [D, n].
        gains: K_h [H, d, n].
        pushes: mean open-loop input at every step [H, d].
        variance: of every entry of the excitation.
        start: of the first state.
        W: noise covariance.
        mean: filled.
        spread: filled.
    """
    H, d, n = gains.shape
    x = start.mean.copy()
    S = start.covariance.copy()
    C = np.empty((n, n))
    CS = np.empty((n, n))
    spread[:] = 0.0
    for h in range(H):
        for i in range(n):
            mean[h, i] = x[i]
        for a in range(d):
            total = pushes[h, a]
            for j in range(n):
                total += gains[h, a, j] * x[j]
            mean[h, n + a] = total
        closed_loop(theta, gains[h], C)
        for i in range(n):
            for j in range(n):
                spread[i, j] += S[i, j]
            for a in range(d):
                for j in range(n):
                    spread[i, n + a] += S[i, j] * gains[h, a, j]
        for i in range(n):
            x[i] = 0.0
            for j in range(n + d):
                x[i] += theta[j, i] * mean[h, j]
        product(C, S, CS)
        for i in range(n):
            for j in range(n):
                total = W[i, j]
                for k in range(n):
                    total += CS[i, k] * C[j, k]
                for a in range(d):
                    total += variance * theta[n + a, i] * theta[n + a, j]
                S[i, j] = total


@kernel
def _standardise(
    G: Array, target: Array, theta: Array, reference: Array, variance: float, out: Array
) -> None:
    """What target has beyond G (Theta - Theta_ref), in standard deviations."""
    rows, D = G.shape
    for r in range(rows):
        for j in range(target.shape[1]):
            total = target[r, j]
            for k in range(D):
                total -= G[r, k] * (theta[k, j] - reference[k, j])
            out[r, j] = total / np.sqrt(variance)


@kernel
def misfits(
    theta: Array, served: Served, start: Start, W: Array, noise_std: float, out: Array
) -> None:
    """What all batches released beyond what Theta predicts, in standard deviations [j, 2n + d, n].

    The expected sum of (instrument) e^T over a batch is G (Theta - Theta_ref), with G the expected
    sum of (instrument) z^T: a public function of the model.
    """
    batches = served.users.shape[0]
    D, n = theta.shape
    d = D - n
    H = served.path.shape[1]
    w = 0.0
    for i in range(n):
        w += W[i, i] / n
    mean = np.empty((H, D))
    spread = np.empty((n, D))
    pushes = np.empty((H, d))
    crossed = np.empty((n, D))
    G = np.empty((n, D))
    Gq = np.empty((d, D))
    out[:] = 0.0
    for b in range(batches):
        N = served.users[b]
        amplitude = served.amplitude[b]
        reference = served.reference[b]
        for h in range(H):
            for a in range(d):
                pushes[h, a] = amplitude * served.pushes[b, h, a] / N
        variance = amplitude**2 / d
        expected_moments(theta, served.gains[b], pushes, variance, start, W, mean, spread)
        noise = w + served.misfit[b]
        G[:] = 0.0
        Gq[:] = 0.0
        crossed[:] = spread
        for h in range(H):
            for i in range(n):
                lead = N * served.instruments[b, h, i]
                gap = mean[h, i] - served.path[b, h, i]
                for k in range(D):
                    G[i, k] += lead * mean[h, k]
                    crossed[i, k] += gap * mean[h, k]
            for a in range(d):
                for k in range(n):
                    Gq[a, k] += served.pushes[b, h, a] * mean[h, k]
                for c in range(d):
                    Gq[a, n + c] += served.pushes[b, h, a] * (mean[h, n + c] - pushes[h, c])
        variance = (noise_std / served.weights[b, 0]) ** 2 + N * noise
        _standardise(G, served.response[b], theta, reference, variance, out[b, :n])
        for i in range(n):
            for k in range(D):
                G[i, k] = 0.0
                for j in range(n):
                    G[i, k] += N * served.whitener[b, i, j] * crossed[j, k]
        variance = (noise_std / served.weights[b, 1]) ** 2 + N * noise
        _standardise(G, served.cross[b], theta, reference, variance, out[b, n : 2 * n])
        if amplitude > 0.0:
            for a in range(d):
                for c in range(d):
                    Gq[a, n + c] += amplitude * served.squares[b, a, c]
            variance = (noise_std / served.weights[b, 2]) ** 2 + N * H / d * noise
            _standardise(Gq, served.excited[b], theta, reference, variance, out[b, 2 * n :])


@kernel
def misfit_slopes(
    theta: Array,
    served: Served,
    start: Start,
    W: Array,
    noise_std: float,
    step: float,
    slopes: Array,
) -> None:
    """Difference quotients of the misfits in every entry of Theta [D, n, j, 2n + d, n]."""
    here = np.empty(slopes.shape[2:])
    misfits(theta, served, start, W, noise_std, here)
    near = theta.copy()
    for i in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            near[i, j] = theta[i, j] + step
            misfits(near, served, start, W, noise_std, slopes[i, j])
            near[i, j] = theta[i, j]
            slopes[i, j] = (slopes[i, j] - here) / step


@kernel
def within_bounds(theta: Array, n: int, state_bound: float, input_bound: float) -> None:
    """Scale the A and the B part of a model to their declared spectral norms, in place."""
    size = spectral_norm(theta[:n])
    if size > state_bound:
        theta[:n] *= state_bound / size
    size = spectral_norm(theta[n:])
    if size > input_bound:
        theta[n:] *= input_bound / size


@kernel
def draw_models(
    centre: Array, lower: Array, normals: Array, state_bound: float, input_bound: float, out: Array
) -> None:
    """Models centre + lower @ normals[s] [S, D, n], kept within the declared bounds."""
    S, D, n = normals.shape
    for s in range(S):
        for i in range(D):
            for j in range(n):
                total = centre[i, j]
                for k in range(i + 1):
                    total += lower[i, k] * normals[s, k, j]
                out[s, i, j] = total
        within_bounds(out[s], n, state_bound, input_bound)


@kernel
def scaled_costs(
    models: Array,
    gains: Array,
    scales: Array,
    setting: ControlCosts,
    costs: Array,
    optimum: Array,
    excited: Array,
) -> None:
    """Exact costs of several multiples of the same gains in several models.

    Args:
        models: [S, D, n].
        gains: [H, d, n].
        scales: [T].
        setting: costs, noise and start.
        costs: filled, [S, T].
        optimum: filled with the optimal cost of every model [S].
        excited: filled with what excitation of covariance I / d at every step adds at scale 0.
    """
    S = models.shape[0]
    H, d, n = gains.shape
    none = np.zeros(H)
    some = np.full(H, 1.0 / d)
    moments = np.empty((H + 1, n, n))
    best = np.empty((H, d, n))
    P = np.empty((H + 1, n, n))
    sigma = np.zeros((n + d, n + d))
    for s in range(S):
        theta = models[s]
        for t in range(scales.shape[0]):
            costs[s, t] = policy_cost(theta, setting, gains, scales[t], none, moments)
        riccati(theta, sigma, setting, best, P)
        optimum[s] = start_cost(P, setting)
        still = policy_cost(theta, setting, gains, 0.0, none, moments)
        excited[s] = policy_cost(theta, setting, gains, 0.0, some, moments) - still


@kernel
def regret_curvature(theta: Array, H: int, setting: ControlCosts, step: float, out: Array) -> None:
    """Gamma [D, D]: errors of covariance Sigma in every column of Theta cost tr(Gamma Sigma).

    Second order: gains that are off by dK_h cost sum_h tr((R + B^T P_{h+1} B) dK_h X_h dK_h^T), and
    the derivative of the gains in every entry of Theta is a difference quotient of that ``step``.
    """
    D, n = theta.shape
    d = D - n
    sigma = np.zeros((D, D))
    gains = np.empty((H, d, n))
    shifted = np.empty((H, d, n))
    P = np.empty((H + 1, n, n))
    other = np.empty((H + 1, n, n))
    X = np.empty((H + 1, n, n))
    riccati(theta, sigma, setting, gains, P)
    policy_cost(theta, setting, gains, 1.0, np.zeros(H), X)
    weight = np.empty((H, d, d))
    B = theta[n:]
    for h in range(H):
        for a in range(d):
            for b in range(d):
                total = setting.R[a, b]
                for i in range(n):
                    for j in range(n):
                        total += B[a, i] * P[h + 1, i, j] * B[b, j]
                weight[h, a, b] = total
    near = theta.copy()
    slopes = np.empty((D, H, d, n))
    costly = np.empty((D, H, d, n))
    out[:] = 0.0
    for c in range(n):
        for i in range(D):
            near[i, c] = theta[i, c] + step
            riccati(near, sigma, setting, shifted, other)
            near[i, c] = theta[i, c]
            for h in range(H):
                for a in range(d):
                    for j in range(n):
                        slopes[i, h, a, j] = (shifted[h, a, j] - gains[h, a, j]) / step
                for a in range(d):
                    for j in range(n):
                        total = 0.0
                        for b in range(d):
                            for k in range(n):
                                total += weight[h, a, b] * slopes[i, h, b, k] * X[h, k, j]
                        costly[i, h, a, j] = total
        for i in range(D):
            for k in range(i + 1):
                total = 0.0
                for h in range(H):
                    for a in range(d):
                        for j in range(n):
                            total += costly[i, h, a, j] * slopes[k, h, a, j]
                out[i, k] += total
    for i in range(D):
        for k in range(i):
            out[k, i] = out[i, k]


@kernel
def model_responses(
    models: Array,
    projection: Projection,
    gains: Array,
    starts: Array,
    noise: Array,
    directions: Array,
    normals: Array,
    blocks: ResponseBlocks,
) -> None:
    """One imagined user per model, without excitation: their responses are added to blocks.

    Args:
        models: [S, D, n].
        projection: public.
        gains: [H, d, n].
        starts: equally likely first states [m, n], taken in turn.
        noise: L [n, n].
        directions: q of every user [S, H, d].
        normals: [S, H, n + 2].
        blocks: added to.
    """
    reference, path, whitener, instruments = projection
    response, cross, excited, squares, residual = blocks
    S = models.shape[0]
    H, d, n = gains.shape
    p = instruments.shape[1]
    x = np.empty(n)
    after = np.empty(n)
    u = np.empty(d)
    e = np.empty(n)
    for s in range(S):
        x[:] = starts[s % starts.shape[0]]
        for h in range(H):
            for a in range(d):
                u[a] = 0.0
                for j in range(n):
                    u[a] += gains[h, a, j] * x[j]
            linear_step(models[s], noise, x, u, normals[s, h], after)
            for i in range(n):
                e[i] = after[i]
                for j in range(n):
                    e[i] -= reference[j, i] * x[j]
                for a in range(d):
                    e[i] -= reference[n + a, i] * u[a]
            for k in range(n):
                total = 0.0
                for j in range(n):
                    total += whitener[k, j] * (x[j] - path[h, j])
                for i in range(n):
                    cross[s, k, i] += total * e[i]
            for i in range(n):
                for k in range(n):
                    residual[s, k, i] += e[k] * e[i]
                for k in range(p):
                    response[s, k, i] += instruments[h, k] * e[i]
                for k in range(d):
                    excited[s, k, i] += directions[s, h, k] * e[i]
            for a in range(d):
                for b in range(d):
                    squares[s, a, b] += directions[s, h, a] * directions[s, h, b]
            x[:] = after
