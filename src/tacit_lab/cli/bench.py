"""``tacit bench``: speed and utility side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit._version import __version__
from tacit.cli.display import speaker
from tacit.cli.options import Json, Processes, cores
from tacit.cli.run import one_interrupt
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, one round.")] = False,
    peer_python: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A Python that has rlberry-scool or stable-baselines3, to measure it as well.",
        ),
    ] = None,
    workers: Processes = None,
    as_json: Json = False,
) -> None:
    """Speed and utility side by side: tacit, loops by hand, rlberry-scool; all agents.

    Example: tacit bench --quick
    """
    from tacit.util.files import made_with
    from tacit_lab.bench import search, speed, utility

    if peer_python is not None and not peer_python.exists():
        raise InvalidInput(f"--peer-python {peer_python}: there is no such file")
    count = cores(workers)
    began = time.perf_counter()
    with one_interrupt(), _status() as watch:
        contests, arenas = speed.contests(quick), utility.ARENAS
        report = {
            "tacit": __version__,
            "quick": quick,
            **made_with(),
            "speed": [speed.report(contest, quick, peer_python, watch) for contest in contests],
            "utility": [utility.report(arena, quick, count, watch) for arena in arenas],
            "search": search.report(quick, peer_python, watch),
        }
    report["timing"] = {"seconds": time.perf_counter() - began, "workers": count}
    if as_json:
        print(json.dumps(report, allow_nan=False))
    else:
        _print(speaker(), report)


def _print(say: Callable[..., None], report: dict[str, Any]) -> None:
    from tacit_lab.bench import speed, utility
    from tacit_lab.sweep.estimate import duration

    say(
        "[bold]Speed[/bold]: processor time per episode, all contenders in turns; ratios are the "
        "result, times depend on the machine",
        markup=True,
    )
    for contest in report["speed"]:
        say(_speed_table(contest), soft_wrap=False)
        for line in contest["not_equal"]:
            say(f"  not equal: {line}")
        if contest["missing"]:
            say(f"  {contest['missing']}")
    if not any(row["who"] == speed.PEER for c in report["speed"] for row in c["contenders"]):
        say(
            f"{speed.PEER} was not measured: --peer-python PATH names a Python that has it "
            f"(a virtual environment with: pip install {speed.PEER})"
        )
    tried = ", ".join(f"{scale:g}" for scale in utility.SCALES)
    say(
        f"\n[bold]Utility[/bold]: regret as a share of the baseline's (0: the optimum, 1: no "
        f"better than not learning), every agent at epsilon {utility.EPSILON:g} and delta "
        f"{utility.DELTA:g} where it is private; the models differ in whom they trust. Bonus "
        f"scales are chosen from {tried} and the agent's own default, on seeds that are not "
        "reported",
        markup=True,
    )
    for arena in report["utility"]:
        say(_utility_table(arena), soft_wrap=False)
        if arena["myopic"] is not None:
            say(f"  knowing all rewards and looking one step ahead: {arena['myopic']:.3g}")
        for agent, error in arena["failed"].items():
            say(f"  failed: {agent}: {error}")
    found = report["search"]
    say(
        f"\n[bold]Search[/bold]: return of the final policy on {found['environment']} after "
        f"{found['episodes']:,} episodes, mean and worst over seeds",
        markup=True,
    )
    for row in found["rows"]:
        say(f"  {row['who']}, {row['guarantee']}: {row['mean']:.1f} (worst {row['worst']:.1f})")
    if found["missing"]:
        say(f"  {found['missing']}")
    say(f"\nmeasured in {duration(report['timing']['seconds'])}")


def _speed_table(contest: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(title=f"{contest['algorithm']} on {contest['problem']}", title_justify="left")
    for heading in ("who", "microseconds", "times tacit", "over rounds"):
        table.add_column(heading, justify="left" if heading == "who" else "right")
    for row in contest["contenders"]:
        low, high = row["range"]
        table.add_row(
            row["who"],
            f"{row['microseconds_per_episode']:,.2f}",
            f"{row['times_slower']:,.3g}",
            f"{low:,.3g} to {high:,.3g}",
        )
    return table


def _utility_table(arena: dict[str, Any]) -> Table:
    from rich.table import Table

    from tacit_lab.sweep.task import said

    where = said(arena["problem"]["name"], arena["problem"]["parameters"])
    title = (
        f"{arena['family']}: {where}, {arena['episodes']:,} users, "
        f"{len(arena['seeds']['reported'])} seeds"
    )
    table = Table(title=title, title_justify="left")
    for heading in ("agent", "guarantee", "told", "scale", "regret share", "95% interval"):
        table.add_column(heading)
    for row in arena["agents"]:
        interval = "{:.3g} to {:.3g}".format(*row["ci95"])
        share = f"{row['regret_over_baseline']:.3g}"
        told = ", ".join(row["told"])
        table.add_row(row["agent"], row["guarantee"], told, row["scale"], share, interval)
    return table


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    """What is being measured, on stderr; silent where nobody watches."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda words: None
        return
    with console.status("starting") as status:
        yield status.update
