"""Conversions between noise and guarantee: a thin layer on dp-accounting.

Gaussian charges are kept as mu^2, the squared ratio of L2 sensitivity to noise standard deviation:
the squares of everything one user contributes add up, and the total converts exactly. dp-accounting
is imported on first use (it takes over a second).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np

from tacit.validate import number

_TINY = -700.0
DISCRETE = 1e-8
"""Relative share by which mu is raised where noise may be discrete Gaussian: its delta exceeds the
continuous one by a relative 1e-9 at the fineness that is required, and this covers it."""

_SAFETY = 2 * DISCRETE
"""Relative share of mu given away, far above rounding errors: what is calibrated also re-checks."""


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Exact delta of mu-Gaussian DP at epsilon.

    delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), for the sensitivity over sigma ratio mu.
    """
    mu = number(mu, "mu", low=0.0)
    epsilon = number(epsilon, "epsilon", low=0.0)
    if mu == 0.0:
        return 0.0
    from scipy.special import log_ndtr  # devices whose reports have no Gaussian noise lack it

    first = float(log_ndtr(mu / 2 - epsilon / mu))
    if first < _TINY:  # the difference would cancel; its first term alone is an upper bound
        return math.exp(first)
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return max(0.0, -math.exp(first) * math.expm1(second - first))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon of mu-Gaussian DP at delta, never below the true one; inf at delta = 0."""
    from dp_accounting import get_epsilon_gaussian

    mu = number(mu, "mu", low=0.0)
    delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
    if mu == 0.0 or (delta > 0.0 and gaussian_delta(mu, 0.0) <= delta):
        return 0.0
    if delta == 0.0:
        return math.inf
    with np.errstate(all="ignore"):  # its search may pass through an infinite logarithm
        near = float(get_epsilon_gaussian(1.0 / mu, delta))
    return _least(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, near)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose exact guarantee is (epsilon, delta): the least noise that suffices."""
    from dp_accounting import get_sigma_gaussian

    epsilon = number(epsilon, "epsilon", low=0.0, low_open=True)
    delta = number(delta, "delta", low=0.0, high=1.0, low_open=True, high_open=True)
    near = float(get_sigma_gaussian(epsilon, delta))
    sigma = _least(lambda sigma: gaussian_delta(1.0 / sigma, epsilon) <= delta, near)
    return (1.0 - _SAFETY) / sigma


def _least(holds: Callable[[float], bool], near: float) -> float:
    """The least number that satisfies a condition which stays true once true.

    A search that stopped ``near`` it may err to either side; this ends on the safe one.
    """
    low = high = max(near, sys.float_info.min)
    width = 1e-9
    while low > 0.0 and holds(low):
        low, width = max(low * (1 - width), 0.0), min(4 * width, 1.0)
    width = 1e-9
    while not holds(high):
        high, width = high * (1 + width), 4 * width
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def pure_delta(epsilon: float, at: float) -> float:
    """The largest delta at level ``at`` of any mechanism that is purely epsilon-DP.

    The worst pair is randomized response: (e^epsilon - e^at) / (1 + e^epsilon), 0 from epsilon on.
    """
    epsilon = number(epsilon, "epsilon", low=0.0)
    if at >= epsilon:
        return 0.0
    return -math.expm1(at - epsilon) / (1.0 + math.exp(-epsilon))
