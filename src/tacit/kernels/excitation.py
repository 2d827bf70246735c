"""Public excitation: a keyed function of a public key, the user's number and the step.

Everybody can compute it, nobody's data touch it. It need not be unpredictable, only independent of
the data, so a counter-based mixer of 32-bit words is enough; it gives the same numbers on a device
without a compiler, in the service and in compiled loops.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel


@kernel
def _mix(x: int) -> int:
    """A bijection of 32-bit words in which every bit of the input stirs every bit of the output."""
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x735A2D97) & 0xFFFFFFFF
    return x ^ (x >> 15)


@kernel
def uniform_at(key: int, user: int, cell: int) -> float:
    """A number in (0, 1) that depends on its three arguments only."""
    x = _mix((key & 0xFFFFFFFF) ^ 0x5BD1E995)
    x = _mix(x ^ (key >> 32))
    x = _mix((x + (user & 0xFFFFFFFF)) & 0xFFFFFFFF)
    x = _mix(x ^ (user >> 32))
    x = _mix((x + cell) & 0xFFFFFFFF)
    return (x + 0.5) / 4294967296.0


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
