"""tacit demo: the tour of a few minutes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tacit.cli import options
from tacit.cli.display import Line, Told, progress_bar, speaker, tell

if TYPE_CHECKING:
    from rich.table import Table

    from tacit.privacy.guarantee import Guarantee
    from tacit.simulation.result import Result


WINDOWS = {
    "first 1,000": (0, 1_000),
    "to 10,000": (9_000, 10_000),
    "to 100,000": (90_000, 100_000),
    "to 200,000": (180_000, 200_000),
}


EPISODES, RUNS = 200_000, 4
STRICT, LENIENT = 2.0, 8.0
AGENTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("psrl", {}),
    ("tacit-local", {"epsilon": LENIENT}),
    ("tacit-local", {"epsilon": STRICT}),
    ("ldp-obi", {"epsilon": LENIENT, "calibration": "tight"}),
)


def demo(
    out: Annotated[Path, options.file("Folder for the plot.", None, "DIR")] = Path("tacit-demo"),
    as_json: options.Json = False,
) -> None:
    """The two-minute tour: see agents learn, and what was promised.

    Example: tacit demo
    """
    from tacit.agents.catalogue import make_agent
    from tacit.experiment import simulate
    from tacit.privacy.sentences import meaning
    from tacit.problems.catalogue import make_problem
    from tacit.simulation.plot import check_target, plot_regret

    check_target(out / "regret.png")
    problem = make_problem("river-swim")
    say = speaker(quiet=as_json)
    say("tacit demo: swim upstream (river-swim, 6 states, 20 steps)", style="bold")
    say(
        f"{EPISODES:,} users arrive one after the other and act on the newest policy. Going left "
        "pays a little at once, swimming right against the current pays a lot, late. The best "
        f"policy is worth {problem.optimal_value():.4f} per user, random actions "
        f"{problem.baseline()[1]:.4f}. Regret is what users lost against the best policy. psrl "
        "sees everything its users do; the others see one randomized report per user.\n",
        soft_wrap=False,
    )
    results = []
    for name, parameters in AGENTS:
        agent = make_agent(name, **parameters)
        with progress_bar(name, EPISODES) as progress:
            results.append(simulate(problem, agent, EPISODES, RUNS, progress=progress))
        if results[-1].interrupted:
            raise KeyboardInterrupt
    promised = next(r.guarantee for r in results if r.guarantee.requested_epsilon == STRICT)
    picture = plot_regret(
        results,
        out / "regret.png",
        log=True,
        baseline=False,
        caption=f"At epsilon {STRICT:g}: {meaning(promised)}",
    )
    report = {"runs": [r.to_json() for r in results], "files": [str(picture)]}
    tell(Told(report, _lines(results, promised, picture)), as_json=as_json)


def _lines(results: list[Result], promised: Guarantee, picture: Path) -> Iterator[str | Line]:
    yield Line(_demo_table(results))
    for result in results:
        if result.warning:
            yield Line(f"{result.agent['name']}: {result.warning}\n", wrap=True)
    yield Line(
        "tacit-local and ldp-obi give the same kind of promise and differ in how they spend it: "
        "one report about one step at full epsilon, read with the noise in mind, against noise on "
        "every count and worst-case bonuses.\n",
        wrap=True,
    )
    yield Line(f"What tacit-local promises at epsilon {STRICT:g}", style="bold")
    yield Line(promised.statement(), wrap=True)
    yield Line("\nWhat psrl promises", style="bold")
    yield Line(results[0].guarantee.statement().split("\n")[0], wrap=True)
    yield f"\nThe curves: {picture}"
    yield "Next: tacit guarantee river-swim tacit-local --epsilon 2 --episodes 1e6"
    yield "      tacit audit random-mdp tacit-local --epsilon 2"


def _demo_table(results: list[Result]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    from tacit.simulation.plot import label

    table = Table(title=f"Regret per user, mean of {RUNS} runs", title_justify="left", box=SIMPLE)
    table.add_column("agent")
    for window in (*WINDOWS, "total"):
        table.add_column(window, justify="right")
    for result in results:
        rates = [result.regret_per_episode(begin, end).mean() for begin, end in WINDOWS.values()]
        total = result.regret[:, -1].mean()
        table.add_row(label(result), *(f"{rate:.4f}" for rate in rates), f"{total:,.0f}")
    return table
