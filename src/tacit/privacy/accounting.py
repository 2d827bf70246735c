"""Conversions between noise and guarantee: a thin layer on dp-accounting.

Gaussian charges are kept as mu^2, the squared ratio of L2 sensitivity to noise standard deviation:
the squares of everything one user contributes add up, and the total converts exactly. Searches
begin where those of dp-accounting end, which is not imported for it (it takes over a second).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np

from tacit.errors import InvalidInput
from tacit.validate import number

_TINY = -700.0

_CANCELS = 1e-7
"""Two logarithms closer than this share of their size have lost the digits of their difference."""

LEAST_DELTA = 1e-300
MOST_DELTA = 1.0 - 1e-6
"""Requests between these are met to one part in 10^6 and never exceeded; others are refused."""

LEAST_EPSILON, MOST_EPSILON = 1e-12, 1e9
"""Likewise."""

DISCRETE = 1e-8
"""Relative share by which mu is raised where noise may be discrete Gaussian: its delta exceeds the
continuous one by a relative 1e-9 at the fineness that is required, and this covers it."""

_MOST_MU = 1e4
"""A mu beyond which nothing is protected, and formulas are not trusted."""

_SAFETY = 2 * DISCRETE
"""Relative share of mu given away, far above rounding errors: what is calibrated also re-checks."""


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Exact delta of mu-Gaussian DP at epsilon.

    delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), for the sensitivity over sigma ratio mu.
    Where both terms agree in nearly all digits it is written as the integral of 1 - t m(t) over
    [x - mu/2, x + mu/2] times phi(x - mu/2), with x = eps/mu and m(t) = Phi(-t) / phi(t), and that
    short integral as its width times its middle. Below 1e-300 the value is a bound.
    """
    mu = number(mu, "mu", low=0.0)
    epsilon = number(epsilon, "epsilon", low=0.0)
    if mu == 0.0:
        return 0.0
    from scipy.special import erfcx, log_ndtr  # devices without Gaussian noise lack it

    first = float(log_ndtr(mu / 2 - epsilon / mu))
    if first < _TINY:  # the difference would cancel; its first term alone is an upper bound
        return math.exp(first)
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    if first - second < _CANCELS * (1.0 - first):
        x = epsilon / mu
        middle = 1.0 - x * math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))
        return mu * middle * math.exp(-((x - mu / 2) ** 2) / 2) / math.sqrt(2 * math.pi)
    return max(0.0, -math.exp(first) * math.expm1(second - first))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon of mu-Gaussian DP at delta; inf at delta = 0.

    Never below the true one of mu (1 - 1e-9): rounding, which the share ``DISCRETE`` covers.
    """
    mu = number(mu, "mu", low=0.0)
    delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
    if mu == 0.0 or (delta > 0.0 and gaussian_delta(mu, 0.0) <= delta):
        return 0.0
    if delta == 0.0:
        return math.inf
    if delta < LEAST_DELTA:
        raise InvalidInput(
            f"delta = {delta:g}, but it must be 0 or >= {LEAST_DELTA:g}: smaller ones run out of "
            "digits"
        )
    near = _near(lambda epsilon: _log_delta(1.0 / mu, epsilon), delta, 0.0)
    return least(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, near)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose exact guarantee is (epsilon, delta): the least noise that suffices."""
    epsilon = number(epsilon, "epsilon", low=LEAST_EPSILON, high=MOST_EPSILON)
    delta = number(delta, "delta", low=LEAST_DELTA, high=MOST_DELTA)
    near = _near(lambda sigma: _log_delta(sigma, epsilon), delta, 0.1)
    sigma = least(lambda sigma: gaussian_delta(1.0 / sigma, epsilon) <= delta, near)
    return (1.0 - _SAFETY) / sigma


def _log_delta(sigma: float, epsilon: float) -> float:
    """ln of the delta of ``gaussian_delta`` for noise of 1 / mu: good enough to begin a search."""
    from scipy.special import log_ndtr

    with np.errstate(all="ignore"):  # the search may pass through an infinite logarithm
        middle = epsilon * sigma + 1 / (2 * sigma)
        first, second = log_ndtr(1 / sigma - middle), epsilon + log_ndtr(-middle)
        return float(first + np.log1p(-np.exp(second - first)) if second <= first else -np.inf)


def _near(log_delta: Callable[[float], float], delta: float, low: float) -> float:
    """Where a falling function passes ln(delta): to the last bit as dp-accounting searches."""
    from scipy.optimize import brentq

    high, target = 1.0, float(np.log(delta))
    while log_delta(low) < target:
        if low == 0.0:
            return 0.0
        low, high = low / 10, low
    while log_delta(high) > target:
        low, high = high, high * 10
    return float(brentq(lambda x: log_delta(x) - target, low, high, xtol=1e-12))


def least(holds: Callable[[float], bool], near: float) -> float:
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


def mixed_delta(mu: float, pure: float, epsilon: float) -> float:
    """Exact delta at epsilon of a mu-Gaussian mechanism together with a pure one.

    With s = 1 / (1 + e^-pure): s * delta_mu(epsilon - pure) + (1 - s) * delta_mu(epsilon + pure).
    """
    if math.isinf(pure):
        return 1.0
    share = 1.0 / (1.0 + math.exp(-pure))
    near, far = signed_delta(mu, epsilon - pure), signed_delta(mu, epsilon + pure)
    return share * near + (1.0 - share) * far


def signed_delta(mu: float, epsilon: float) -> float:
    """The exact Gaussian delta, also at negative epsilon: 1 - e^eps + e^eps delta(-eps).

    Where the formula would underflow or cancel, a bound that is as good as exact.
    """
    if epsilon < 0:
        return -math.expm1(epsilon) + math.exp(epsilon) * signed_delta(mu, -epsilon)
    if mu > _MOST_MU:
        return 1.0
    if mu > 0.0 and epsilon / mu - mu / 2 > 38.0:  # delta < Phi(mu/2 - eps/mu) < 1e-300
        return 1e-300
    return gaussian_delta(mu, epsilon)
