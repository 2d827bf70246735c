"""Finite-horizon linear quadratic control: Riccati, exact costs, gradients.

The formulas are those of docs/papers/lq_jdp.md#setting.

Theta = [A, B]^T is D x n with D = n + d, so that the next state is Theta^T z + w for z = (x, u).
All matrices are tiny (n up to a handful), where plain loops beat calls to a linear algebra library
by a factor of ten; every product here is written out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.cholesky import factor


class ControlCosts(NamedTuple):
    """What a linear system costs: everything but its dynamics."""

    Q: Array  # state cost
    R: Array  # input cost
    W: Array  # covariance of the noise
    start: Array  # second moment of the first state


@kernel
def product(A: Array, B: Array, out: Array) -> None:
    """A B."""
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            out[i, j] = total


@kernel
def closed_loop(theta: Array, K: Array, C: Array) -> None:
    """A + B K into C [n, n]."""
    d, n = K.shape
    for i in range(n):
        for j in range(n):
            total = theta[j, i]
            for a in range(d):
                total += theta[n + a, i] * K[a, j]
            C[i, j] = total


@kernel
def solve_spd(G: Array, F: Array) -> None:
    """Overwrite F with G^{-1} F for a small positive definite G, which is destroyed (Cholesky)."""
    d, m = F.shape
    factor(G, G, 0.0)
    for c in range(m):
        for i in range(d):
            for k in range(i):
                F[i, c] -= G[i, k] * F[k, c]
            F[i, c] /= G[i, i]
        for i in range(d - 1, -1, -1):
            for k in range(i + 1, d):
                F[i, c] -= G[k, i] * F[k, c]
            F[i, c] /= G[i, i]


@kernel
def riccati(theta: Array, sigma: Array, setting: ControlCosts, gains: Array, P: Array) -> None:
    """Optimal gains [H, d, n] and cost matrices P [H+1, n, n] of a model known up to ``sigma``.

    Columns of Theta are taken to have covariance ``sigma`` [D, D] around ``theta``; the expected
    cost to go then has the quadratic form G = Theta P Theta^T + tr(P) sigma + diag(Q, R) in z. With
    sigma = 0 this is the Riccati recursion of a known model.
    """
    Q, R, _, _ = setting
    H, d, n = gains.shape
    D = n + d
    T = np.empty((D, n))
    G = np.empty((D, D))
    Guu = np.empty((d, d))
    K = np.empty((d, n))
    P[H] = 0.0
    for h in range(H - 1, -1, -1):
        trace = 0.0
        for i in range(n):
            trace += P[h + 1, i, i]
        product(theta, P[h + 1], T)
        for i in range(D):
            for j in range(i + 1):
                total = trace * sigma[i, j]
                for k in range(n):
                    total += T[i, k] * theta[j, k]
                if i < n:
                    total += Q[i, j]
                elif j >= n:
                    total += R[i - n, j - n]
                G[i, j] = total
                G[j, i] = total
        for i in range(d):
            for j in range(d):
                Guu[i, j] = G[n + i, n + j]
            for j in range(n):
                K[i, j] = -G[n + i, j]
        solve_spd(Guu, K)
        _fold(G, K, P[h])
        gains[h] = K


@kernel
def _fold(G: Array, K: Array, out: Array) -> None:
    """[I; K]^T G [I; K], symmetrised."""
    d, n = K.shape
    for i in range(n):
        for j in range(i + 1):
            total = G[i, j]
            for a in range(d):
                total += K[a, i] * G[n + a, j] + G[i, n + a] * K[a, j]
                for b in range(d):
                    total += K[a, i] * G[n + a, n + b] * K[b, j]
            out[i, j] = total
            out[j, i] = total


@kernel
def cap_gains(gains: Array, limit: float) -> None:
    """Scale every gain to spectral norm at most ``limit`` (docs/papers/lq_jdp.md#e6)."""
    H, d, n = gains.shape
    for h in range(H):
        size = spectral_norm(gains[h])
        if size > limit:
            for i in range(d):
                for j in range(n):
                    gains[h, i, j] *= limit / size


@kernel
def spectral_norm(M: Array) -> float:
    """Largest singular value, by the symmetric eigenvalue problem of the smaller Gram matrix."""
    d, n = M.shape
    if d == 1 or n == 1:
        total = 0.0
        for i in range(d):
            for j in range(n):
                total += M[i, j] * M[i, j]
        return math.sqrt(total)
    gram = M @ M.T if d <= n else M.T @ M
    if gram.shape[0] == 2:
        mean = 0.5 * (gram[0, 0] + gram[1, 1])
        gap = 0.5 * (gram[0, 0] - gram[1, 1])
        return math.sqrt(mean + math.sqrt(gap * gap + gram[0, 1] * gram[0, 1]))
    return math.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0))


@kernel
def policy_cost(
    theta: Array,
    setting: ControlCosts,
    gains: Array,
    scale: float,
    excitation: Array,
    moments: Array,
) -> float:
    """Exact expected cost of u_h = scale K_h x_h + xi_h, by covariance propagation.

    The recursion of docs/papers/lq_jdp.md#exact-costs.

    Args:
        theta: the true Theta [D, n].
        setting: costs, noise and start.
        gains: K_h [H, d, n].
        scale: factor on all gains.
        excitation: variance of every entry of xi_h, by step [H]; its covariance is that times I.
        moments: filled with E x_h x_h^T [H+1, n, n].
    """
    Q, R, W, start = setting
    H, d, n = gains.shape
    C = np.empty((n, n))
    CX = np.empty((n, n))
    K = np.empty((d, n))
    BB = np.empty((n, n))
    noise_cost = 0.0
    for i in range(d):
        noise_cost += R[i, i]
    product(theta[n:].T, theta[n:], BB)
    moments[0] = start
    cost = 0.0
    for h in range(H):
        X = moments[h]
        for a in range(d):
            for i in range(n):
                K[a, i] = scale * gains[h, a, i]
        closed_loop(theta, K, C)
        for i in range(n):
            for j in range(n):
                cost += Q[i, j] * X[i, j]
        for a in range(d):
            for i in range(n):
                KX = 0.0
                for j in range(n):
                    KX += K[a, j] * X[j, i]
                for b in range(d):
                    cost += R[a, b] * KX * K[b, i]
        cost += excitation[h] * noise_cost
        product(C, X, CX)
        for i in range(n):
            for j in range(i + 1):
                total = W[i, j] + excitation[h] * BB[i, j]
                for k in range(n):
                    total += CX[i, k] * C[j, k]
                moments[h + 1, i, j] = total
                moments[h + 1, j, i] = total
    return cost


@kernel
def start_cost(P: Array, setting: ControlCosts) -> float:
    """tr(P_1 X_1) + sum_h tr(P_{h+1} W): the cost that the cost matrices of a policy stand for."""
    _, _, W, start = setting
    steps, n, _ = P.shape
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += P[0, i, j] * start[i, j]
            for h in range(1, steps):
                total += P[h, i, j] * W[i, j]
    return total


@kernel
def optimal_cost_gradient(
    theta: Array, setting: ControlCosts, gains: Array, P: Array, gradient: Array
) -> float:
    """J*(Theta) and its gradient [D, n] by the envelope theorem (docs/papers/lq_jdp.md#gradient).

    dJ/dTheta = 2 sum_h [I; K_h] X_h C_h^T P_{h+1}, with X_h the state moments under Theta itself.
    """
    _, _, W, start = setting
    H, d, n = gains.shape
    riccati(theta, np.zeros((n + d, n + d)), setting, gains, P)
    X = start.copy()
    C = np.empty((n, n))
    XC = np.empty((n, n))
    T = np.empty((n, n))
    gradient[:] = 0.0
    for h in range(H):
        closed_loop(theta, gains[h], C)
        product(X, C.T, XC)
        product(XC, P[h + 1], T)
        gradient[:n] += 2.0 * T
        for a in range(d):
            for j in range(n):
                for k in range(n):
                    gradient[n + a, j] += 2.0 * gains[h, a, k] * T[k, j]
        for i in range(n):
            for j in range(i + 1):
                total = W[i, j]
                for k in range(n):
                    total += C[i, k] * XC[k, j]
                X[i, j] = total
                X[j, i] = total
    return start_cost(P, setting)


@kernel
def linear_step(theta: Array, noise: Array, x: Array, u: Array, g: Array, after: Array) -> None:
    """Next state Theta^T z + L v, with v uniform in the unit ball, from n + 2 normals.

    The first n coordinates of a uniform point on the sphere in n + 2 dimensions are uniform in the
    ball.
    """
    n, d = x.shape[0], u.shape[0]
    size = 0.0
    for i in range(n + 2):
        size += g[i] * g[i]
    shrink = 1.0 / math.sqrt(size) if size > 0.0 else 0.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += theta[j, i] * x[j] + noise[i, j] * (g[j] * shrink)
        for a in range(d):
            total += theta[n + a, i] * u[a]
        after[i] = total
