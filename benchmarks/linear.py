"""All linear agents side by side: regret, ratio to tacit-linear, speed.

Run: python benchmarks/linear.py [--case synthetic | river-swim] [--epsilon 1 --epsilon 10].

Every agent with a bonus c H |phi| gets the same grid of c; the best is chosen on runs of its own
(``CHOSEN_AT``) and reported on others. tacit-linear has no bonus and nothing is chosen for it.
Rewards are unknown, delta is 1e-5, calibration is tight. Times are processor time of one
core, from the reported runs.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import tacit

GRID = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
CHOSEN_AT = 900
REPORTED_AT = 0
"""Roots of the streams: no user, tie or noise of the one is in the other."""

PRIVATE = ("dp-lsvi-batch", "dp-lsvi-adaptive", "dp-lsvi-ucb++")
OPEN = ("lsvi-ucb++", "lsvi-ucb")
DELTA = 1e-5


@dataclass(frozen=True)
class Case:
    """A problem, how many users it has, and what tacit-linear should reach at which epsilon."""

    problem: str
    episodes: int
    bars: dict[float, float]


CASES = {
    "synthetic": Case("synthetic-linear", 50_000, {1.0: 6e4, 10.0: 3e4}),
    "river-swim": Case("river-swim", 100_000, {10.0: 5e4}),
}


@dataclass(frozen=True)
class Row:
    """What one agent did."""

    name: str
    scale: float | None
    regret: np.ndarray
    microseconds: float

    @property
    def mean(self) -> float:
        """Over the reported runs."""
        return float(self.regret.mean())

    def line(self, ours: float) -> str:
        """One line of the table."""
        error = self.regret.std(ddof=1) / math.sqrt(len(self.regret))
        scale = "-" if self.scale is None else f"{self.scale:g}"
        return (
            f"| {self.name} | {scale} | {self.mean:.3g} +- {error:.2g} | {self.mean / ours:.3g} | "
            f"{self.microseconds:.3g} |"
        )


def play(
    problem: tacit.TabularMDP, agent: tacit.Agent, episodes: int, root: int, runs: int
) -> tuple[np.ndarray, float]:
    """Final regret of each run, and microseconds per episode."""
    began = time.process_time()
    result = tacit.Experiment(
        problem=problem, agent=agent, episodes=episodes, seed=root, checkpoints=episodes, runs=runs
    ).run(workers=1)
    spent = time.process_time() - began
    return result.regret[:, -1], 1e6 * spent / (runs * episodes)


def best_scale(
    problem: tacit.TabularMDP, name: str, asked: dict[str, Any], episodes: int, runs: int
) -> float:
    """The c of the grid with the least regret, on runs that are not reported."""
    found = {}
    for scale in GRID:
        agent = tacit.agent(name, bonus_scale=scale, **asked)
        found[scale] = play(problem, agent, episodes, CHOSEN_AT, runs)[0].mean()
    return min(found, key=lambda scale: found[scale])


def row(
    problem: tacit.TabularMDP, name: str, epsilon: float | None, episodes: int, chosen: Chosen
) -> Row:
    """Choose c where there is one to choose, then report."""
    asked: dict[str, Any] = {} if epsilon is None else {"epsilon": epsilon, "delta": DELTA}
    if name in (*PRIVATE, "lsvi-ucb++"):
        asked["calibration"] = "tight"
    scale = None
    if name not in ("tacit-linear", "uniform"):
        scale = best_scale(problem, name, asked, episodes, chosen.tuning)
    parameters = asked if scale is None else {**asked, "bonus_scale": scale}
    agent = tacit.agent(name, **parameters)
    return Row(name, scale, *play(problem, agent, episodes, REPORTED_AT, chosen.runs))


@dataclass(frozen=True)
class Chosen:
    """How many runs."""

    tuning: int
    runs: int


def compare(case: Case, epsilons: list[float], chosen: Chosen, others: tuple[str, ...]) -> None:
    """Print a table for every epsilon; agents without privacy are run once."""
    problem = tacit.problem(case.problem)
    for name in ("tacit-linear", *PRIVATE, *others):  # compile before anything is timed
        privacy = {"epsilon": 1.0} if name in ("tacit-linear", *PRIVATE) else {}
        tacit.simulate(problem, tacit.agent(name, **privacy), 200, workers=1)
    without: list[Row] = []
    for epsilon in epsilons:
        mine = row(problem, "tacit-linear", epsilon, case.episodes, chosen)
        print(f"\n{case.problem}, {case.episodes:,} users, epsilon {epsilon:g}, delta {DELTA:g}")
        print(f"{chosen.runs} runs; c from {GRID} on {chosen.tuning} others\n")
        print("| agent | c | regret | / tacit-linear | us per episode |\n|---|---|---|---|---|")
        print(mine.line(mine.mean), flush=True)
        published = []
        for name in PRIVATE:
            published.append(row(problem, name, epsilon, case.episodes, chosen))
            print(published[-1].line(mine.mean), flush=True)
        for name in others:
            if len(without) < len(others):
                without.append(row(problem, name, None, case.episodes, chosen))
            found = without[others.index(name)]
            kind = "uses no data" if name == "uniform" else "no privacy"
            print(f"{found.line(mine.mean)}  ({kind})", flush=True)
        ahead = min(r.mean for r in published) / mine.mean
        print(f"best published-style / tacit-linear: {ahead:.3g} (bar: 5)")
        if epsilon in case.bars:
            print(f"tacit-linear: {mine.mean:.3g} (bar: {case.bars[epsilon]:.3g})", flush=True)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--case", choices=list(CASES), default="synthetic")
    options.add_argument("--epsilon", type=float, action="append", help="default: those with a bar")
    options.add_argument("--runs", type=int, default=3, help="reported runs, 2 or more")
    options.add_argument("--tuning", type=int, default=2, help="runs on which c is chosen")
    options.add_argument("--users", type=float, help="fewer users, for a quick look")
    options.add_argument("--without", default="", help="agents to leave out, by comma: lsvi-ucb")
    given = options.parse_args()
    case = CASES[given.case]
    if given.users:
        case = Case(case.problem, int(given.users), {})
    epsilons = given.epsilon or list(CASES[given.case].bars)
    left_out = given.without.split(",")
    others = tuple(name for name in (*OPEN, "uniform") if name not in left_out)
    compare(case, epsilons, Chosen(given.tuning, given.runs), others)


if __name__ == "__main__":
    main()
