"""Curves of regret, and of returns where no truth is known: mean over runs, 95% band, baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidInput, need
from tacit.simulation.returns import note
from tacit.util.files import require_folder
from tacit.validate import choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.privacy.guarantee import Guarantee
    from tacit.simulation.result import Result


FIXED: dict[str, Any] = {"color": "0.4", "ls": "--", "lw": 1}
"""How the line of what does not learn is drawn."""

FORMATS = (".png", ".pdf", ".svg")
BAND = "line: mean over runs; band: its 95% interval over runs, at every point for itself"


def plot_regret(
    results: Sequence[Result],
    path: str | Path,
    *,
    log: bool = True,
    baseline: bool = True,
    caption: str = "",
    by: str = "episode",
) -> Path:
    """Draw cumulative regret of several results on one problem into a file.

    Args:
        results: what to draw, one curve each, on the same problem.
        path: where to; the ending chooses the format (.png, .pdf, .svg).
        log: logarithmic axes, on which learners show beside a baseline that loses far more.
        baseline: also draw the regret of the baseline policy (for tables: uniform actions).
        caption: text under the axes.
        by: what it is drawn over: "episode", or "day", calendar time where people come back.
    """
    choice(by, "by", ("episode", "day"))
    drawn = [result for result in results if result.completed]
    if by == "day" and any(result.returning is None for result in drawn):
        raise InvalidInput("only where people come back is a day known: let by be episode")
    target, figure, axes = _curves(drawn, path, by)
    if baseline:
        longest = max(drawn, key=lambda result: result.completed)
        lost, name = longest.gap * longest.episodes, longest.problem["baseline"]["name"]
        axes.plot(_along(longest, by), lost, **FIXED, label=f"{name} (does not learn)")
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
    back = any(result.returning is not None for result in drawn)
    episodes = "participations (episodes)" if back else "users (episodes)"
    axes.set_xlabel("days" if by == "day" else episodes)
    axes.set_ylabel("cumulative regret against the exact optimum")
    facts = drawn[0].problem
    best = "largest return" if facts["family"] == "episodic" else "optimal value"
    title = f"{facts['name']}, horizon {facts['horizon']}, {best} {facts['optimal_value']:.4g}"
    axes.set_title(title, fontsize="medium")
    return _finish(figure, axes, target, drawn, caption)


def plot_returns(
    result: Result, path: str | Path, *, log: bool = True, baseline: bool = True
) -> Path:
    """Draw the mean return per user between two checkpoints, with its band, into a file.

    Args:
        result: what to draw.
        path: where to; the ending chooses the format (.png, .pdf, .svg).
        log: logarithmic axis of users.
        baseline: also draw what uniform actions returned.
    """
    target, figure, axes = _curves([result] if result.completed else [], path)
    if baseline:
        level = result.tests["uniform"]["mean"]
        axes.axhline(level, **FIXED, label="uniform actions (do not learn)")
    if log:
        axes.set_xscale("log")
    axes.set_xlabel("users (episodes)")
    axes.set_ylabel("mean return per user since the point before")
    name, horizon = result.problem["name"], result.problem["horizon"]
    axes.set_title(f"{name}, horizon {horizon}", fontsize="medium")
    return _finish(figure, axes, target, [result], note(result))


def canvas(width: float = 7.0) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, which needs no screen."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 4.5), dpi=150, layout="constrained")
    return figure, figure.add_subplot()


def _finish(
    figure: Figure, axes: Axes, target: Path, drawn: Sequence[Result], caption: str
) -> Path:
    axes.grid(alpha=0.3)
    several = any(len(result.seeds) > 1 for result in drawn)
    axes.legend(fontsize="small", title=BAND if several else None, title_fontsize="small")
    if caption:
        figure.supxlabel("\n".join(wrap(caption, 110)), fontsize="x-small", ha="left", x=0.02)
    figure.savefig(target)
    return target


def check_target(path: str | Path) -> Path:
    """Refuse a file that cannot be drawn into, before anything is computed for it."""
    need("a picture", "plots")
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidInput(f"cannot draw into {str(target)!r}: it must end in {', '.join(FORMATS)}")
    if target.is_dir():
        raise InvalidInput(f"cannot draw into {target}: it is a folder")
    require_folder(target.parent)
    return target


def label(result: Result) -> str:
    """Name, non-default parameters and the true guarantee of a curve."""
    from tacit.agents.catalogue import agents

    name = str(result.agent["name"])
    known = {entry.name: entry.parameters for entry in agents}.get(name, {})
    changed = [
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in result.agent["parameters"].items()
        if (key not in known or value != known[key].default) and key != "epsilon"
    ]
    shown = f"{name} ({', '.join(changed)})" if changed else name
    return f"{shown}, {result.guarantee.brief()}"


def _legend(result: Result) -> str:
    """The label, with what the agent is in plain words and how many runs there are."""
    from tacit.agents.catalogue import agents

    runs = len(result.seeds)
    known = {entry.name: f"; {entry.summary}" for entry in agents}
    words = f"{label(result)}{known.get(str(result.agent['name']), '')}; {runs} run"
    return "\n".join(wrap(f"{words}s" if runs > 1 else words, 64))


def _along(result: Result, by: str) -> Sequence[float]:
    """Where the checkpoints of a result lie."""
    return result.returning.days if by == "day" and result.returning else result.episodes.tolist()


def _curves(
    drawn: Sequence[Result], path: str | Path, by: str = "episode"
) -> tuple[Path, Figure, Axes]:
    """Where a picture goes, and what is on it of the results themselves."""
    if not drawn:
        raise InvalidInput("there is nothing to plot: no run reached a checkpoint")
    target = check_target(path)
    figure, axes = canvas()
    for result in drawn:
        mean, low, high = result.band()
        (line,) = axes.plot(_along(result, by), mean, label=_legend(result))
        if len(result.seeds) > 1:
            color = line.get_color()
            axes.fill_between(_along(result, by), low, high, color=color, alpha=0.2, lw=0)
    return target, figure, axes


def plot_tradeoff(guarantee: Guarantee, path: Path) -> None:
    """The trade-off curve: what a test misses at least, by its false alarms."""
    from tacit.privacy.sentences import over

    figure, axes = canvas(5)
    curve = guarantee.curve(501)
    axes.plot(curve[:, 0], curve[:, 1], label=guarantee.brief())
    axes.plot([0, 1], [1, 0], "--", color="grey", label="nothing can be learned")
    axes.set_xlabel("false alarms (share of those of whom it is not true)")
    axes.set_ylabel("missed at least (share of those of whom it is true)")
    axes.set_title(f"No test gets below the line{over(guarantee)}", fontsize="medium")
    _finish(figure, axes, path, [], "")
