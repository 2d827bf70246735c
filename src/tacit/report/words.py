"""Numbers and sentences as a report prints them."""

from __future__ import annotations

import math

from tacit.intervals import Interval
from tacit.report.analysis import Exponent, Price, Winning


def number(x: float | None) -> str:
    """Three digits, with commas, or powers of ten where that is shorter.

    >>> number(12345.0), number(0.012345), number(1.5e7), number(2.0)
    ('12,300', '0.0123', '1.5e7', '2')
    """
    if x is None or math.isnan(x):
        return "?"
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    size = -x if x < 0 else x
    if x and (size >= 1e6 or size < 1e-3):
        digits, power = f"{x:.2e}".split("e")
        digits = digits.rstrip("0").rstrip(".")
        return f"{digits}e{int(power)}"
    rounded = float(f"{x:.3g}")
    return f"{rounded:,.0f}" if size >= 100 else f"{rounded:g}"


def with_range(found: Interval) -> str:
    """A number and its interval in one line."""
    if not math.isfinite(found.low):
        return number(found.value)
    return f"{number(found.value)} ({number(found.low)} to {number(found.high)})"


def share(part: Interval, whole: float) -> str:
    """Regret over what the baseline policy would have lost, in percent, with its interval."""
    if whole <= 0:
        return "nothing to lose here"
    value, low, high = part.value / whole, part.low / whole, part.high / whole
    if not math.isfinite(low):
        return f"{value:.3g}" if value > 10 else f"{value:.2%}"
    return f"{value:.2%} ({low:.2%} to {high:.2%})"


def against_theorem(row: Exponent) -> dict[str, str]:
    """Whether the fitted exponent agrees with the stated one; a bound may be beaten."""
    if row.fit is None:
        return {"kind": "soft", "text": "no fit: some regret is zero"}
    if row.stated is None:
        return {"kind": "soft", "text": "nothing to compare with"}
    found = row.fit.exponent
    if not math.isfinite(found.low):
        return {"kind": "open", "text": "one run: no interval"}
    if found.low <= row.stated <= found.high:
        return {"kind": "good", "text": "agrees"}
    if row.bound.users == row.stated and found.high < row.stated:
        return {"kind": "good", "text": "grows more slowly than the bound"}
    if row.bound.users == row.stated:
        return {
            "kind": "bad",
            "text": "grows faster: not yet in the theorem's range, or not at all",
        }
    flatter = found.low > row.stated
    return {"kind": "open", "text": "flatter in ε" if flatter else "steeper in ε"}


def winning(row: Winning) -> dict[str, str]:
    """The answer, coloured."""
    kind = {"beats": "good", "worse": "bad", "not decided": "open"}[row.answer.verdict]
    return {"kind": kind, "text": row.answer.words()}


def price_words(row: Price) -> str:
    """What a price was measured against."""
    if row.counterpart:
        return row.against.label
    return f"{row.against.label} (best without privacy here)"
