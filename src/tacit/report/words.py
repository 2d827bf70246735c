"""Numbers and sentences as a report prints them."""

from __future__ import annotations

import math

from tacit.intervals import Interval
from tacit.report.analysis import Exponent, Price, Winning

METHODS = (
    "Regret is exact: what the optimal policy would have earned minus what the played policies "
    "earn on average, summed over users. It needs the true problem, so it exists in simulation "
    "only.",
    "Runs with the same seed met the same users whoever learned, so agents are compared seed by "
    "seed (common random numbers).",
    "Bands are simultaneous: with 95% confidence the expected curve is inside at all of up to 16 "
    "knots together (Student t, Bonferroni). Between knots lines are drawn for the eye; expected "
    "regret never falls, so there it lies above the earlier lower end and below the later upper "
    "end.",
    "Numbers in brackets are 95% Student t intervals over seeds, each for itself.",
    "Prices are geometric means of paired ratios with the paired t interval of their logarithms.",
    "Comparisons flip signs of paired differences: an exact test, whatever the law of regret. "
    "With n seeds no p-value is below 2 / 2^n. All comparisons of a table are corrected together "
    "(Holm).",
    "Exponents are fitted on log-log axes seed by seed; the interval is the t interval over seeds. "
    "It says how sharply the slope is known, not that the law is a power law. Theorems hold for K "
    "large enough; at the sizes that can be run their bounds are often far above the curves.",
    "The K that beats the baseline is tested from the last K backwards, one-sided at 5%, stopping "
    "at the first that is not shown; such a sequence needs no further correction.",
    "Forecasts draw a power law through the users needed at the measured epsilons. Outside these "
    "they are extrapolations and marked; their interval holds only if the law does.",
)


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


def share(found: Interval | None) -> str:
    """A part of the whole, in percent, with its interval."""
    if found is None:
        return "nothing to lose here"
    if not math.isfinite(found.low):
        return f"{found.value:.3g}" if found.value > 10 else f"{found.value:.2%}"
    return f"{found.value:.2%} ({found.low:.2%} to {found.high:.2%})"


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
