"""Panels of curves: mean over problems, and the smallest and largest run as a band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tacit.bounds import bound_of
from tacit_lab.figures.figure import LEAST, Evidence, Runs

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    Axes: TypeAlias = matplotlib.axes.Axes
    Picture: TypeAlias = matplotlib.figure.Figure
else:  # figures name them in annotations; matplotlib is imported when something is drawn
    Axes = Picture = object


def canvas(columns: int, title: str) -> tuple[Picture, list[Axes]]:
    """An empty picture and its panels, side by side."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(6.0 * columns, 5.2), dpi=120, layout="constrained")
    picture.suptitle(title, fontsize="large")
    return picture, [picture.add_subplot(1, columns, i + 1) for i in range(columns)]


def regret_panel(axes: Axes, curves: Sequence[Runs], title: str, *, legend: bool = True) -> None:
    """Cumulative regret on linear axes, as the papers draw it."""
    for runs in curves:
        _band(axes, runs, per_episode=False, label=runs.label if legend else "")
    label(axes, title, USERS, "cumulative regret", legend=legend)
    axes.set(xlim=(0, None), ylim=(0, None))


def rate_panel(axes: Axes, curves: Sequence[Runs], title: str, *, legend: bool = True) -> None:
    """Regret per episode, R_k / k, on logarithmic axes."""
    for runs in curves:
        _band(axes, runs, per_episode=True, label=runs.label if legend else "")
    lowest = min(_lowest_rate(runs) for runs in curves)
    axes.set(xscale="log", yscale="log", ylim=(0.3 * lowest, None))
    label(axes, title, USERS, "regret per episode, R_k / k", legend=legend)


def regrets(
    title: str, panels: Mapping[str, Sequence[Runs]], *, legends: int | None = None
) -> Picture:
    """Cumulative regret, one panel per title; only the first ``legends`` have a legend."""
    picture, axes = canvas(len(panels), title)
    for i, (name, curves) in enumerate(panels.items()):
        regret_panel(axes[i], curves, name, legend=legends is None or i < legends)
    return picture


def regret(title: str, evidence: Evidence) -> Picture:
    """Cumulative regret of all curves in one panel."""
    return regrets(title, {"cumulative regret": evidence.matching()})


def regret_and_rate(title: str, evidence: Evidence) -> Picture:
    """Left cumulative regret, right regret per episode, of all curves."""
    picture, (left, right) = canvas(2, title)
    regret_panel(left, evidence.matching(), "cumulative regret")
    rate_panel(right, evidence.matching(), "regret per episode", legend=False)
    return picture


def rates(title: str, panel: str, evidence: Evidence) -> Picture:
    """Regret per episode of all curves in one panel."""
    picture, (axes,) = canvas(1, title)
    rate_panel(axes, evidence.matching(), panel)
    return picture


def bounds(title: str, evidence: Evidence) -> Picture:
    """All curves on logarithmic axes, dashed what theorems say, dotted what the worst policy loses.

    Of the first problem of a curve, at up to twelve of its checkpoints.
    """
    picture, (axes,) = canvas(1, title)
    for runs in evidence.matching():
        _band(axes, runs, per_episode=False, label=runs.label)
        colour = axes.get_lines()[-1].get_color()
        points = runs.episodes[np.unique(np.linspace(0, len(runs.episodes) - 1, 12).astype(int))]
        known = [bound for k in points if (bound := bound_of(runs.results[0], int(k))) is not None]
        upper = np.array([(b.episodes, b.upper) for b in known if b.upper is not None])
        if len(upper):
            kind = "order with constant 1" if known[0].kind == "order" else "bound"
            axes.plot(*upper.T, ls="--", color=colour, label=f"{runs.curve.label}: {kind}")
        if known:
            axes.plot(*np.array([(b.episodes, b.worst) for b in known]).T, ls=":", color="black")
    axes.set(xscale="log", yscale="log")
    label(axes, "dashed: upper bounds; dotted: the worst policy", USERS, "cumulative regret")
    return picture


def legend_below(axes: Axes) -> None:
    """Under the panel: true guarantees are long, and must not cover the curves."""
    axes.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.2))


def _lowest_rate(runs: Runs) -> float:
    """Of the means; runs without any regret so far would stretch the axis for ever."""
    return float((np.maximum(runs.mean, LEAST) / runs.episodes).min())


def _band(axes: Axes, runs: Runs, *, per_episode: bool, label: str) -> None:
    k = runs.episodes
    scale = 1.0 / k if per_episode else 1.0
    (line,) = axes.plot(k, runs.mean * scale, label=label or None)
    low, high = runs.runs.min(axis=0) * scale, runs.runs.max(axis=0) * scale
    axes.fill_between(k, low, high, color=line.get_color(), alpha=0.12, lw=0)


USERS = "users (episodes)"


def label(axes: Axes, title: str, x: str, y: str, *, legend: bool = True) -> None:
    """Title, names of the axes, grid, and the legend below."""
    axes.set_title(title, fontsize="medium")
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    if legend:
        legend_below(axes)
