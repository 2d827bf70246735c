"""Where the marks of an axis go, and what is written beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from tacit.service.dashboard.words import real

_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
"""Seconds between two marks of a time axis, below a day."""

DAY = 86_400


@dataclass(frozen=True)
class Axis:
    """A stretch of numbers mapped to a stretch of pixels.

    Attributes:
        low: number at the near end.
        high: number at the far end, larger.
        near: pixel of ``low``.
        far: pixel of ``high``.
        marks: where to write what.
    """

    low: float
    high: float
    near: float
    far: float
    marks: tuple[tuple[float, str], ...]

    def at(self, number: float) -> float:
        """Its pixel; numbers outside go to the nearest end."""
        share = (min(max(number, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.near + share * (self.far - self.near), 1)


def number_axis(low: float, high: float, near: float, far: float, count: int = 4) -> Axis:
    """Round marks over [low, high], widened to the marks around it."""
    if high <= low:
        high = low + max(1.0, abs(low))
    step = _round_step((high - low) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    at = [k * step for k in range(first, last + 1)]
    return Axis(at[0], at[-1], near, far, tuple((x, short(x)) for x in at))


def time_axis(low: float, high: float, near: float, far: float, count: int = 4) -> Axis:
    """Marks at round times of UTC, in the coarsest words that tell them apart."""
    high = max(high, low + 1.0)
    step = next((s for s in _STEPS if (high - low) / s <= count), 0)
    if step == 0:
        step = DAY * max(1, math.ceil((high - low) / DAY / count))
    words = "%H:%M:%S" if step < 60 else "%H:%M" if step < DAY else "%d %b"
    if step >= 365 * DAY:
        words = "%Y"
    first = math.ceil(low / step)
    at = [k * step for k in range(first, math.floor(high / step) + 1)]
    marks = tuple((float(x), datetime.fromtimestamp(x, UTC).strftime(words)) for x in at)
    return Axis(low, high, near, far, marks)


def short(number: float) -> str:
    """A number for an axis: 1.5k, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            return f"{number / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{number:,.0f}" if number == round(number) else real(number).rstrip("0").rstrip(".")


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    for factor in (1.0, 2.0, 2.5, 5.0):
        if step <= factor * power * (1 + 1e-9):
            return factor * power
    return 10.0 * power
