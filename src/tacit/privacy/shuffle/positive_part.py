"""E[(Z_1 + ... + Z_n)_+] for independent copies of a variable with few values, never too small.

This one number is the privacy of a shuffled batch (``blanket.py``). It is wanted where it is tiny,
so the sum is tilted exponentially until its mean is zero, where everything that is added up has the
size of the answer, and every source of error is bounded and added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from tacit.arrays import Array, IntArray

UNIT = 2.0**-53
"""Rounding error of one floating-point operation."""

_HALF_WIDTH = 12.0
"""The window of the convolution reaches this many standard deviations to either side."""

_MOST_CELLS, _AFFORDABLE_CELLS, _LEAST_CELLS = 2**22, 2**16, 2**10


@dataclass(frozen=True, eq=False)
class _Tilted:
    """The law of one term on a grid of ``step``, tilted: log of q(z) = w(z) e^(theta z) / M."""

    cells: IntArray
    logs: Array
    step: float
    theta: float
    log_moment: float

    def log_moment_at(self, extra: float) -> float:
        """log E[e^(extra Z)] under the tilted law."""
        return _log_sum(self.logs + extra * self.step * self.cells)


def expected_positive_part(values: Array, weights: Array, n: int, fineness: float) -> float:
    """An upper bound on E[(Z_1 + ... + Z_n)_+], tight to about n 2^-40 and the grid.

    Every value is split between its two neighbours on a grid, keeping the mean: that spreads the
    law, and the positive part is convex, so the expectation can only grow. Relative to its variance
    one term is spread by at most 1 / (2 fineness)^2.

    Args:
        values: the values of one term; zero may be left out if the weights add up to less than 1.
        weights: their probabilities, all positive; what is missing to 1 has the value zero.
        n: number of terms.
        fineness: grid steps per standard deviation of one term.
    """
    if values.max() <= 0.0:
        return 0.0
    values = np.maximum(np.append(values, 0.0), -n * values.max())  # no sum is positive below
    weights = np.append(weights, max(1.0 - weights.sum(), UNIT))
    theta = _balance(values, weights)
    q = np.exp(np.log(weights) + theta * values - _log_sum(np.log(weights) + theta * values))
    spread = math.sqrt(max(float(q @ values**2) - float(q @ values) ** 2, 0.0))
    width, extra = _window(n, float(values.max() - values.min()), spread, fineness)
    wanted = width * fineness / spread + extra
    cells = int(min(max(2.0 ** math.ceil(math.log2(wanted)), _LEAST_CELLS), _MOST_CELLS))
    term = _on_grid(values, weights, width / (cells - extra), theta)
    reach = n * int(term.cells.max())
    whole = reach - n * int(term.cells.min()) < cells
    last = reach if whole else cells // 2 - 1
    inside = _inside(term, n, cells, last)
    beyond = 0.0 if whole else _beyond(term, n, term.step * last, inside)
    # every weight is good to a few units, and n of them are multiplied
    moment = term.log_moment + 64 * UNIT * (1.0 + math.exp(-term.log_moment))
    return math.exp(n * moment) * (inside + beyond)


def _window(n: int, reach: float, spread: float, fineness: float) -> tuple[float, int]:
    """Width of the window, and the cells by which splitting may exceed it.

    All values of the sum where that is affordable, and nothing needs to be folded; else many
    standard deviations.
    """
    extra = 2 * n + 8
    window = 2.0 * _HALF_WIDTH * math.sqrt(n) * spread
    if n * reach <= window or n * reach * fineness / spread + extra <= _AFFORDABLE_CELLS:
        return n * reach, extra
    return window, 0


def _log_sum(logs: Array) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _balance(values: Array, weights: Array) -> float:
    """The tilt theta >= 0 under which the mean of one term is zero (0 if it is not negative)."""

    def mean(theta: float) -> float:
        tilted = np.exp(theta * (values - values.max())) * weights
        return float(tilted @ values) / float(tilted.sum())

    if mean(0.0) >= 0.0:
        return 0.0
    high = 1.0 / float(values.max())
    while mean(high) < 0.0:
        high *= 2.0
    return float(brentq(mean, 0.0, high, xtol=1e-9 * high, rtol=1e-9))


def _on_grid(values: Array, weights: Array, step: float, theta: float) -> _Tilted:
    """Split every value between its neighbours; rounding only moves values up."""
    place = values / step
    place = np.where(values == 0.0, 0.0, place + 8 * UNIT * (1.0 + np.abs(place).max()))
    below = np.floor(place)
    above = place - below
    cells = np.concatenate([below, below + 1.0])
    split = np.concatenate([weights * (1.0 - above), weights * above])
    cells, split = cells[split > 0.0], split[split > 0.0]
    logs = np.log(split) + theta * step * cells
    total = _log_sum(logs)
    return _Tilted(cells.astype(np.int64), logs - total, step, theta, total)


@lru_cache(maxsize=1)
def _roots(cells: int) -> npt.NDArray[np.complex128]:
    roots: npt.NDArray[np.complex128] = np.exp(-2j * np.pi * np.arange(cells) / cells)
    return roots


def _inside(term: _Tilted, n: int, cells: int, last: int) -> float:
    """Sum of s e^(-theta s) P(S = s) over the first ``last`` steps, tilted law, and its error.

    The transform is evaluated from its few terms (angles are reduced exactly) and raised to the
    power n; folding around the window only adds. Errors are bounded in the mean square and reach
    the sum by Cauchy's inequality.
    """
    roots = _roots(cells)
    frequency = np.arange(cells // 2 + 1)
    transform = np.zeros(frequency.size, dtype=np.complex128)
    for cell, weight in zip(term.cells, np.exp(term.logs), strict=True):
        transform += weight * roots[(int(cell) * frequency) & (cells - 1)]
    size = np.abs(transform)
    power = np.zeros_like(transform)
    seen = size > 0.0
    power[seen] = np.exp(n * np.log(transform[seen]))
    law = np.fft.irfft(power, cells)
    places = np.arange(1, last + 1)
    gain = term.step * places * np.exp(-term.theta * term.step * places)
    one = 2 * (term.cells.size + 2) * UNIT  # absolute error of the transform
    drift = (n * (one + 16 * UNIT)) * np.exp((n - 1) * np.log(size + one))
    drift_norm = _norm(drift) * math.sqrt(2.0 / cells)
    law_norm = _norm(law) * (1.0 + 1e-6)
    error = drift_norm + 8 * math.log2(cells) * UNIT * law_norm
    return float(gain @ np.maximum(law[1 : last + 1], 0.0)) + _norm(gain) * error


def _norm(x: npt.NDArray[Any]) -> float:
    return float(np.sqrt((np.abs(x) ** 2).sum()))


def _beyond(term: _Tilted, n: int, limit: float, inside: float) -> float:
    """Bound on E[S e^(-theta S); S >= limit] under the tilted law, beyond the window.

    S <= e^(k S) / (e k) and e^(-theta S) <= e^(-theta limit) there, so it is at most
    e^(-(theta + t) limit) E[e^((k + t) S)] / (e k) for any k, t > 0; the best of a few t is taken.
    """
    best = math.inf
    k = 1.0 / limit
    for power in range(-2, 12):
        t = k * 2.0**power
        exponent = n * term.log_moment_at(k + t) - (t + term.theta) * limit
        best = min(best, exponent)
        if best < math.log(inside) - 50.0:
            break
    return math.exp(min(best, 700.0)) / (math.e * k)
