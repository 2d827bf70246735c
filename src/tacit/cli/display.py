"""What a person sees: lines as they are, progress while it runs, and results told one way.

Rich is imported when something is shown: half of the time of ``tacit --help`` would go into it.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from tacit.simulation.result import Result
    from tacit.simulation.scheduler import Progress as Report


@dataclass(frozen=True)
class Line:
    """A line, or a table, that is shown in a way of its own.

    Attributes:
        what: a text or what rich can print.
        style: for example bold.
        wrap: break it between words also where no terminal is.
    """

    what: Any
    style: str | None = None
    wrap: bool = False


@dataclass(frozen=True)
class Told:
    """What a command found.

    Attributes:
        found: the one object of ``--json``.
        lines: in words; they are made only where they are shown.
        files: what was written.
    """

    found: dict[str, Any]
    lines: Iterable[str | Line]
    files: Sequence[Any] = ()


def tell(result: Told, *, as_json: bool) -> None:
    """Print a result as one JSON object, or in words and with the files that were written."""
    if as_json:
        from tacit.wire.strict_json import finite

        print(json.dumps(finite(result.found)))
        return
    say = speaker()
    for line in result.lines:
        if isinstance(line, Line):
            say(line.what, style=line.style, **({"soft_wrap": False} if line.wrap else {}))
        else:
            say(line)
    for file in result.files:
        say(f"wrote {file}")


def told_result(result: Result, files: Sequence[Any] = ()) -> Told:
    """The result of a run, its headings and its warning in bold."""
    lines = (
        Line(line, style=None if line[0] == " " and line.strip() != result.warning else "bold")
        for line in result.lines()
    )
    return Told(result.to_json(), lines, files)


def speaker(*, quiet: bool = False) -> Callable[..., None]:
    """Prints lines as they are, brackets included; on a terminal they break between words."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False, quiet=quiet)
    console.soft_wrap = not console.is_terminal
    return partial(console.print, markup=False)


@contextmanager
def one_interrupt() -> Iterator[None]:
    """The first Ctrl-C stops the runs; further ones must not cost what the first one kept."""

    def stop_once(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
def progress_bar(title: str, episodes: int, score: str = "regret") -> Iterator[Report]:
    """Episodes, what is told beside them, and episodes per second."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    from tacit.kernels.compiler import working_time

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} episodes"),
        TextColumn(score + " {task.fields[number]:,.4g}"),
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


def privacy_lines(statement: str, *, wrap: bool = False) -> Iterator[Line]:
    """A statement under its heading."""
    yield Line("Privacy", style="bold")
    for line in statement.split("\n"):
        yield Line(f"  {line}", wrap=wrap)
