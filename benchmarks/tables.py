"""tacit-joint on tables that nobody tuned it for: one row per problem, users and epsilon.

No constant of the agent was chosen on these problems (docs/results/benchmarks.md says on which).
Rows that a file of results holds already are not run again; every row is written as soon as it is
done.

    python benchmarks/tables.py tables.jsonl                     # all of them
    python benchmarks/tables.py tables.jsonl --only taxi         # those of one problem
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tacit

DELTA = 1e-5


@dataclass(frozen=True)
class Asked:
    """What a row must show, in the mean over its seeds.

    Attributes:
        regret: of all users, at most.
        late: regret per user of the last tenth, at most.
        final: value of the policy left in the end, at least.
        uniform: whether the last tenth must lose less than uniform actions do.
    """

    regret: float | None = None
    late: float | None = None
    final: float | None = None
    uniform: bool = False

    def words(self) -> str:
        """As it stands in the table."""
        said = [
            f"{name} {sign} {value:g}"
            for name, sign, value in (
                ("regret", "<=", self.regret),
                ("late", "<=", self.late),
                ("final", ">=", self.final),
            )
            if value is not None
        ]
        return ", ".join(said + ["late below uniform"] * self.uniform) or "report"

    def met(self, row: dict[str, Any]) -> bool:
        """Whether the means of a row are within it."""
        return (
            (self.regret is None or row["regret"] <= self.regret)
            and (self.late is None or row["late"] <= self.late)
            and (self.final is None or row["final"] >= self.final)
            and (not self.uniform or row["late"] < row["uniform"])
        )


PROBLEMS: dict[str, Callable[[], tacit.TabularMDP]] = {
    "frozen-lake": lambda: tacit.problem("gym:FrozenLake-v1", horizon=100),
    "river-swim": lambda: tacit.problem("river-swim", states=6, horizon=20),
    "taxi": lambda: tacit.problem("gym:Taxi-v4", horizon=25, masks=False),
    "taxi, masks": lambda: tacit.problem("gym:Taxi-v4", horizon=25),
    "sepsis": lambda: tacit.problem("gym:Sepsis/ICU-Sepsis-v2", horizon=20, returns=[0, 1]),
    "frozen-lake-8x8": lambda: tacit.problem("gym:FrozenLake-v1", horizon=200, map_name="8x8"),
    "cliff-walking": lambda: tacit.problem("gym:CliffWalking-v1", horizon=50),
}
ROWS: list[tuple[str, int, float, Asked]] = [
    ("frozen-lake", 10**5, 1.0, Asked(regret=2.5e4, late=0.01)),
    ("frozen-lake", 10**5, 8.0, Asked(regret=5e3, late=0.002)),
    ("river-swim", 10**5, 1.0, Asked(regret=6e3, late=0.001)),
    ("river-swim", 10**5, 8.0, Asked(regret=1.2e3)),
    ("taxi", 10**5, 1.0, Asked(uniform=True)),
    ("taxi", 10**5, 8.0, Asked(late=1.0)),
    ("taxi, masks", 10**5, 1.0, Asked(uniform=True)),
    ("taxi, masks", 10**5, 8.0, Asked(late=1.0)),
    ("sepsis", 10**5, 1.0, Asked(final=0.70)),
    ("sepsis", 10**5, 4.0, Asked(final=0.715)),
    ("sepsis", 10**6, 1.0, Asked(final=0.73)),
    ("sepsis", 10**6, 4.0, Asked(final=0.745)),
    ("frozen-lake-8x8", 10**6, 1.0, Asked(late=0.05)),
    ("frozen-lake-8x8", 10**6, 8.0, Asked(late=0.01)),
    ("cliff-walking", 10**6, 1.0, Asked()),
    ("cliff-walking", 10**6, 8.0, Asked(late=0.1)),
]


def measured(problem: tacit.TabularMDP, users: int, epsilon: float, seeds: int) -> dict[str, Any]:
    """Regret, the last tenth and the policy left in the end; means, and the worst seed of each."""
    agent = tacit.agent("tacit-joint", epsilon=epsilon, delta=DELTA)
    tacit.simulate(problem, agent, 100, workers=1)  # compiles
    began = time.process_time()
    result = tacit.Experiment(
        problem=problem, agent=agent, episodes=users, checkpoints=users // 10, runs=seeds
    ).run(workers=1)
    spent = time.process_time() - began
    regret = result.regret[:, -1]
    late = result.regret_per_episode(users - users // 10, users)
    final = [problem.value(learned.policy) for learned in result.policies]
    best = problem.optimal_value()
    return {
        "seeds": seeds,
        "best": best,
        "uniform": best - problem.baseline()[1],
        "regret": float(regret.mean()),
        "regret_worst": float(regret.max()),
        "late": float(late.mean()),
        "late_worst": float(late.max()),
        "final": float(sum(final) / len(final)),
        "final_worst": float(min(final)),
        "us": spent / users / seeds * 1e6,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def table(rows: Iterable[dict[str, Any]]) -> str:
    """All rows, as Markdown."""
    asked = {(name, users, epsilon): bar for name, users, epsilon, bar in ROWS}
    lines = [
        "| problem | users | epsilon | seeds | regret (worst) | late (worst) | final (worst; best) "
        "| asked | met | us per user |",
        "|" + "---|" * 10,
    ]
    for row in rows:
        bar = asked[row["problem"], row["users"], row["epsilon"]]
        lines.append(
            f"| {row['problem']} | {row['users']:.0e} | {row['epsilon']:g} | {row['seeds']} "
            f"| {row['regret']:.3g} ({row['regret_worst']:.3g}) "
            f"| {row['late']:.2g} ({row['late_worst']:.2g}) "
            f"| {row['final']:.4f} ({row['final_worst']:.4f}; {row['best']:.4f}) "
            f"| {bar.words()} | {'yes' if bar.met(row) else '**no**'} | {row['us']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", choices=PROBLEMS)
    parser.add_argument("--users", type=float, help="only rows of so many users")
    parser.add_argument("--seeds", type=int, default=4)
    asked = parser.parse_args()
    text = asked.file.read_text() if asked.file.exists() else ""
    done = [json.loads(line) for line in text.splitlines()]
    for name, users, epsilon, _ in ROWS:
        if asked.only not in (None, name) or asked.users not in (None, users):
            continue
        if any((r["problem"], r["users"], r["epsilon"]) == (name, users, epsilon) for r in done):
            continue
        found = measured(PROBLEMS[name](), users, epsilon, asked.seeds)
        row = {"problem": name, "users": users, "epsilon": epsilon, **found}
        done.append(row)
        with asked.file.open("a") as file:
            file.write(json.dumps(row) + "\n")
    print(table(done))


if __name__ == "__main__":
    main()
