"""What users of a linear system contribute, clipped, in whole steps of a grid.

Both kernels read raw trajectories, one user per row: states [users, H+1, n] and inputs [users, H,
d]. Each user is clipped and rounded alone; anything that is not finite contributes nothing.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel
from tacit.kernels.excitation import directions


@kernel
def all_finite(states: Array, inputs: Array) -> bool:
    """Whether every entry is a finite number."""
    return bool(np.isfinite(states).all() and np.isfinite(inputs).all())


@kernel
def clip_rows(rows: Array, limit: float, out: Array) -> None:
    """Copy, each row scaled to norm at most ``limit``; an overflowing norm leaves a zero row."""
    H, n = rows.shape
    for h in range(H):
        size = 0.0
        for i in range(n):
            size += rows[h, i] * rows[h, i]
        size = math.sqrt(size)
        factor = limit / size if size > limit else 1.0
        for i in range(n):
            out[h, i] = rows[h, i] * factor if factor > 0.0 else 0.0


@kernel
def moments(
    states: Array,
    inputs: Array,
    gain: float,
    energy: float,
    weight: float,
    off_diagonal: float,
    out: IntArray,
) -> None:
    """Add M = sum z z^T (upper triangle) and weight N, N = sum z x'^T, of every user.

    States are clipped to norm 1 and inputs to norm ``gain``, step by step
    (docs/papers/lq_jdp.md#clipping); then all z are scaled together so that sum |z|^2 <=
    ``energy`` (1 + gain^2), all next states so that the sum of their squares is at most ``energy``.

    Args:
        states: [users, H+1, n].
        inputs: [users, H, d].
        gain: largest norm of an input.
        energy: total energy of the states; H switches this clipping off.
        weight: factor on N.
        off_diagonal: factor on entries off the diagonal of M; sqrt 2 makes packing isometric.
        out: flat, added to: M row by row, then N.
    """
    users, H, d = inputs.shape
    n = states.shape[2]
    D = n + d
    x = np.empty((H + 1, n))
    z = np.empty((H, D))
    for user in range(users):
        if not all_finite(states[user], inputs[user]):
            continue
        clip_rows(states[user], 1.0, x)
        clip_rows(inputs[user], gain, z[:, n:])
        z[:, :n] = x[:H]
        z_energy = 0.0
        y_energy = 0.0
        for h in range(H):
            for i in range(D):
                z_energy += z[h, i] * z[h, i]
            for i in range(n):
                y_energy += x[h + 1, i] * x[h + 1, i]
        most = energy * (1.0 + gain * gain)
        shrink_z = math.sqrt(most / z_energy) if z_energy > most else 1.0
        shrink_y = math.sqrt(energy / y_energy) if y_energy > energy else 1.0
        cell = 0
        for i in range(D):
            for j in range(i, D):
                total = 0.0
                for h in range(H):
                    total += z[h, i] * z[h, j]
                total *= shrink_z * shrink_z * (1.0 if i == j else off_diagonal)
                out[cell] += np.int64(np.rint(total * STEPS))
                cell += 1
        for i in range(D):
            for j in range(n):
                total = 0.0
                for h in range(H):
                    total += z[h, i] * x[h + 1, j]
                out[cell] += np.int64(np.rint(total * shrink_z * shrink_y * weight * STEPS))
                cell += 1


@kernel
def responses(
    states: Array,
    inputs: Array,
    reference: Array,
    path: Array,
    whitener: Array,
    instruments: Array,
    usual: Array,
    weights: Array,
    key: int,
    coins: IntArray,
    out: IntArray,
) -> None:
    """Add residuals against a public reference, projected on instruments, clipped as a whole.

    e_h = x_{h+1} - Theta_ref^T z_h. The contribution is (w_0 phi^T e, w_1 T sum_h (x_h - m_h)
    e_h^T, w_2 q^T e) and, where there is room for it in ``out``, w_3 (sum_h e_h e_h^T - C), packed:
    phi [H, p] are public functions of time, m a public path, T and C public matrices and q the
    user's public excitation. It is scaled as a whole to Euclidean norm at most 1 and rounded
    towards zero.

    Args:
        states: [users, H+1, n].
        inputs: [users, H, d].
        reference: Theta_ref [D, n].
        path: m [H, n].
        whitener: T [n, n].
        instruments: phi [H, p].
        usual: C [n, n].
        weights: w_0, w_1, w_2, w_3.
        key: of the excitation.
        coins: public numbers of the users.
        out: flat, added to: the blocks [p, n], [n, n], [d, n] and, perhaps, n (n + 1) / 2 packed
            entries.
    """
    users, H, d = inputs.shape
    n = states.shape[2]
    p = instruments.shape[1]
    q = np.zeros((H, d))
    value = np.zeros(out.shape[0])
    instrument = np.empty(p + n + d)
    e = np.empty(n)
    packed = (p + n + d) * n
    with_residual = out.shape[0] > packed
    for user in range(users):
        if not all_finite(states[user], inputs[user]):
            continue
        if weights[2] > 0.0:
            directions(key, coins[user], q)
        value[:] = 0.0
        for h in range(H):
            for i in range(n):
                total = states[user, h + 1, i]
                for j in range(n):
                    total -= reference[j, i] * states[user, h, j]
                for a in range(d):
                    total -= reference[n + a, i] * inputs[user, h, a]
                e[i] = total
            for k in range(p):
                instrument[k] = weights[0] * instruments[h, k]
            for k in range(n):
                total = 0.0
                for j in range(n):
                    total += whitener[k, j] * (states[user, h, j] - path[h, j])
                instrument[p + k] = weights[1] * total
            for k in range(d):
                instrument[p + n + k] = weights[2] * q[h, k]
            for k in range(p + n + d):
                for i in range(n):
                    value[k * n + i] += instrument[k] * e[i]
            if with_residual:
                cell = packed
                for i in range(n):
                    for j in range(i, n):
                        value[cell] += e[i] * e[j]
                        cell += 1
        if with_residual:
            cell = packed
            for i in range(n):
                for j in range(i, n):
                    isometric = 1.0 if i == j else math.sqrt(2.0)
                    value[cell] = weights[3] * isometric * (value[cell] - usual[i, j])
                    cell += 1
        size = math.sqrt((value * value).sum())
        if not math.isfinite(size):
            continue
        factor = STEPS / size if size > 1.0 else float(STEPS)
        for cell in range(out.shape[0]):
            out[cell] += np.int64(np.trunc(value[cell] * factor))
