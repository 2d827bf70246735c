"""``tacit demo``: the tour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from tacit.agents.catalogue import make_agent
from tacit.cli.display import progress_bar
from tacit.privacy.sentences import meaning
from tacit.problems.catalogue import make_problem
from tacit.simulation import Result, simulate
from tacit.simulation.plot import check_target, label, plot_regret

EPISODES, RUNS = 200_000, 4
STRICT, LENIENT = 2.0, 8.0
WINDOWS = {
    "first 1,000": (0, 1_000),
    "to 10,000": (9_000, 10_000),
    "to 100,000": (90_000, 100_000),
    "to 200,000": (180_000, 200_000),
}

AGENTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("psrl", {}),
    ("tacit-local", {"epsilon": LENIENT}),
    ("tacit-local", {"epsilon": STRICT}),
    ("ldp-obi", {"epsilon": LENIENT}),
)


def run_demo(out: Path, *, as_json: bool) -> None:
    """Let learners with and without privacy loose on one problem, and say what they guarantee."""
    check_target(out / "regret.png")
    problem = make_problem("river-swim")
    console = Console(highlight=False, quiet=as_json)
    console.print("[bold]tacit demo[/bold]: swim upstream (river-swim, 6 states, 20 steps)")
    console.print(
        f"{EPISODES:,} users arrive one after the other and act on the newest policy. Going left "
        "pays a little at once, swimming right against the current pays a lot, late. The best "
        f"policy is worth {problem.optimal_value():.4f} per user, random actions "
        f"{problem.baseline()[1]:.4f}. Regret is what users lost against the best policy. psrl "
        "sees everything its users do; the others see one randomized report per user.\n"
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
    if as_json:
        print(json.dumps({"runs": [r.to_json() for r in results], "files": [str(picture)]}))
        return
    console.print(_table(results))
    console.print(
        "tacit-local and ldp-obi give the same kind of promise and differ in how they spend it: "
        "one report about one step at full epsilon, read with the noise in mind, against noise on "
        "every count and worst-case bonuses.\n"
    )
    console.print(f"[bold]What tacit-local promises at epsilon {STRICT:g}[/bold]")
    console.print(promised.statement(), markup=False)
    console.print("\n[bold]What psrl promises[/bold]")
    console.print(results[0].guarantee.statement().split("\n")[0], markup=False)
    console.print(f"\nThe curves: {picture}", soft_wrap=True)
    console.print("Next: tacit guarantee river-swim tacit-local --epsilon 2 --episodes 1e6")
    console.print("      tacit audit random-mdp tacit-local --epsilon 2")


def _table(results: list[Result]) -> Table:
    table = Table(title=f"Regret per user, mean of {RUNS} runs", title_justify="left", box=SIMPLE)
    table.add_column("agent")
    for window in WINDOWS:
        table.add_column(window, justify="right")
    table.add_column("total", justify="right")
    for result in results:
        rates = [result.regret_per_episode(begin, end).mean() for begin, end in WINDOWS.values()]
        total = result.regret[:, -1].mean()
        table.add_row(label(result), *(f"{rate:.4f}" for rate in rates), f"{total:,.0f}")
    return table
