"""Sums that cannot drift: a float stands for the decimal it is written as; rounding is upward."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction


def exact(x: float) -> Fraction:
    """The decimal number a float is written as."""
    return Fraction(Decimal(repr(x)))


def rounded_up(x: Fraction) -> float:
    """The least float that is written as a number >= x."""
    y = float(x)
    while exact(y) < x:
        y = math.nextafter(y, math.inf)
    return y


def rounded_down(x: Fraction) -> float:
    """The greatest float that is written as a number <= x."""
    return 0.0 - rounded_up(-x)


def root_up(x: Fraction) -> float:
    """A float not below the square root of x."""
    y = math.sqrt(rounded_up(x))
    return y if Fraction(y) ** 2 >= x else math.nextafter(y, math.inf)
