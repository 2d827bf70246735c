"""Plots as inline SVG: no script, no style attribute, colours by class, numbers in the title.

Every plot carries a sentence that says what it shows, for those who cannot see it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from tacit_service.dashboard.words import real

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
    factors = (f for f in (1.0, 2.0, 2.5, 5.0) if step <= f * power * (1 + 1e-9))
    return next(factors, 10.0) * power


WIDE, TALL = 480, 270
LEFT, RIGHT, TOP, BOTTOM = 54, 16, 30, 48


@dataclass(frozen=True)
class BandPoint:
    """An estimate with its band, after so many users, of one version of the policy."""

    users: int
    low: float
    middle: float
    high: float
    version: int = 0


def users_over_time(
    points: Sequence[tuple[float, int]], now: tuple[float, int], population: int
) -> Markup:
    """Reports behind each published policy, as steps over time, and the count of now.

    Args:
        points: time of publication and users in its release, in order.
        now: the time of the page and the reports counted by then.
        population: how many may take part at all.
    """
    x = time_axis(points[0][0], max(now[0], points[-1][0]), LEFT, WIDE - RIGHT, 3)
    top = population if now[1] > 0.4 * population else max(1, round(1.25 * now[1]))
    y = number_axis(0.0, float(top), TALL - BOTTOM, TOP)
    steps = f"M{x.at(points[0][0])} {y.at(points[0][1])}"
    for at, users in points[1:]:
        steps += f"H{x.at(at)}V{y.at(users)}"
    steps += f"H{x.at(now[0])}"
    parts = [Markup('<path class="line" d="{}"/>').format(steps)]
    if len(points) <= 40:
        parts += [_dot("dot", x.at(at), y.at(users)) for at, users in points]
    parts.append(_dot("now", x.at(now[0]), y.at(now[1])))
    if top == population:
        parts.append(_level(y.at(population), "population"))
    sentence = f"{now[1]:,} reports counted so far, {points[-1][1]:,} of them in the newest policy."
    return _frame("Reports over time", sentence, x, y, "time (UTC)", "reports", parts)


def value_over_users(
    points: Sequence[BandPoint], span: tuple[float, float], name: str = "Estimated value"
) -> Markup:
    """The value of every policy with its band, if it has one, over the number of users behind it.

    Args:
        points: in order of users.
        span: least and largest value that is possible at all.
        name: what the value is called.
    """
    low, high = min(p.low for p in points), max(p.high for p in points)
    room = 0.05 * max(high - low, 1e-9)
    x = number_axis(0.0, float(points[-1].users), LEFT, WIDE - RIGHT, 3)
    y = number_axis(max(low - room, span[0]), min(high + room, span[1]), TALL - BOTTOM, TOP)
    most = [_level(y.at(span[1]), "most possible")] if y.high >= span[1] else []
    above = [f"{x.at(p.users)},{y.at(p.high)}" for p in points]
    below = [f"{x.at(p.users)},{y.at(p.low)}" for p in reversed(points)]
    middle = [f"{x.at(p.users)},{y.at(p.middle)}" for p in points]
    newest = points[-1]
    parts = [
        Markup('<polygon class="band" points="{}"/>').format(" ".join(above + below)),
        Markup('<polyline class="line" points="{}"/>').format(" ".join(middle)),
        Markup('<path class="whisker" d="M{0} {1}V{2}"/>').format(
            x.at(newest.users), y.at(newest.low), y.at(newest.high)
        ),
        _dot("now", x.at(newest.users), y.at(newest.middle)),
        *most,
    ]
    sentence = f"After {newest.users:,} reports {newest.middle:.4g}, " + (
        f"with a band from {newest.low:.4g} to {newest.high:.4g}."
        if newest.low < newest.high
        else "with no band."
    )
    return _frame(name, sentence, x, y, "reports", "value", parts)


def bar(share: float, sentence: str) -> Markup:
    """A share of a whole."""
    filled = round(100 * min(max(share, 0.0), 1.0), 2)
    return Markup(
        '<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><rect class="empty" width="100" height="4"/>'
        '<rect class="full" width="{}" height="4"/></svg>'
    ).format(sentence, filled)


def overview(actions: Sequence[Sequence[int]], sentence: str) -> Markup:
    """A large action map at a glance: one coloured cell per state (down) and stage (across).

    Args:
        actions: of every stage, by state.
        sentence: what it shows.
    """
    stages, states = len(actions), len(actions[0])
    parts = []
    for s, row in enumerate(zip(*actions, strict=True)):
        h = 0
        for action, alike in itertools.groupby(row):
            width = len(list(alike))
            parts.append(
                Markup('<rect class="{}" x="{}" y="{}" width="{}" height="1"/>').format(
                    colour(action), h, s, width
                )
            )
            h += width
    return Markup(
        '<svg class="overview" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{}" shape-rendering="crispEdges">{}</svg>'
    ).format(stages, states, sentence, Markup("").join(parts))


COLOURS = 8
"""Number of colours in the style sheet; letters tell actions apart where they repeat."""


def colour(action: int) -> str:
    """The class that colours an action."""
    return f"a{action % COLOURS}"


def _dot(kind: str, x: float, y: float) -> Markup:
    return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(
        kind, x, y, 5 if kind == "now" else 2.5
    )


def _level(y: float, word: str) -> Markup:
    return Markup(
        '<path class="level" d="M{} {}H{}"/><text class="mark" x="{}" y="{}">{}</text>'
    ).format(LEFT, y, WIDE - RIGHT, LEFT + 6, y - 5, word)


def _frame(
    title: str, desc: str, x: Axis, y: Axis, across: str, up: str, parts: Sequence[Markup]
) -> Markup:
    """Grid, marks, words and what is drawn over them."""
    floor = TALL - BOTTOM
    drawn = [
        Markup('<path class="grid" d="M{} {}H{}"/><text class="mark right" x="{}" y="{}">{}</text>')
        .format(LEFT, y.at(at), WIDE - RIGHT, LEFT - 7, y.at(at) + 5, text)
        for at, text in y.marks
    ]  # fmt: skip
    drawn += [
        Markup('<path class="tick" d="M{} {}v5"/><text class="mark {}" x="{}" y="{}">{}</text>')
        .format(x.at(at), floor, _anchor(x.at(at)), x.at(at), floor + 20, text)
        for at, text in x.marks
    ]  # fmt: skip
    names = Markup(
        '<path class="tick" d="M{} {}H{}"/><text class="name middle" x="{}" y="{}">{}</text>'
        '<text class="name" x="4" y="14">{}</text>'
    ).format(LEFT, floor, WIDE - RIGHT, (LEFT + WIDE - RIGHT) / 2, TALL - 8, across, up)
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        "<title>{}</title><desc>{}</desc>{}</svg>"
    ).format(WIDE, TALL, f"{title}. {desc}", title, desc, Markup("").join([*drawn, names, *parts]))


def _anchor(x: float) -> str:
    """Words at the right edge end there."""
    return "right" if x > WIDE - RIGHT - 24 else "middle"
