"""``tacit bench``: speed and utility side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tacit._version import __version__
from tacit.bench import speed, utility
from tacit.cli.options import cores
from tacit.cli.run import one_interrupt
from tacit.errors import InvalidInput
from tacit.simulation.storage import made_with
from tacit.sweep.estimate import duration
from tacit.sweep.tasks import said

NO_PEER = (
    f"{speed.PEER} was not measured: --peer-python PATH names a Python that has it "
    f"(a virtual environment with: pip install {speed.PEER})"
)


def bench_and_print(
    *, quick: bool, peer_python: Path | None, workers: int | None, as_json: bool
) -> None:
    """Measure everything, print it."""
    if peer_python is not None and not peer_python.exists():
        raise InvalidInput(f"--peer-python {peer_python}: there is no such file")
    count = cores(workers)
    began = time.perf_counter()
    with one_interrupt(), _status() as watch:
        report = {
            "tacit": __version__,
            "quick": quick,
            **made_with(),
            "speed": _speed(quick, peer_python, watch),
            "utility": _utility(quick, count, watch),
        }
    report["timing"] = {"seconds": time.perf_counter() - began, "workers": count}
    if as_json:
        print(json.dumps(report, allow_nan=False))
    else:
        _print(Console(highlight=False), report)


def _speed(
    quick: bool, peer_python: Path | None, watch: Callable[[str], None]
) -> list[dict[str, Any]]:
    rounds = 1 if quick else 5
    found = []
    for contest in speed.contests(quick):
        timed, missing = speed.measure(contest, rounds, peer_python, watch)
        rows = []
        for one in timed:
            middle, low, high = one.ratio(timed[0])
            rows.append(
                {
                    "who": one.who,
                    "microseconds_per_episode": one.median,
                    "times_slower": middle,
                    "range": [low, high],
                }
            )
        found.append(
            {
                "algorithm": contest.algorithm,
                "problem": contest.said,
                "episodes": {"tacit": contest.ours, "others": contest.theirs},
                "rounds": rounds,
                "contenders": rows,
                "not_equal": list(contest.unequal),
                "missing": missing,
            }
        )
    return found


def _utility(quick: bool, workers: int, watch: Callable[[str], None]) -> list[dict[str, Any]]:
    seeds = utility.Seeds.of(quick)
    found = []
    for arena in utility.ARENAS:
        outcome = utility.measure(arena, quick, workers, watch)
        found.append(
            {
                "family": arena.family,
                "problem": {"name": arena.problem.name, "parameters": arena.problem.parameters},
                "episodes": arena.quick_episodes if quick else arena.episodes,
                "seeds": {"reported": seeds.reported, "choosing": seeds.choosing},
                "asked": {"epsilon": utility.EPSILON, "delta": utility.DELTA},
                "myopic": outcome.myopic,
                "agents": [_agent(one) for one in outcome.scored],
                "does_not_fit": outcome.does_not_fit,
                "failed": outcome.failed,
            }
        )
    return found


def _agent(one: utility.Scored) -> dict[str, Any]:
    mean = one.mean
    return {
        "agent": one.agent,
        "model": one.guarantee.model,
        "guarantee": one.guarantee.brief(),
        "told": list(one.guarantee.revealed),
        "scale": one.scale,
        "chosen": None if one.chosen is None else one.chosen.to_json(),
        "regret_over_baseline": mean.value,
        "ci95": [mean.low, mean.high],
        "per_seed": one.share.tolist(),
        "seconds_per_run": one.seconds,
    }


def _print(console: Console, report: dict[str, Any]) -> None:
    console.print(
        "[bold]Speed[/bold]: processor time per episode, all contenders in turns; ratios are the "
        "result, times depend on the machine",
        soft_wrap=True,
    )
    for contest in report["speed"]:
        console.print(_speed_table(contest))
        for line in contest["not_equal"]:
            console.print(f"  not equal: {line}", soft_wrap=True, markup=False)
        if contest["missing"]:
            console.print(f"  {contest['missing']}", soft_wrap=True, markup=False)
    if not any(row["who"] == speed.PEER for c in report["speed"] for row in c["contenders"]):
        console.print(NO_PEER, soft_wrap=True, markup=False)
    tried = ", ".join(f"{scale:g}" for scale in utility.SCALES)
    console.print(
        f"\n[bold]Utility[/bold]: regret as a share of the baseline's (0: the optimum, 1: no "
        f"better than not learning), every agent at epsilon {utility.EPSILON:g} and delta "
        f"{utility.DELTA:g} where it is private; the models differ in whom they trust. Bonus "
        f"scales are chosen from {tried} and the agent's own default, on seeds that are not "
        "reported",
        soft_wrap=True,
    )
    for arena in report["utility"]:
        console.print(_utility_table(arena))
        if arena["myopic"] is not None:
            console.print(
                f"  knowing all rewards and looking one step ahead: {arena['myopic']:.3g}",
                soft_wrap=True,
            )
        for agent, error in arena["failed"].items():
            console.print(f"  failed: {agent}: {error}", soft_wrap=True, markup=False)
    console.print(f"\nmeasured in {duration(report['timing']['seconds'])}")


def _speed_table(contest: dict[str, Any]) -> Table:
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
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda words: None
        return
    with console.status("starting") as status:
        yield status.update
