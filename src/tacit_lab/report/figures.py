"""Pictures of a report as inline SVG: drawn twice, for wide pages and paper, and for phones.

Text stays text, so that it is sharp in print and can be searched; every curve is a group with a
name, so that a few lines of script can hide it, and each picture carries where its axes lie, so
that they can show the numbers under a finger.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Array, IntArray
from tacit_lab.report.analysis import Exponent, grouped
from tacit_lab.report.results import Arm
from tacit_lab.report.statistics import Band, regret_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = {"wide": (7.6, 4.3), "narrow": (3.7, 3.5)}
"""Inches; a narrow picture fills a phone without its text shrinking."""

HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d1f", "#56b4e9", "#7a3b9d", "#444444")
"""Learners; apart for most kinds of colour blindness. Lighter shades are smaller epsilons."""

DASHES = ("-", (0, (6, 2)), (0, (3, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
"""Epsilons of one learner, from the largest down: shades alone are hard to tell apart."""


@dataclass(frozen=True)
class Style:
    """How an arm is drawn everywhere in its section."""

    colour: str
    dash: Any


BASELINE = Style("0.45", ":")


@dataclass(frozen=True)
class Picture:
    """One drawing in one size.

    Attributes:
        size: "wide" or "narrow".
        scale: "linear" or "log".
        svg: the drawing.
        axes: the box of its axes in the drawing's own units and the limits of x, for the script.
    """

    size: str
    scale: str
    svg: str
    axes: dict[str, Any]


@dataclass(frozen=True, eq=False)
class DrawnCurve:
    """A mean regret curve with its band, thinned for the page."""

    arm: Arm
    style: Style
    episodes: IntArray
    mean: Array
    band: Band | None


def styles(arms: Sequence[Arm]) -> dict[str, Style]:
    """A style for every label: hue by learner, shade and dashes by epsilon."""
    table = {}
    for place, same in enumerate(grouped(arms, lambda arm: arm.learner).values()):
        epsilons = sorted({arm.level for arm in same})
        for arm in same:
            rank = len(epsilons) - 1 - epsilons.index(arm.level)
            colour = _lighter(HUES[place % len(HUES)], 0.42 * rank / max(len(epsilons) - 1, 1))
            table[arm.label] = Style(colour, DASHES[min(rank, len(DASHES) - 1)])
    return table


def parts(colour: str) -> list[int]:
    """Red, green and blue."""
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def _lighter(colour: str, share: float) -> str:
    return "#" + "".join(f"{round(part + (255 - part) * share):02x}" for part in parts(colour))


def curves_of(arms: Sequence[Arm], style: dict[str, Style]) -> list[DrawnCurve]:
    """What :func:`draw_curves` draws; at most 80 points of a curve, the knots among them."""
    drawn = []
    for arm in arms:
        result = arm.result
        band = regret_band(result.regret, result.episodes)
        last = result.episodes[-1]
        wanted = np.concatenate([last * np.arange(1, 41) / 40, np.geomspace(1, last, 40)])
        at = np.unique(np.searchsorted(result.episodes, np.minimum(wanted, last)))
        mean = result.regret.mean(axis=0)
        drawn.append(DrawnCurve(arm, style[arm.label], result.episodes[at], mean[at], band))
    return drawn


def draw_curves(curves: Sequence[DrawnCurve], name: str) -> list[Picture]:
    """Regret curves with bands, on linear and on logarithmic axes."""
    longest = max(curves, key=lambda curve: int(curve.episodes[-1]))
    gap, ends = longest.arm.result.gap, longest.episodes

    def draw(axes: Axes, name: str) -> None:
        for number, curve in enumerate(curves):
            own, band = curve.style, curve.band
            _line(axes, f"{name}-line-{number}", curve.episodes, curve.mean, own, 1.6)
            if band is not None:
                fill = axes.fill_between(
                    band.episodes, band.low, band.high, color=own.colour, alpha=0.15, lw=0
                )
                fill.set_gid(f"{name}-band-{number}")
        _line(axes, f"{name}-baseline", ends, gap * ends, BASELINE, 1.2)

    def linear(axes: Axes, name: str) -> None:
        draw(axes, name)
        top = max(float(curve.mean.max()) for curve in curves)
        axes.set(xlim=(0, int(ends[-1])), ylim=(0, 1.15 * max(top, 1e-9)))
        axes.locator_params(axis="x", nbins=6 if "-wide-" in name else 4)
        axes.xaxis.set_major_formatter(lambda x, _: _count(x))
        axes.yaxis.set_major_formatter(lambda y, _: _count(y))

    def log(axes: Axes, name: str) -> None:
        draw(axes, name)
        axes.set(xscale="log", yscale="log")
        positive = [curve.mean[curve.mean > 0].min() for curve in curves if (curve.mean > 0).any()]
        if positive:
            axes.set_ylim(bottom=min(positive) / 1.5)

    labels = ("users", "cumulative regret")
    return [
        _picture(f"{name}-{size}-{scale}", size, scale, labels, draw_scale)
        for scale, draw_scale in (("linear", linear), ("log", log))
        for size in SIZES
    ]


def draw_days(arms: Sequence[Arm], style: dict[str, Style], name: str) -> list[Picture]:
    """Regret per participation between two points, over the days of people who come back."""

    def draw(axes: Axes, name: str) -> None:
        for number, arm in enumerate(arms):
            result = arm.result
            assert result.returning is not None
            lost = np.diff(result.regret.mean(axis=0), prepend=0.0)
            rate = lost / np.diff(result.episodes, prepend=0)
            days = result.returning.days
            _line(axes, f"{name}-line-{number}", days, rate, style[arm.label], 1.6)
        baseline = axes.axhline(arms[0].result.gap, color="0.45", ls=":", lw=1.2)
        baseline.set_gid(f"{name}-baseline")
        axes.set(xlim=(0, None), ylim=(0, None))

    labels = ("days", "regret per participation")
    return [_picture(f"{name}-{size}", size, "linear", labels, draw) for size in SIZES]


def draw_exponents(
    rows: Sequence[Exponent], style: dict[str, Style], name: str, what: str
) -> list[Picture]:
    """Points with intervals on log-log axes, the fitted line, and the theorem's slope, dotted."""

    def draw(axes: Axes, name: str) -> None:
        for number, row in enumerate(rows):
            own = style[row.name]
            xs, means = np.array(row.xs), np.array([point.value for point in row.means])
            low = np.array([max(point.low, point.value * 1e-3, 1e-12) for point in row.means])
            high = np.array([point.high for point in row.means])
            errors = np.where(np.isfinite(high), [means - low, high - means], 0.0)
            drawn = axes.errorbar(xs, means, yerr=errors, fmt="o", ms=4, lw=1, color=own.colour)
            drawn.lines[0].set_gid(f"{name}-line-{number}")
            drawn.lines[2][0].set_gid(f"{name}-bar-{number}")
            if row.fit is None:
                continue
            ends = np.geomspace(row.fit.low, row.fit.high, 2)
            _line(axes, f"{name}-fit-{number}", ends, row.fit.at(ends), own, 1.4)
            if row.stated is not None:
                middle = float(np.sqrt(ends[0] * ends[1]))
                stated = row.fit.at(np.array([middle]))[0] * (ends / middle) ** row.stated
                dotted = Style(own.colour, ":")
                _line(axes, f"{name}-stated-{number}", ends, stated, dotted, 1.2)
        axes.set(xscale="log", yscale="log")
        ticks = sorted({x for row in rows for x in row.xs})
        if len(ticks) <= 8:  # one at every measured x: round numbers as a rule
            axes.set_xticks(ticks, [_count(x) for x in ticks])
            axes.set_xticks([], minor=True)

    labels = (what, "final regret")
    return [_picture(f"{name}-{size}", size, "log", labels, draw) for size in SIZES]


def _line(axes: Axes, name: str, x: ArrayLike, y: ArrayLike, style: Style, width: float) -> None:
    (line,) = axes.plot(x, y, color=style.colour, ls=style.dash, lw=width)
    line.set_gid(name)


def _count(x: float) -> str:
    """A number beside a tick."""
    return f"{x:,.0f}" if 1000 <= x < 1e7 else f"{x:g}"


def _picture(
    name: str, size: str, scale: str, labels: tuple[str, str], draw: Callable[[Axes, str], None]
) -> Picture:
    """What ``draw`` draws into axes of that size, with ids that begin with the name."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZES[size], layout="constrained")
    axes = figure.add_subplot()
    axes.grid(alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    draw(axes, name)
    axes.set(xlabel=labels[0], ylabel=labels[1])
    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tacit", "font.size": 9}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    width, height = (72 * inches for inches in SIZES[size])
    box = axes.get_position()
    placed: dict[str, Any] = {"left": box.x0 * width, "right": box.x1 * width}
    placed |= {"top": height - box.y1 * height, "bottom": height - box.y0 * height}
    placed |= {"x": [float(end) for end in axes.get_xlim()], "log": scale == "log"}
    return Picture(size, scale, _inline(text.getvalue(), name), placed)


def _inline(svg: str, name: str) -> str:
    """The svg element alone, its ids made unique on the page, and free to fill its box."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'^<svg[^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" role="img">', body)
    body = re.sub(r'\bid="(?!' + re.escape(name) + ")", f'id="{name}-', body)
    body = re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{name}-", body)
    return body.replace("xlink:href", "href")
