"""``tacit reproduce bench``: speed, utility and search, tacit beside others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit._version import __version__
from tacit.cli.display import Line, Told, one_interrupt, tell
from tacit.cli.options import cores
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    Watch = Callable[[str], None]

_ALL = ("speed", "utility", "search")
PARTS = {"bench": _ALL, **{f"bench/{part}": (part,) for part in _ALL}}


def _python(text: str, option: str) -> Path:
    path = Path(text)
    if not path.exists():
        raise InvalidInput(f"{option}={path}: there is no such file")
    return path


READ = {"peer_python": _python}


def bench(
    what: str,
    options: dict[str, Any],
    *,
    quick: bool,
    workers: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure the parts that are asked for, and say what was found."""
    from tacit.util.files import provenance, require_folder, write_json
    from tacit_lab.bench import search, speed, utility

    peer, count, began = options.get("peer_python"), cores(workers), time.perf_counter()
    measure: dict[str, Callable[[Watch], Any]] = {
        "speed": lambda watch: [speed.report(c, quick, peer, watch) for c in speed.contests(quick)],
        "utility": lambda watch: [utility.report(a, quick, count, watch) for a in utility.ARENAS],
        "search": lambda watch: search.report(quick, peer, watch),
    }
    with one_interrupt(), _status() as watch:
        report = {"tacit": __version__, "quick": quick, **provenance()}
        report |= {part: measure[part](watch) for part in PARTS[what]}
    report["timing"] = {"seconds": time.perf_counter() - began, "workers": count}
    if out is not None:
        require_folder(out)
        write_json(out / "bench.json", report)
    tell(Told(report, _lines(report)), as_json=as_json)


def _lines(report: dict[str, Any]) -> Iterator[str | Line]:
    from tacit.util.durations import in_words

    for part, lines_of in (("speed", _speed), ("utility", _utility), ("search", _search)):
        if part in report:
            yield from lines_of(report[part])
    yield f"\nmeasured in {in_words(round(report['timing']['seconds']))}"


def _headed(head: str, text: str) -> Line:
    """A paragraph that begins with a bold word."""
    from rich.text import Text

    return Line(Text.assemble((head, "bold"), f": {text}"))


def _speed(contests: list[dict[str, Any]]) -> Iterator[str | Line]:
    from tacit_lab.bench.speed import PEER

    yield _headed(
        "Speed",
        "processor time per episode, all contenders in turns; ratios are the "
        "result, times depend on the machine",
    )
    for contest in contests:
        yield Line(_speed_table(contest), wrap=True)
        for line in contest["not_equal"]:
            yield f"  not equal: {line}"
        if contest["missing"]:
            yield f"  {contest['missing']}"
    if not any(row["who"] == PEER for contest in contests for row in contest["contenders"]):
        yield (
            f"{PEER} was not measured: -O peer_python=PATH names a Python that has it "
            f"(a virtual environment with: pip install {PEER})"
        )


def _utility(arenas: list[dict[str, Any]]) -> Iterator[str | Line]:
    from tacit_lab.bench import utility

    tried = ", ".join(f"{scale:g}" for scale in utility.SCALES)
    yield _headed(
        "\nUtility",
        f"regret as a share of the baseline's (0: the optimum, 1: no "
        f"better than not learning), every agent at epsilon {utility.EPSILON:g} and delta "
        f"{utility.DELTA:g} where it is private; the models differ in whom they trust. Bonus "
        f"scales are chosen from {tried} and the agent's own default, on seeds that are not "
        "reported",
    )
    for arena in arenas:
        yield Line(_utility_table(arena), wrap=True)
        if arena["myopic"] is not None:
            yield f"  knowing all rewards and looking one step ahead: {arena['myopic']:.3g}"
        for agent, error in arena["failed"].items():
            yield f"  failed: {agent}: {error}"


def _search(report: dict[str, Any]) -> Iterator[str | Line]:
    yield _headed(
        "\nSearch",
        f"return of the final policy on {report['environment']} after "
        f"{report['episodes']:,} episodes, mean and worst over seeds",
    )
    for row in report["rows"]:
        yield f"  {row['who']}, {row['guarantee']}: {row['mean']:.1f} (worst {row['worst']:.1f})"
    if report["missing"]:
        yield f"  {report['missing']}"


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

    from tacit.experiment_spec import label_of

    where = label_of(arena["problem"]["name"], arena["problem"]["parameters"])
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
        facts = ", ".join(row["told"])
        table.add_row(row["agent"], row["guarantee"], facts, row["scale"], share, interval)
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
