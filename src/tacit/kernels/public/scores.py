"""From an observation to an action by scores of public features, and whose direction is whose.

Everything here is public arithmetic: features, parameters and directions are known to everybody,
and the same functions run on a device without a compiler and in compiled simulations.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel
from tacit.kernels.excitation import uniform_at

IDENTITY, AFFINE, QUADRATIC, FOURIER, RBF, ONE_HOT = 0, 1, 2, 3, 4, 5
TILES, PROJECTION = 6, 7
ARGMAX, SOFTMAX, TANH, CLIPPED, UNIFORM = 0, 1, 2, 3, 4

SHORTER = 1.0 - 2.0**-32
"""Directions are this much shorter than sqrt(d): rounding errors cannot make them longer."""

TOGETHER = 64
"""Rows of a block that are made orthogonal side by side; any number gives the same bits."""

FLAT = 1e-290
"""What is left of a vector whose squares sum to no more has no direction, and counts as 0."""

COINS = 1 << 62
"""Added to the key of directions, it is the key of the coins that round a return."""


class Scoring(NamedTuple):
    """How observations become features, and scores of features an action: all public.

    The features are a function of x = (o - shift) / scale. A choice among A actions has A - 1
    scores v; action a gets <corner_a, v>, where the corners are those of a regular simplex. Adding
    the same to the scores of all actions changes no choice, so A of them would be one too many, and
    every parameter costs noise. A box has one score for each side, mapped from [-1, 1] to it.
    """

    kind: int
    shift: Array  # [n]; empty for one-hot features
    scale: Array  # [n]
    table: Array  # frequencies, centres or rows of a matrix [size, n]; offsets of tilings [t, n]
    width: float  # of a radial function, in units of x; tiles of a side
    size: int  # number of features
    head: int
    outputs: int  # A - 1 scores, or the sides of the box
    hidden: int  # units of one hidden tanh layer; 0 for none
    corners: Array  # [A, A - 1]; empty for boxes
    box: Array  # least and largest of every side [2, outputs]; empty for choices


@kernel
def features_of(scoring: Scoring, o: Array, x: Array, out: Array) -> None:
    """Fill phi(o) [size]; ``x`` [n] is room for the scaled observation."""
    kind, size, width = scoring.kind, scoring.size, scoring.width
    # read once: every look into a tuple of arrays costs a count of references
    shift, scale, table = scoring.shift, scoring.scale, scoring.table
    if kind == ONE_HOT:
        out[:] = 0.0
        out[int(o[0])] = 1.0
        return
    n = o.shape[0]
    for i in range(n):
        x[i] = (o[i] - shift[i]) / scale[i]
    if kind <= QUADRATIC:
        for i in range(n):
            out[i] = x[i]
        if kind == AFFINE:
            out[n] = 1.0
        if kind == QUADRATIC:
            at = n
            for i in range(n):
                for j in range(i, n):
                    out[at] = x[i] * x[j]
                    at += 1
        return
    if kind == TILES:
        out[:] = 0.0
        tilings, side = table.shape[0], int(width)
        for t in range(tilings):
            tile = 0
            for i in range(n):
                y = (min(max(x[i], -1.0), 1.0) + 1.0) / 2.0 * (side - 1) + table[t, i]
                tile = tile * side + min(int(y), side - 1)
            out[t * (size // tilings) + tile] = 1.0
        return
    total = 0.0
    for f in range(size):
        value = 0.0
        if kind == PROJECTION:
            for i in range(n):
                value += table[f, i] * x[i]
            out[f] = value
            continue
        for i in range(n):
            y = min(max(x[i], -1.0), 1.0)
            if kind == FOURIER:
                value += table[f, i] * (y + 1.0) / 2.0
            else:
                value += ((y - table[f, i]) / width) ** 2
        if kind == FOURIER:
            out[f] = math.cos(math.pi * value)
        else:
            out[f] = math.exp(-0.5 * value)
            total += out[f]
    if kind == RBF:
        for f in range(size):
            out[f] /= total


@kernel
def scored_action(
    scoring: Scoring, theta: Array, o: Array, phi: Array, u: Array, units: Array, v: Array, a: Array
) -> None:
    """Fill the action [outputs] from features; ``u`` [outputs] are the uniforms of heads that draw.

    A choice leaves its number in a[0], a box a point of [-1, 1]^outputs. Of one-hot features only
    the one of the observation ``o`` is looked at.
    """
    head, outputs, hidden = scoring.head, scoring.outputs, scoring.hidden
    F, at = phi.shape[0], 0
    low, high = 0, F
    if scoring.kind == ONE_HOT:
        low = int(o[0])
        high = low + 1
    if head == UNIFORM:
        A = scoring.corners.shape[0]
        if A > 0:
            a[0] = float(min(int(u[0] * A), A - 1))
        else:
            for i in range(outputs):
                a[i] = 2.0 * u[i] - 1.0
        return
    layer, width = phi, F
    if hidden > 0:
        for k in range(hidden):
            total = 0.0
            for f in range(low, high):
                total += theta[k * F + f] * phi[f]
            units[k] = math.tanh(total)
        at, layer, width, low, high = hidden * F, units, hidden, 0, hidden
    for i in range(outputs):
        v[i] = 0.0
        for f in range(low, high):
            v[i] += theta[at + i * width + f] * layer[f]
    if head == TANH:
        for i in range(outputs):
            a[i] = math.tanh(v[i])
    elif head == CLIPPED:
        for i in range(outputs):
            a[i] = min(max(v[i], -1.0), 1.0)
    else:
        a[0] = float(_choose(head == SOFTMAX, scoring.corners, v, u[0]))


@kernel
def _score(corners: Array, v: Array, b: int) -> float:
    """Score of action b: <corner_b, v>."""
    total = 0.0
    for i in range(v.shape[0]):
        total += corners[b, i] * v[i]
    return total


@kernel
def _choose(soft: bool, corners: Array, v: Array, u: float) -> int:
    """The best action (of equal ones the first), or one drawn by softmax with the uniform u."""
    A: int = corners.shape[0]
    best, top = 0, _score(corners, v, 0)
    for b in range(1, A):
        score = _score(corners, v, b)
        if score > top:
            best, top = b, score
    if not soft:
        return best
    total = 0.0
    for b in range(A):
        total += math.exp(_score(corners, v, b) - top)
    level, reached = u * total, 0.0
    for b in range(A):
        reached += math.exp(_score(corners, v, b) - top)
        if level < reached:
            return b
    return A - 1


@kernel
def _block(key: int, block: int, out: Array) -> None:
    """d orthogonal directions of norm sqrt(d), rows of ``out`` [d, d], each uniform on the sphere.

    Modified Gram-Schmidt of normal vectors that are functions of key and block. Some rows at a time
    lose what the rows before them have, so that a compiler does their sums side by side; each sum
    is in the order of one row alone, and so to the last bit the same.
    """
    d = out.shape[1]
    for first in range(0, d, TOGETHER):
        width = min(TOGETHER, d - first)
        rows, along = np.empty((d, width)), np.empty(width)  # rows[:, t] is row first + t
        for t in range(width):
            for j in range(d):
                cell = 2 * ((first + t) * d + j)
                radius = math.sqrt(-2.0 * math.log(uniform_at(key, block, cell)))
                rows[j, t] = radius * math.cos(2.0 * math.pi * uniform_at(key, block, cell + 1))
        for before in range(first + width):
            mine = before - first
            if mine >= 0:  # one of these rows, free of all that come before it
                size = 0.0
                for j in range(d):
                    size += rows[j, mine] * rows[j, mine]
                for j in range(d):
                    out[before, j] = rows[j, mine] / math.sqrt(size) if size > FLAT else 0.0
            _lose(rows, out[before], max(mine + 1, 0), along)
    for i in range(d):
        for j in range(d):
            out[i, j] *= math.sqrt(d)


@kernel
def _lose(rows: Array, unit: Array, since: int, along: Array) -> None:
    """Take what is along ``unit`` [d] out of the columns of ``rows`` [d, n] from ``since`` on."""
    n = along.shape[0]
    along[:] = 0.0
    for j in range(rows.shape[0]):
        row, u = rows[j], unit[j]
        for t in range(n):
            along[t] += row[t] * u
    along[:since] = 0.0
    for j in range(rows.shape[0]):
        row, u = rows[j], unit[j]
        for t in range(n):
            row[t] -= along[t] * u


@kernel
def search_directions(key: int, people: IntArray, out: IntArray) -> None:
    """The public directions z of these people, in whole steps of the grid, into ``out`` [n, d].

    People 2p and 2p + 1 are a pair and get z and -z; the pairs of a block of d are orthogonal. So
    over whole blocks sum z = 0, and sum z z^T = n I but for rounding. Entries are rounded towards
    zero, so that |z|^2 <= d for everybody, exactly.
    """
    n, d = out.shape
    block = np.empty((d, d))
    have = np.int64(-1)
    for k in range(n):
        pair = people[k] // 2
        if pair // d != have:
            have = pair // d
            _block(key, have, block)
        sign = 1.0 if people[k] % 2 == 0 else -1.0
        for j in range(d):
            out[k, j] = int(sign * (block[pair % d, j] * SHORTER * STEPS))


@kernel
def search_coins(key: int, people: IntArray, out: Array) -> None:
    """A public number in (0, 1) for each of these people, which their directions do not show."""
    for k in range(people.shape[0]):
        out[k] = uniform_at(key + COINS, people[k], 0)
