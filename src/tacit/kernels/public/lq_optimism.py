"""The optimistic step of OFU-RL: least optimal cost over an ellipsoid within the unit ball.

Minimise J*(Theta) over |Theta - That|_V <= radius, |Theta|_F <= 1, by projected gradient steps in
the metric of V, from several starts, and bound the least value from below by a dual problem
(docs/papers/lq_jdp.md#optimistic-step). In the eigenbasis of V the projection is one secular
equation per constraint.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.cholesky import factor
from tacit.kernels.public.lq import ControlCosts, optimal_cost_gradient, product, start_cost

_TOL = 1e-13
_PROGRESS = 1e-9
"""Relative progress, over a step, at which descent stops."""


class Ellipsoid(NamedTuple):
    """|Theta - centre|_V <= radius, with V = U diag(lam) U^T."""

    centre: Array
    lam: Array
    U: Array
    radius: float

    @property
    def V(self) -> Array:
        """The matrix itself."""
        matrix: Array = (self.U * self.lam) @ self.U.T
        return matrix

    def holds(self, theta: Array) -> bool:
        """Whether a model is inside."""
        rotated = self.U.T @ (theta - self.centre)
        return float((self.lam[:, np.newaxis] * rotated**2).sum()) <= self.radius**2


@kernel
def _ball_multiplier(rows: Array, lam: Array, a: float) -> float:
    """The b >= 0 at which the point of multiplier a meets |Y|_F <= 1 (Newton on 1 / |Y| - 1)."""
    b = 0.0
    for _ in range(100):
        size = 0.0
        slope = 0.0
        for i in range(lam.shape[0]):
            den = lam[i] * (1.0 + a) + b
            square = lam[i] * lam[i] * (rows[i, 0] + 2.0 * a * rows[i, 1] + a * a * rows[i, 2])
            size += square / (den * den)
            slope += square / (den * den * den)
        if size <= 1.0 + _TOL:
            return b
        step = size * (math.sqrt(size) - 1.0) / slope
        b += step
        if step <= _TOL * b:
            return b
    return b


@kernel
def _distance(rows: Array, lam: Array, a: float, b: float) -> float:
    """|Y - That|_V^2 of the point with multipliers a and b."""
    total = 0.0
    for i in range(lam.shape[0]):
        den = lam[i] * (1.0 + a) + b
        far = lam[i] + b
        square = lam[i] * lam[i] * rows[i, 0] - 2.0 * lam[i] * far * rows[i, 1]
        total += lam[i] * (square + far * far * rows[i, 2]) / (den * den)
    return total


@kernel
def project(Y: Array, T: Array, lam: Array, radius: float, rows: Array) -> bool:
    """Overwrite Y with the nearest point (in V) of both sets, in the eigenbasis of V.

    Y_i = lam_i (Y0_i + a T_i) / (lam_i (1 + a) + b): a for the ellipsoid around T, b for the unit
    ball. ``rows`` [D, 3] is work space for all that this needs of a row: |Y_i|^2, <Y_i, T_i> and
    |T_i|^2.

    Returns:
        False if the two sets do not meet; Y is then the point of the ball nearest to T.
    """
    D, n = Y.shape
    limit = radius * radius
    rows[:] = 0.0
    for i in range(D):
        for j in range(n):
            rows[i, 0] += Y[i, j] * Y[i, j]
            rows[i, 1] += Y[i, j] * T[i, j]
            rows[i, 2] += T[i, j] * T[i, j]
    a = 0.0
    b = _ball_multiplier(rows, lam, a)
    meets = True
    if _distance(rows, lam, a, b) > limit * (1.0 + 1e-12):
        high = 1.0
        b = _ball_multiplier(rows, lam, high)
        while _distance(rows, lam, high, b) > limit and high < 1e15:
            high *= 8.0
            b = _ball_multiplier(rows, lam, high)
        meets = high < 1e15
        low = 0.0 if high == 1.0 else high / 8.0
        for _ in range(60):
            if high - low <= 1e-12 * high:
                break
            middle = 0.5 * (low + high)
            if _distance(rows, lam, middle, _ball_multiplier(rows, lam, middle)) > limit:
                low = middle
            else:
                high = middle
        a = high
        b = _ball_multiplier(rows, lam, a)
    for i in range(D):
        den = lam[i] * (1.0 + a) + b
        for j in range(n):
            Y[i, j] = lam[i] * (Y[i, j] + a * T[i, j]) / den
    return meets


@kernel
def descend(
    theta: Array, region: Ellipsoid, setting: ControlCosts, H: int, iterations: int
) -> float:
    """Projected gradient descent from ``theta``, which is overwritten with the best point found.

    Args:
        theta: where to start [D, n]; need not be feasible.
        region: the ellipsoid.
        setting: costs, noise and start.
        H: horizon.
        iterations: most steps.

    Returns:
        J* at that point; inf where the two sets do not meet.
    """
    centre, lam, U, radius = region
    D, n = theta.shape
    gains = np.empty((H, D - n, n))
    P = np.empty((H + 1, n, n))
    gradient = np.empty((D, n))
    rotated = np.empty((D, n))
    Y = np.empty((D, n))
    T = np.empty((D, n))
    trial = np.empty((D, n))
    point = np.empty((D, n))
    rows = np.empty((D, 3))
    product(U.T, centre, T)
    product(U.T, theta, Y)
    if not project(Y, T, lam, radius, rows):
        return math.inf
    product(U, Y, theta)
    value = optimal_cost_gradient(theta, setting, gains, P, gradient)
    step = radius * radius
    still = 0
    for _ in range(iterations):
        product(U.T, gradient, rotated)
        moved = False
        for _ in range(40):
            for i in range(D):
                for j in range(n):
                    trial[i, j] = Y[i, j] - step * rotated[i, j] / lam[i]
            meets = project(trial, T, lam, radius, rows)
            distance = 0.0
            for i in range(D):
                for j in range(n):
                    distance += lam[i] * (trial[i, j] - Y[i, j]) ** 2
            if distance <= 1e-28 * radius * radius:
                break
            if not meets:
                step *= 0.25
                continue
            product(U, trial, point)
            cost = optimal_cost_gradient(point, setting, gains, P, gradient)
            if cost <= value - 1e-4 * distance / step:
                moved = True
                break
            step *= 0.25
        if not moved:
            return value
        still = still + 1 if value - cost <= _PROGRESS * value else 0
        value = cost
        Y[:] = trial
        theta[:] = point
        step = min(2.0 * step, 1e4 * radius * radius)
        if still >= 3:
            return value
    return value


@kernel
def dual_bound(
    centre: Array,
    inverse: Array,
    radius: float,
    multipliers: Array,
    setting: ControlCosts,
) -> float:
    """A lower bound on the optimistic value for any multipliers >= 0.

    The argument is in docs/papers/lq_jdp.md#certificate. With v = (Theta - That)^T z as a second
    control, |v|^2 <= radius^2 z^T V^{-1} z and |That^T z + v|^2 <= |z|^2 hold at every step and
    every feasible Theta; the control problem in (u, v) with both as penalties is below. Returns
    -inf where that problem is not convex in (u, v).

    Args:
        centre: That [D, n].
        inverse: V^{-1} [D, D].
        radius: of the ellipsoid.
        multipliers: of the two constraints at every step [H, 2].
        setting: costs, noise and start.
    """
    D, n = centre.shape
    H = multipliers.shape[0]
    P = np.zeros((H + 1, n, n))
    M = np.empty((D + n, D + n))
    T = np.empty((D, n))
    L = np.empty((D, D))
    F = np.empty((D, n))
    for h in range(H - 1, -1, -1):
        ellipsoid = multipliers[h, 0]
        ball = multipliers[h, 1]
        for i in range(D):
            for j in range(n):
                T[i, j] = ball * centre[i, j]
                for k in range(n):
                    T[i, j] += centre[i, k] * P[h + 1, k, j]
                M[i, D + j] = T[i, j]
                M[D + j, i] = T[i, j]
        for i in range(D):
            for j in range(D):
                value = -ellipsoid * radius * radius * inverse[i, j]
                for k in range(n):
                    value += T[i, k] * centre[j, k]
                if i < n and j < n:
                    value += setting.Q[i, j]
                elif i >= n and j >= n:
                    value += setting.R[i - n, j - n]
                if i == j:
                    value -= ball
                M[i, j] = value
        for i in range(n):
            for j in range(n):
                M[D + i, D + j] = P[h + 1, i, j] + (ellipsoid + ball if i == j else 0.0)
        if not factor(M[n:, n:], L, 1e-12):  # of the controls: u, then v
            return -math.inf
        for i in range(D):
            for j in range(n):
                value = M[n + i, j]
                for k in range(i):
                    value -= L[i, k] * F[k, j]
                F[i, j] = value / L[i, i]
        for i in range(n):
            for j in range(n):
                value = M[i, j]
                for k in range(D):
                    value -= F[k, i] * F[k, j]
                P[h, i, j] = value
    return start_cost(P, setting)


@kernel
def best_dual_bound(
    centre: Array,
    inverse: Array,
    radius: float,
    setting: ControlCosts,
    H: int,
    stepwise: bool,
) -> float:
    """The largest dual bound: a log grid of constant multipliers, refined; then step by step.

    Pattern search: factors on one multiplier of all steps first, then (``stepwise``) of each step
    by itself, and smaller factors where none of them helps.
    """
    best = -math.inf
    at = np.zeros((H, 2))
    point = np.zeros((H, 2))
    for i in range(15):
        for j in range(8):
            point[:, 0] = 10.0 ** (-3.0 + 0.5 * i)
            point[:, 1] = 0.0 if j == 0 else 10.0 ** (-4.0 + j)
            value = dual_bound(centre, inverse, radius, point, setting)
            if value > best:
                best = value
                at[:] = point
    for pieces in (1, H) if stepwise else (1, 1):
        factor = 3.0
        rounds = 0
        while factor > 1.01 and rounds < 60:
            rounds += 1
            improved = False
            for piece in range(pieces):
                first, last = (0, H) if pieces == 1 else (piece, piece + 1)
                for c in range(2):
                    for direction in (factor, 1.0 / factor):
                        point[:] = at
                        for h in range(first, last):
                            point[h, c] = max(at[h, c], 1e-5) * direction
                        value = dual_bound(centre, inverse, radius, point, setting)
                        if value > best:
                            best = value
                            at[:] = point
                            improved = True
                            break
            if not improved:
                factor = math.sqrt(factor)
    return best
