"""What a person sees: progress while it runs, and the result in words and numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tacit.simulation.result import Result
from tacit.simulation.scheduler import Progress as Report


@contextmanager
def progress_bar(title: str, episodes: int) -> Iterator[Report]:
    """A bar on stderr with regret and episodes per second; silent where nobody watches."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} episodes"),
        TextColumn("regret {task.fields[regret]:,.4g}"),
        TextColumn("{task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    began = time.perf_counter()
    with bar:
        line = bar.add_task(title, total=episodes, regret=0.0, rate=0.0)

        def report(done: int, regret: float) -> None:
            rate = done / max(time.perf_counter() - began, 1e-9)
            bar.update(line, completed=done, regret=regret, rate=rate)

        yield report


def summary(console: Console, result: Result) -> None:
    """Print a result: the problem, the regret, and what was guaranteed."""
    say = partial(console.print, soft_wrap=True)
    facts, baseline = result.problem, result.problem["baseline"]
    say(f"[bold]{result.agent['name']} on {facts['name']}[/bold]")
    say(
        f"  optimal value {facts['optimal_value']:.6g} per episode, "
        f"{baseline['name']} {baseline['value']:.6g}"
    )
    rescaling = facts.get("rescaling", {"offset": 0.0, "scale": 1.0})
    offset, scale = rescaling["offset"], rescaling["scale"]
    if (offset, scale) != (0.0, 1.0):
        say(f"  rewards rescaled: original = {offset:g} + {scale:g} x rescaled")
    if result.interrupted:
        say(
            f"  [bold]interrupted[/bold] at {result.completed:,} of "
            f"{result.requested_episodes:,} episodes; what follows is that part"
        )
    if result.completed:
        _regret(say, result)
    say(f"  {result.seconds:.2f} s, {result.episodes_per_second:,.0f} episodes/s over all runs")
    for note in result.agent["notes"]:
        say(f"  note: {note}")
    say("[bold]Privacy[/bold]")
    for line in result.guarantee.statement().split("\n"):
        say(f"  {line}", markup=False)


def _regret(say: Callable[[str], None], result: Result) -> None:
    runs, last = len(result.seeds), result.completed
    mean, low, high = result.band()
    interval = f", 95% interval {low[-1]:.5g} to {high[-1]:.5g}" if runs > 1 else ""
    say(
        f"  regret after {last:,} episodes: {mean[-1]:.5g} "
        f"(mean of {runs} run{'s' if runs > 1 else ''}{interval})"
    )
    for text, (begin, end) in milestones(result).items():
        rate = result.regret_per_episode(begin, end).mean()
        say(f"  regret per episode, {text}: {rate:.4g}")


def milestones(result: Result) -> dict[str, tuple[int, int]]:
    """The first hundred and the last tenth of the episodes, where these were recorded."""
    points = {0, *result.episodes.tolist()}
    last = result.completed
    begin = int(np.ceil(last * 9 / 10))
    windows = {"first 100": (0, 100), "last tenth": (begin, last)}
    return {
        text: (start, end)
        for text, (start, end) in windows.items()
        if {start, end} <= points and start < end
    }
