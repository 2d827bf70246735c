"""One user's episode of a linear system, from a row of standard normal numbers.

An episode uses exactly 1 + H (n + 2) normals, whatever happens in it: one to choose the start, then
n + 2 per step (``linear_step``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.public.lq import linear_step


class LinearTruth(NamedTuple):
    """The secret arrays of a linear system, as rollouts read them."""

    theta: Array  # [A, B]^T [D, n]
    noise: Array  # L [n, n]: noise is L times a uniform point of the unit ball
    starts: Array  # equally likely first states [m, n]
    Q: Array
    R: Array


def normals_per_episode(horizon: int, states: int) -> int:
    """Length of the row of normals that one episode uses."""
    return 1 + horizon * (states + 2)


@kernel
def lq_start(truth: LinearTruth, g: float, x: Array) -> None:
    """One of the equally likely first states, chosen by one normal number."""
    m, n = truth.starts.shape
    row = 0
    if m > 1:
        row = min(int(m * 0.5 * (1.0 + math.erf(g / math.sqrt(2.0)))), m - 1)
    for i in range(n):
        x[i] = truth.starts[row, i]


@kernel
def lq_step(truth: LinearTruth, x: Array, u: Array, g: Array, after: Array) -> float:
    """One step: fill the next state from n + 2 normals and return the cost of this one."""
    n, d = x.shape[0], u.shape[0]
    cost = 0.0
    for i in range(n):
        for j in range(n):
            cost += x[i] * truth.Q[i, j] * x[j]
    for a in range(d):
        for b in range(d):
            cost += u[a] * truth.R[a, b] * u[b]
    linear_step(truth.theta, truth.noise, x, u, g, after)
    return cost


@kernel
def lq_rollout(
    truth: LinearTruth,
    gains: Array,
    offsets: Array,
    g: Array,
    states: Array,
    inputs: Array,
    rewards: Array,
) -> float:
    """Play u_h = K_h x_h + offset_h; fill states [H+1, n], inputs [H, d], rewards (minus costs).

    Returns:
        The sum of the rewards.
    """
    H, d, n = gains.shape
    lq_start(truth, g[0], states[0])
    total = 0.0
    for h in range(H):
        for a in range(d):
            inputs[h, a] = offsets[h, a]
            for j in range(n):
                inputs[h, a] += gains[h, a, j] * states[h, j]
        row = 1 + h * (n + 2)
        cost = lq_step(truth, states[h], inputs[h], g[row : row + n + 2], states[h + 1])
        rewards[h] = -cost
        total += rewards[h]
    return total
