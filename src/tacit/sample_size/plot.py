"""Users against epsilon: what was shown to be enough, what was not, and what is a guess."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import InvalidInput
from tacit.simulation.plot import check_target

if TYPE_CHECKING:
    from tacit.sample_size.result import Plan


def plot_plan(plan: Plan, path: str | Path) -> Path:
    """Draw a plan into a file; the ending chooses the format (.png, .pdf, .svg)."""
    target = check_target(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    answers = [a for a in plan.answers if a.measured]
    levels = np.array([a.epsilon for a in answers], dtype=np.float64)  # None becomes NaN
    if np.isnan(levels).any() or not answers:
        raise InvalidInput("there is nothing to plot: no epsilon was simulated")
    figure = Figure(figsize=(7, 4.5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    enough = np.array([a.enough for a in answers], dtype=np.float64)
    below = np.array([a.not_below or np.nan for a in answers])
    least = np.array([a.measured[0].users for a in answers], dtype=np.float64)
    guessed = np.array([a.extrapolated for a in answers], dtype=np.float64)
    sure = ~np.isnan(enough)
    open_ = np.array([a.measured[-1].users for a in answers], dtype=np.float64)
    begin = np.where(np.isnan(below), least, below)
    axes.vlines(levels[sure], begin[sure], enough[sure], color="C0", lw=4, alpha=0.3)
    series = (
        (enough, "o", "C0", "enough, with 95% confidence (bar: not decided below)"),
        (np.where(sure, np.nan, below), "^", "C3", "not below this (simulated)"),
        (np.where(sure | ~np.isnan(below), np.nan, open_), "s", "0.5", "not decided up to this"),
        (guessed, "x", "0.5", "extrapolated, not simulated"),
    )
    for values, marker, colour, label in series:
        if not np.isnan(values).all():
            axes.plot(levels, values, marker, color=colour, label=label)
    if plan.users is not None:
        axes.axhline(plan.users, color="0.4", ls="--", lw=1, label=f"{plan.users:,} users")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(levels, [f"{level:g}" for level in levels], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("epsilon asked for")
    axes.set_ylabel(f"users until {plan.share:.0%} of the gap is closed")
    axes.set_title(f"{plan.agent}: {plan.setting.name}", fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(target)
    return target
