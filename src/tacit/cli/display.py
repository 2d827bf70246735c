"""What a person sees: lines as they are, progress while it runs, and a result in words.

Rich is imported when something is shown: half of the time of ``tacit --help`` would go into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from tacit.simulation.result import Result
    from tacit.simulation.scheduler import Progress as Report


def speaker(*, quiet: bool = False) -> Callable[..., None]:
    """Prints lines as they are, brackets included; on a terminal they break between words."""
    from rich.console import Console

    console = Console(highlight=False, quiet=quiet)
    console.soft_wrap = not console.is_terminal
    return partial(console.print, markup=False)


@contextmanager
def bar(*columns: ProgressColumn, quiet: bool = False) -> Iterator[Progress]:
    """A bar on stderr that goes away when it is done; silent where nobody watches."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    silent = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=silent) as drawn:
        yield drawn


@contextmanager
def progress_bar(title: str, episodes: int, told: str = "regret") -> Iterator[Report]:
    """Episodes, what is told beside them, and episodes per second."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    from tacit.kernels.compiler import working_time

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} episodes"),
        TextColumn(told + " {task.fields[number]:,.4g}"),
        TextColumn("{task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    began = working_time()
    with bar(*columns) as drawn:
        line = drawn.add_task(title, total=episodes, number=0.0, rate=0.0)

        def report(done: int, number: float) -> None:
            rate = done / max(working_time() - began, 1e-9)
            drawn.update(line, completed=done, number=number, rate=rate)

        yield report


def summary(say: Callable[..., None], result: Result) -> None:
    """Print a result: the problem, the regret, and what was guaranteed."""
    facts, baseline = result.problem, result.problem["baseline"]
    say(f"{result.agent['name']} on {facts['name']}", style="bold")
    best = "largest declared return" if facts["family"] == "episodic" else "optimal value"
    say(
        f"  {best} {facts['optimal_value']:.6g} per episode, "
        f"{baseline['name']} {baseline['value']:.6g}"
    )
    rescaling = facts.get("rescaling", {"offset": 0.0, "scale": 1.0})
    offset, scale = rescaling["offset"], rescaling["scale"]
    if (offset, scale) != (0.0, 1.0):
        say(f"  rewards rescaled: original = {offset:g} + {scale:g} x rescaled")
    if result.interrupted:
        say(
            f"  interrupted at {result.completed:,} of {result.requested_episodes:,} episodes; "
            "what follows is that part"
        )
    if result.completed:
        _regret(say, result)
        if result.warning:
            say(f"  {result.warning}", style="bold")
    say(f"  {result.seconds:.2f} s, {result.episodes_per_second:,.0f} episodes/s over all runs")
    for note in result.agent["notes"]:
        say(f"  note: {note}")
    say("Privacy", style="bold")
    for line in result.guarantee.statement().split("\n"):
        say(f"  {line}")


def _regret(say: Callable[..., None], result: Result) -> None:
    runs, last = len(result.seeds), result.completed
    if result.problem["family"] == "episodic":
        _returns(say, result)
        return
    mean, low, high = result.band()
    back = result.returning
    each = "episode" if back is None else "participation"
    interval = f", 95% interval {low[-1]:.5g} to {high[-1]:.5g}" if runs > 1 else ""
    say(
        f"  regret after {last:,} {each}s: {mean[-1]:.5g} "
        f"(mean of {runs} run{'s' if runs > 1 else ''}{interval})"
    )
    # The first hundred and the last tenth of the episodes, where these were recorded.
    points = {0, *result.episodes.tolist()}
    for text, begin, end in (("first 100", 0, 100), ("last tenth", -(-last * 9 // 10), last)):
        if {begin, end} <= points and begin < end:
            rate = result.regret_per_episode(begin, end).mean()
            say(f"  regret per {each}, {text}: {rate:.4g}")
    if back is not None:
        say(
            f"  {back.people:,} people in {back.days[-1]:.4g} days (attendance: {back.law}); "
            f"regret per person: {result.regret_per_person().mean():.4g}"
        )


def _returns(say: Callable[..., None], result: Result) -> None:
    """Of a search: what people were returned, all of them and the last tenth."""
    import numpy as np

    from tacit.util.intervals import half_width

    last, grid = result.completed, [0, *result.episodes.tolist()]
    for text, begin in (("of all people", 0), ("of the last tenth", -(-last * 9 // 10))):
        if begin in grid:
            sums = np.concatenate([np.zeros((len(result.seeds), 1)), result.reward], axis=1)
            per = (sums[:, -1] - sums[:, grid.index(begin)]) / (last - begin)
            mean, over, (least, most) = per.mean(), "one run", result.problem["returns"]
            if len(per) > 1:
                half = half_width(per[:, None])[0]
                low, high = mean - half, mean + half
                if least <= per.min() and per.max() <= most:  # all within what was declared
                    low, high = max(low, least), min(high, most)
                over = f"mean of {len(per)} runs, 95% interval {low:.5g} to {high:.5g}"
            say(f"  mean return {text}, what they tried out included: {mean:.5g} ({over})")
