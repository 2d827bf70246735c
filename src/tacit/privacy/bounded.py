"""Noise of bounded support with a doubly exponential edge, and its true delta.

The density on (-R, R) is proportional to exp(-exp(R^2 / (R^2 - x^2))). The paper's radius rests on
a theorem that does not apply at any size met here (docs/papers/tabular_ldp.md#e7), so the
guarantee is computed: privacy losses of all shifted cells are put on a grid, never below their true
effect, and convolved. Simulated sampling only: a secure sampler on integers does not exist for this
law.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.polynomial.legendre import leggauss

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.validate import finite_array, integer, number

VARIANCE = 0.08195318038523
"""Variance of the noise of radius 1; the standard deviation is 0.286275 R."""

LARGEST_EPSILON = 500.0
ROUNDING = 1e-12
"""What floats and Fourier transforms may lose; added to every delta."""

_EDGE = math.sqrt(1.0 - 1.0 / math.log(745.0))
"""Beyond this share of the radius the density is below e^-745: nothing is ever drawn there."""

_TAIL = math.sqrt(1.0 - 1.0 / math.log(32.0))
"""Beyond this share there is mass below 1e-14; losses are tabulated up to the one met here."""

_MESH = 4096
"""Intervals, at least, on which five Gauss nodes integrate the density to the last digit."""

_NODES, _WEIGHTS = leggauss(5)


def bounded_delta(radii: Array, shifts: Array, epsilon: float, points: int = 4096) -> float:
    """Upper bound on delta(epsilon) between the noises and the same noises shifted, jointly.

    Args:
        radii: radius of the noise of each cell.
        shifts: by how much each cell moves between the two users; the sign does not matter.
        epsilon: at which the hockey-stick divergence is taken.
        points: grid points per side for the widest loss; the bound tightens with the square.
    """
    radii, shifts = finite_array(radii, "radii"), finite_array(shifts, "shifts")
    epsilon = number(epsilon, "epsilon", low=0.0, high=LARGEST_EPSILON)
    from scipy.signal import fftconvolve

    points = integer(points, "points", low=16, high=2**17)
    if radii.ndim != 1 or radii.shape != shifts.shape:
        raise InvalidInput(
            f"radii has shape {radii.shape} and shifts {shifts.shape}, but both must be rows of "
            "one length"
        )
    if (radii <= 0.0).any():
        raise InvalidInput(f"radii = {radii}, but every radius must be > 0")
    moves = Counter(float(m) for m in np.abs(shifts) / radii if m > 0.0)
    if not moves:
        return 0.0
    if max(moves) >= 2.0 * _EDGE:
        return 1.0  # supports (as good as) disjoint
    widest = {move: _widest_loss(move, epsilon) for move in moves}
    step = max(widest.values()) / points
    total, infinite = np.ones(1), 0.0
    lowest = 0
    for move, times in moves.items():
        reach = math.ceil(widest[move] / step)
        masses, beyond = _loss_grid(move, step, reach)
        for _ in range(times):
            total = np.maximum(fftconvolve(total, masses), 0.0)
            lowest -= reach
            infinite += (1.0 - infinite) * beyond
    values = step * (lowest + np.arange(total.size))
    gain = -np.expm1(np.minimum(epsilon - values, 0.0))
    return min(1.0, infinite + float(np.sum(total * gain)) + ROUNDING)


@functools.lru_cache(maxsize=128)
def bounded_epsilon(radii: tuple[float, ...], shifts: tuple[float, ...], delta: float) -> float:
    """The least epsilon (to one part in 10^6, never below) at which delta holds.

    Infinite where none up to 500 does: bounded supports that part do not come back together.
    """
    delta = number(delta, "delta", low=2.0 * ROUNDING, high=1.0)

    def excess(epsilon: float) -> float:
        return math.log(bounded_delta(np.array(radii), np.array(shifts), epsilon) / delta)

    if excess(0.0) <= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    while excess(high) > 0.0:
        if high == LARGEST_EPSILON:
            return math.inf
        low, high = high, min(2.0 * high, LARGEST_EPSILON)
    return _least(excess, low, high)


def _least(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function reaches 0: at most one part in 10^6 too high, and checked."""
    from scipy.optimize import brentq

    root = float(brentq(excess, low, high, xtol=1e-9 * high, rtol=1e-7))
    while excess(root) > 0.0:
        root = min(root * (1.0 + 2e-7), high)
    return root


def tabular_shifts(horizon: int, visit_tables: int = 2) -> tuple[Array, Array]:
    """The worst shifts of (R, N_r) and of N_p when one trajectory of that horizon is replaced.

    Every table can move by its whole mass from one cell to another one: H in two cells of R, H in
    two cells of N_r (and of R_2, where that is a third such table), H - 1 in two cells of N_p. No
    other pair of trajectories is worse at any epsilon (proofs/bounded_noise.md): for log-concave
    noise two shifts of one table are never worse than their sum in one cell.
    """
    horizon = integer(horizon, "horizon", low=1)
    return np.full(2 * visit_tables, float(horizon)), np.full(2, horizon - 1.0)


def tabular_delta(
    radius: float,
    ratio: float,
    horizon: int,
    epsilon: float,
    participations: int = 1,
    visit_tables: int = 2,
) -> float:
    """True delta of the tabular report: radius R1 on R and N_r, ratio * R1 on N_p, jointly.

    A person who takes part m times moves all cells m times, each time under fresh noise.
    """
    radius = number(radius, "radius", low=0.0, low_open=True)
    ratio = number(ratio, "ratio", low=0.0, low_open=True)
    first, second = tabular_shifts(horizon, visit_tables)
    radii = np.concatenate([np.full(first.size, radius), np.full(second.size, ratio * radius)])
    shifts = np.concatenate([first, second])
    times = integer(participations, "participations", low=1)
    return bounded_delta(np.tile(radii, times), np.tile(shifts, times), epsilon)


@functools.lru_cache(maxsize=128)
def calibrate_radius(
    epsilon: float,
    delta: float,
    horizon: int,
    ratio: float,
    participations: int = 1,
    visit_tables: int = 2,
) -> float:
    """The least R1 (to one part in 10^6, never below) whose true delta at epsilon is <= delta.

    The paper's choice of the ratio R2 / R1 is sqrt(S). delta falls as the radius grows; what is
    returned was itself checked.
    """
    epsilon = number(epsilon, "epsilon", low=0.0, high=LARGEST_EPSILON)
    delta = number(delta, "delta", low=2.0 * ROUNDING, high=1.0, high_open=True)

    def excess(radius: float) -> float:
        facts = radius, ratio, horizon, epsilon, participations, visit_tables
        return math.log(tabular_delta(*facts) / delta)

    low = high = float(integer(horizon, "horizon", low=1))
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
    while excess(low) <= 0.0:
        low, high = low / 2.0, low
    return _least(excess, low, high)


def paper_radius(epsilon: float, delta: float, states: int, actions: int) -> float:
    """R1 = sqrt(SA ln(1 / delta)) / eps' with C = 1, eps' being the budget of one step (3.3)."""
    epsilon = number(epsilon, "epsilon", low=0.0, low_open=True)
    delta = number(delta, "delta", low=0.0, high=1.0, low_open=True, high_open=True)
    pairs = integer(states, "states", low=1) * integer(actions, "actions", low=1)
    return math.sqrt(pairs * math.log(1.0 / delta)) / epsilon


def log_density(y: Array) -> Array:
    """Logarithm of the density of radius 1, up to a constant; -1e9 at the edge and beyond.

    Sums and squares of such numbers stay finite, and no draw ever has one.
    """
    return -np.minimum(_steepness(y), 1e9)


def _steepness(y: Array) -> Array:
    """exp(1 / (1 - y^2)), minus the log of the density of radius 1; e^700 from the edge on."""
    room = np.maximum(1.0 - y * y, 1.0 / 700.0)
    return np.asarray(np.exp(1.0 / room))


def _integrals(edges: Array, move: float) -> Array:
    """Mass of the noise shifted by ``move`` between consecutive edges: five Gauss nodes each."""
    half = np.diff(edges)[:, None] / 2.0
    middle = (edges[:-1, None] + edges[1:, None]) / 2.0
    density = np.exp(-_steepness(middle + half * _NODES - move))  # not normalised
    return np.asarray((density @ _WEIGHTS) * half[:, 0])


def _widest_loss(move: float, epsilon: float) -> float:
    """Losses above this count as infinite: they have no mass worth counting, or weigh e^-40."""
    if move + _TAIL >= _EDGE:
        return epsilon + 40.0
    inner, outer = _steepness(np.array([_TAIL, _TAIL + move]))
    return min(float(outer - inner), epsilon + 40.0)


def _loss_grid(move: float, step: float, points: int) -> tuple[Array, float]:
    """Privacy losses log f(y) / f(y - move) of one cell of radius 1, spread to the grid from above.

    Their masses at multiples of the step from -points to points, and at infinity.

    The loss falls in y (the noise is log-concave), so on a short interval it lies between its two
    ends, and these between two grid values. All mass of the interval is moved to those two values
    so that its total is kept under both laws: the hockey stick is convex in the likelihood ratio,
    so no delta gets smaller.
    """
    edges = np.linspace(move - _EDGE, _EDGE, max(4 * points, _MESH))
    here, there = _integrals(edges, 0.0) / _TOTAL, _integrals(edges, move) / _TOTAL
    losses = (_steepness(edges - move) - _steepness(edges)) / step
    use = losses[:-1] <= points  # what lies above the grid counts as infinite
    here, there, least = here[use], there[use], losses[1:][use]
    low = np.maximum(np.floor(least), -points).astype(np.int64)
    high = np.maximum(np.ceil(losses[:-1][use]), -points).astype(np.int64)
    up = (here - there * np.exp(step * low)) / -np.expm1(-step * np.maximum(high - low, 1))
    up = np.where(least < -points, here, np.clip(up, 0.0, here))
    masses = np.zeros(2 * points + 1)
    np.add.at(masses, low + points, here - up)
    np.add.at(masses, high + points, up)
    return masses, max(0.0, 1.0 - float(np.sum(here)))


_TOTAL = float(np.sum(_integrals(np.linspace(-1.0, 1.0, _MESH), 0.0)))
