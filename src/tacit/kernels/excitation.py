"""Public excitation: a keyed function of a public key, the user's number and the step.

Everybody can compute it, nobody's data touch it. It has to be unpredictable to nobody and
independent of the data, so a counter-based mixer (splitmix64) is enough, and it is the same on a
device, in the service and in compiled loops.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel


@kernel
def uniform_at(key: int, user: int, cell: int) -> float:
    """A number in (0, 1) that depends on its three arguments only."""
    z = np.uint64(key)
    for part in (user, cell):
        z = (z ^ np.uint64(part)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(11)) + 0.5) * 2.0**-53


@kernel
def directions(key: int, user: int, out: Array) -> None:
    """Unit vectors q_h [H, d], uniform on the sphere (signs where d = 1), independent over h."""
    H, d = out.shape
    for h in range(H):
        if d == 1:
            out[h, 0] = 1.0 if uniform_at(key, user, h) < 0.5 else -1.0
            continue
        size = 0.0
        for i in range(d):
            radius = math.sqrt(-2.0 * math.log(uniform_at(key, user, 2 * (h * d + i))))
            out[h, i] = radius * math.cos(
                2.0 * math.pi * uniform_at(key, user, 2 * (h * d + i) + 1)
            )
            size += out[h, i] * out[h, i]
        size = math.sqrt(size)
        for i in range(d):
            out[h, i] /= size


@kernel
def direction_sums(key: int, first: int, users: int, total: Array, squares: Array) -> None:
    """Sums over users first, ..., first + users - 1: of q_h [H, d], and of sum_h q_h q_h^T."""
    H, d = total.shape
    q = np.empty((H, d))
    total[:] = 0.0
    squares[:] = 0.0
    for user in range(first, first + users):
        directions(key, user, q)
        for h in range(H):
            for i in range(d):
                total[h, i] += q[h, i]
                for j in range(d):
                    squares[i, j] += q[h, i] * q[h, j]
