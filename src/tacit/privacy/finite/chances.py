"""Probabilities that can be drawn exactly, and logarithms that are never too small.

Every probability of a secure sampler is k / 2^64 for an integer k: a uniform 64-bit integer from
the operating system is compared with k. Nothing is rounded after that, so the guarantee of a
randomizer is a statement about integers; only its logarithm is a float, rounded up.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, TypeVar

from tacit.validate import number

BITS = 64

ONE: int = 1 << BITS
"""Probability 1, in the units in which chances are drawn."""

LEAST_EPSILON = 1e-9
"""Below this a report says next to nothing and its probabilities run into that unit."""

_ULPS = 8
"""Outward steps: correct rounding of the argument and two ulps of the library's log need four."""


class HasEpsilon(Protocol):
    """Anything that knows its own exact epsilon."""

    @property
    def epsilon(self) -> float:
        """Never below the true value."""


T = TypeVar("T", bound=HasEpsilon)


def happens(threshold: int) -> bool:
    """True with probability exactly threshold / 2^64, from the operating system's entropy."""
    return secrets.randbits(BITS) < threshold


def log_ratio(ratio: Fraction) -> float:
    """Natural logarithm of a positive rational, also where it is next to 1."""
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(ratio - 1)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def log_above(ratio: Fraction) -> float:
    """An upper bound on the logarithm of a rational of float range, a few ulps above it."""
    if Fraction(1, 2) < ratio < 2:
        bound = math.log1p(ratio - 1)
    else:
        bound = math.log(ratio)  # of the correctly rounded float
    for _ in range(_ULPS):
        bound = math.nextafter(bound, math.inf)
    return bound


def least_noise(epsilon: object, make: Callable[[Fraction], T]) -> T:
    """The randomizer ``make(growth)`` of the largest growth near e^epsilon that keeps to epsilon.

    ``make`` rounds its own probabilities to whole units; what it reports as its epsilon is compared
    with the request, and growth is lowered until it fits: the search errs on the private side.
    Requests above 64 get what whole units can give, which is less.
    """
    epsilon = number(epsilon, "epsilon", low=LEAST_EPSILON)
    growth = Fraction(math.exp(min(epsilon, float(BITS))))
    less = Fraction(1, 2**50)
    while (made := make(growth)).epsilon > epsilon:
        growth *= 1 - less
        less = min(2 * less, Fraction(1, 2))
    return made
