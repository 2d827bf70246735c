"""Which constants of the first-visit planner change regret: each is switched off, the rest stays.

On problems of our own, with few users for each pair (a table counts as vast) and with enough. A row
is the regret of a run without one constant over that with all of them, same seeds: the geometric
mean over problems, the worst problem, and how many runs are stuck (lose more than a fiftieth of
what uniform actions lose in their last tenth). ``all`` with other seeds is what chance does.

    python benchmarks/constants.py constants.jsonl              # what is missing, and the table
    python benchmarks/constants.py constants.jsonl --only "no bonus"
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.planners import first_visits

DELTA = 1e-5
STUCK = 0.02
WITHOUT: dict[str, Mapping[str, Any]] = {
    "all": {},
    "all, other seeds": {},
    "no lucky draw of unexplored rewards": {"UNEXPLORED_REWARD_BONUS": 0.0},
    "next states of other actions are not believed sooner": {"NEIGHBOUR_DEVIATIONS": 1e9},
    "draws never allow for them": {"RARE_REWARD": 0.0},
    "pairs are known by 0 deviations": {"KNOWN_DEVIATIONS": 0.0},
    "noise is not drawn again": {"REDRAWN_NOISE": 1e-9},
    "all noise is drawn again": {"REDRAWN_NOISE": 0.999999},
    "unknown pairs promise what is earned": {"UNKNOWN_REWARD_FACTOR": 1.0},
    "always a full bonus": {"FULL_BONUS_USERS": 1e-9},
    "no bonus": {"FULL_BONUS_USERS": math.inf},
    "exploiting from the first user on": {"EXPLORE_UNTIL": 0.0},
    "nothing found: never given up": {"GIVE_UP_AT": 1.0},
    "no doubting": {"DOUBTING_SHARE": 0.0},
    "vast tables by the same shares": {"LARGE_TABLE_SHARES": (0.1, 0.6)},
    "vast tables by the same false states": {"FALSE_PER_TABLE": "one rule"},
}
"""Names of the module, and the value at which a constant does nothing."""


def table(name: str, P: Any, R: Any, horizon: int, start: int = 0) -> tacit.TabularMDP:
    """A table of our own."""
    return tacit.TabularMDP(np.asarray(P), np.asarray(R), horizon, start, name=name)


def grid(name: str, rows: tuple[str, ...], slip: float, horizon: int) -> tacit.TabularMDP:
    """A grid: S start, G pays once and ends, H ends, # wall; a step goes aside with ``slip``."""
    height, width = len(rows), len(rows[0])
    S = height * width + 1  # the last state is the end
    P, R = np.zeros((S, 4, S)), np.zeros((S, 4))
    P[-1, :, -1] = 1.0
    start = 0
    for s, (i, j) in enumerate(np.ndindex(height, width)):
        start = s if rows[i][j] == "S" else start
        for a in range(4):
            for turn, chance in ((0, 1.0 - slip), (1, slip / 2), (3, slip / 2)):
                k, n = i, j
                di, dj = ((0, 1), (1, 0), (0, -1), (-1, 0))[(a + turn) % 4]
                if 0 <= i + di < height and 0 <= j + dj < width and rows[i + di][j + dj] != "#":
                    k, n = i + di, j + dj
                P[s, a, -1 if rows[i][j] in "GH" else k * width + n] += chance
            R[s, a] = float(rows[i][j] == "G")
    return table(name, P, R, horizon, start)


def lake(seed: int, height: int = 4, width: int = 4) -> tacit.TabularMDP:
    """Random holes, one in six; a slippery way to the far corner."""
    rng = np.random.default_rng(seed)
    cells = np.where(rng.random((height, width)) < 1 / 6, "H", ".")
    cells[0, 0], cells[-1, -1] = "S", "G"
    return grid(f"lake {seed}", tuple("".join(row) for row in cells), 0.5, 40)


def deep_sea(n: int) -> tacit.TabularMDP:
    """Only who dives at every step finds the reward; each dive costs a little."""
    P, R = np.zeros((n * n, 2, n * n)), np.zeros((n * n, 2))
    for i, j in np.ndindex(n, n):
        for a, k in ((0, max(j - 1, 0)), (1, min(j + 1, n - 1))):
            P[i * n + j, a, min(i + 1, n - 1) * n + k] = 1.0
        R[i * n + j, 0] = 0.05 / n
    R[n * n - 1, 1] = 1.0
    return table(f"deep-sea {n}", P, R, n)


def garnet(seed: int, states: int = 12, actions: int = 3) -> tacit.TabularMDP:
    """Three next states for every pair; one pair in five pays."""
    rng = np.random.default_rng(seed)
    P = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        P[s, a, rng.choice(states, 3, replace=False)] = rng.dirichlet(np.ones(3))
    R = (rng.random((states, actions)) < 0.2) * rng.random((states, actions))
    return table(f"garnet {seed}", P, R, 12)


def inventory(most: int = 7) -> tacit.TabularMDP:
    """Order up to so many; demand is geometric, sales pay, orders and stock cost."""
    P, R = np.zeros((most + 1, most + 1, most + 1)), np.zeros((most + 1, most + 1))
    for s, a in np.ndindex(most + 1, most + 1):
        stock = min(most, s + a)
        for demand in range(30):
            chance = 0.3 * 0.7**demand if demand < 29 else 0.7**29
            sold = min(stock, demand)
            P[s, a, stock - sold] += chance
            R[s, a] += chance * sold
        R[s, a] -= 0.3 * (stock - s) + 0.05 * stock + 0.4 * (a > 0)
    return table("inventory", P, (R - R.min()) / (R.max() - R.min()), 12)


def queue(places: int = 9) -> tacit.TabularMDP:
    """Three speeds of service; speed costs, waiting costs."""
    P, R = np.zeros((places, 3, places)), np.zeros((places, 3))
    for s, a in np.ndindex(places, 3):
        served, comes = (0.2, 0.5, 0.8)[a], 0.45
        for n, chance in (
            (s - 1, served * (1 - comes)),
            (s + 1, comes * (1 - served)),
            (s, served * comes + (1 - served) * (1 - comes)),
        ):
            P[s, a, min(max(n, 0), places - 1)] += chance
        R[s, a] = 1.0 - s / (places - 1) * 0.7 - 0.15 * a
    return table("queue", P, R, 15)


def courier(side: int = 7) -> tacit.TabularMDP:
    """Fetch a parcel at one of three depots, bring it to another: 1 when it is there, and the end.

    The parcel lies at a depot or is carried (4 places), and has one of three aims; steps go aside
    one time in ten, and fetching or leaving where it cannot be done is a step lost.
    """
    depots = (0, side - 1, side * (side - 1))
    cells, end = side * side, side * side * 12
    P, R = np.zeros((end + 1, 6, end + 1)), np.zeros((end + 1, 6))
    P[end, :, end] = 1.0
    for at, place, aim in np.ndindex(cells, 4, 3):
        s, (i, j) = (at * 4 + place) * 3 + aim, divmod(at, side)
        for a in range(4):
            for turn, chance in ((0, 0.9), (1, 0.05), (3, 0.05)):
                di, dj = ((0, 1), (1, 0), (0, -1), (-1, 0))[(a + turn) % 4]
                k, n = min(max(i + di, 0), side - 1), min(max(j + dj, 0), side - 1)
                P[s, a, ((k * side + n) * 4 + place) * 3 + aim] += chance
        fetched = place < 3 and at == depots[place]
        P[s, 4, s + 3 * (3 - place) if fetched else s] = 1.0
        left = place == 3 and at == depots[aim]
        P[s, 5, end if left else s] = 1.0
        R[s, 5] = float(left)
    start = np.zeros(end + 1)
    for at, place, aim in np.ndindex(cells, 3, 3):
        start[(at * 4 + place) * 3 + aim] = float(place != aim)
    return tacit.TabularMDP(P, R, 4 * side, start / start.sum(), name="courier")


ROOMS = ("S..#...", "...#...", ".......", "...#...", "...#..G")
PROBLEMS: tuple[Callable[[], tacit.TabularMDP], ...] = (
    lambda: tacit.problem("river-swim", states=4, horizon=12),
    lambda: tacit.problem("river-swim", states=9, horizon=30),
    lambda: deep_sea(5),
    lambda: lake(1),
    lambda: lake(2, 4, 5),
    lambda: lake(3),
    lambda: grid("rooms", ROOMS, 0.1, 40),
    lambda: garnet(1),
    lambda: garnet(2, 30, 3),
    inventory,
    queue,
    courier,
    lambda: tacit.problem("random-mdp", states=8, actions=3, horizon=8, seed=3),
)
SCALES = ((10**4, 1.0), (10**5, 1.0), (10**5, 8.0))
"""Users and epsilon; the first are so few that most of these tables count as vast."""


def measured(
    problem: tacit.TabularMDP, users: int, epsilon: float, seeds: range
) -> list[tuple[float, float]]:
    """Regret, and that of the last tenth, over that of uniform actions; one pair a run."""
    agent = tacit.agent("tacit-joint", epsilon=epsilon, delta=DELTA)
    uniform = problem.optimal_value() - problem.baseline()[1]
    rows = []
    for seed in seeds:
        result = tacit.Experiment(
            problem=problem, agent=agent, episodes=users, seed=seed, checkpoints=users // 10
        ).run(workers=1)
        late = result.regret_per_episode(users - users // 10, users)
        rows.append((float(result.regret[0, -1]) / users / uniform, float(late[0]) / uniform))
    return rows


@contextmanager
def switched(name: str, pairs: int) -> Iterator[None]:
    """The module's constants without one, for a table of so many pairs."""
    before = {key: getattr(first_visits, key) for key in WITHOUT[name]}
    for key, value in WITHOUT[name].items():
        # the rule for tables that are not vast, whatever the number of pairs
        setattr(
            first_visits, key, first_visits.FALSE_PER_PAIR * pairs if value == "one rule" else value
        )
    yield
    for key, value in before.items():
        setattr(first_visits, key, value)


def report(rows: list[dict[str, Any]]) -> str:
    """One line for each constant and scale."""
    base = {(r["problem"], r["users"], r["epsilon"]): r["runs"] for r in rows if r["name"] == "all"}
    lines = ["| without | users | epsilon | regret (2 se) | worst | stuck |", "|" + "---|" * 6]
    for name in WITHOUT:
        for users, epsilon in SCALES:
            logs, stuck, worst = [], 0, ("", 0.0)
            for r in rows:
                if (r["name"], r["users"], r["epsilon"]) != (name, users, epsilon):
                    continue
                other = base[r["problem"], users, epsilon]
                mean = [sum(run[0] for run in runs) / len(runs) for runs in (r["runs"], other)]
                logs.append(math.log(max(mean[0], 1e-6) / max(mean[1], 1e-6)))
                stuck += sum(run[1] > STUCK for run in r["runs"])
                worst = max(worst, (r["problem"], mean[0] / mean[1]), key=lambda w: w[1])
            if not logs:
                continue
            centre, spread = float(np.mean(logs)), float(np.std(logs, ddof=1)) / len(logs) ** 0.5
            lines.append(
                f"| {name} | {users:.0e} | {epsilon:g} | {math.exp(centre):.3f} "
                f"({math.exp(centre - 2 * spread):.3f} to {math.exp(centre + 2 * spread):.3f}) "
                f"| {worst[0]} {worst[1]:.2f} | {stuck} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", choices=WITHOUT)
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    rows = []
    if options.file.exists():
        rows = [json.loads(line) for line in options.file.read_text().splitlines()]
    done = {(r["name"], r["problem"], r["users"], r["epsilon"]) for r in rows}
    problems = [make() for make in PROBLEMS]
    for users, epsilon in SCALES:
        for name in WITHOUT:
            for problem in problems:
                key = (name, problem.name + f" {problem.states}", users, epsilon)
                if key in done or (options.only and name not in ("all", options.only)):
                    continue
                first = 100 if name == "all, other seeds" else 0
                seeds = range(first, first + options.seeds)
                with switched(name, problem.states * problem.actions):
                    runs = measured(problem, users, epsilon, seeds)
                row = dict(zip(("name", "problem", "users", "epsilon"), key, strict=True))
                rows.append(row | {"runs": runs})
                with options.file.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(report(rows))


if __name__ == "__main__":
    main()
