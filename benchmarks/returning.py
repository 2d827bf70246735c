"""People who come back: regret per participation and per person, by the way they are counted.

Run: python benchmarks/returning.py [local | joint | speed] [--people N] [--returns M] [--runs N]
[--seed N] [--out FILE]; without a word all three. Rows are printed as they are done, as a table.

local: river-swim with 6 states and 20 steps, tacit-local, epsilon 2 per person, 33,000 people who
take part 30 times: only the first is reported (under several laws of attendance), beside 33,000
people of whom each takes part once and free riders who come after them, and beside splitting
epsilon over the 30 reports, with as many people and with 20 times as many.
joint: FrozenLake with 100 steps, tacit-joint, (1, 1e-5) per person, 10^4 people who take part 10
times: lifetime first visits, beside dividing mu by 10, and beside 10^5 and 10^4 people who take
part once. Nobody chose a constant on FrozenLake; run it once, when the agent is done.
speed: participations per second of 10^5 people who take part 30 times, both agents.

"Late" is regret per participation over the last tenth, over runs: the mean, and the worst run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tacit
from tacit.errors import InvalidInput

MORE = 20
"""Splitting is also given so many times the people."""

LAWS = ("rounds", "anytime", "bursts")


@dataclass(frozen=True)
class Row:
    """One setting of the table."""

    what: str
    people: int
    returns: int
    result: tacit.Result

    @property
    def late(self) -> np.ndarray:
        """Regret per participation over the last tenth, by run."""
        last = self.result.completed
        return self.result.regret_per_episode(-(-last * 9 // 10), last)

    def cells(self) -> str:
        """The row of the table."""
        result, total = self.result, self.result.regret[:, -1]
        days = "" if result.returning is None else f"{result.returning.days[-1]:.0f}"
        return (
            f"| {self.what} | {self.people:,} x {self.returns} | {total.mean():.4g} "
            f"({total.max():.4g}) | {self.late.mean():.4g} ({self.late.max():.4g}) | "
            f"{result.regret_per_person().mean():.4g} | {days} | {result.guarantee.brief()} | "
            f"{len(result.seeds)} |"
        )


HEAD = (
    "| counted | people x times | regret (worst) | late (worst) | per person | days | per person "
    "guaranteed | runs |\n|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Sizes:
    """How large everything is, and with which seeds."""

    people: int
    returns: int
    runs: int
    seed: int

    def simulate(
        self, what: str, problem: object, agent: object, people: int, returns: int, **how: object
    ) -> Row:
        """One row; who comes once has no rule."""
        back, law = {}, how.pop("law", None)
        if returns > 1:
            back = {"attendance": tacit.Attendance(law, people), **how}
        result = tacit.Experiment(
            problem=problem,
            agent=agent,
            episodes=people * returns,
            runs=self.runs,
            seed=self.seed,
            **back,
        ).run()
        return Row(what, people, returns, result)


def rule(returns: int, teaches: str) -> dict[str, object]:
    """The option of a rule."""
    return {"participation": tacit.Participation(returns, teaches)}


def local(sizes: Sizes) -> Iterator[Row]:
    """One report at full epsilon, or many that share it."""
    problem, agent = tacit.problem("river-swim"), tacit.agent("tacit-local", epsilon=2.0)
    n, m = sizes.people, sizes.returns
    first = rule(m, "first")
    yield sizes.simulate("once", problem, agent, n, 1)
    for law in LAWS:
        yield sizes.simulate(f"first, {law}", problem, agent, n, m, **first, law=law)
    every = rule(m, "every")
    yield sizes.simulate("every (split)", problem, agent, n, m, **every)
    more = f"every (split), {MORE} times the people"
    yield sizes.simulate(more, problem, agent, MORE * n, m, **every)


def joint(sizes: Sizes) -> Iterator[Row]:
    """Bounded over a life, or divided by the number of times."""
    problem = tacit.problem("gym:FrozenLake-v1", horizon=100)
    agent = tacit.agent("tacit-joint", epsilon=1.0, delta=1e-5)
    n, m = sizes.people, sizes.returns
    yield sizes.simulate("lifetime", problem, agent, n, m, **rule(m, "lifetime"))
    yield sizes.simulate("once, as many participations", problem, agent, n * m, 1)
    yield sizes.simulate("once, as many people", problem, agent, n, 1)
    yield sizes.simulate("every (mu divided)", problem, agent, n, m, **rule(m, "every"))


def speed(sizes: Sizes) -> Iterator[Row]:
    """Participations per second of processor time, compiling apart."""
    problem = tacit.problem("river-swim")
    n, m = sizes.people, sizes.returns
    for agent, teaches in (
        (tacit.agent("tacit-local", epsilon=2.0), "first"),
        (tacit.agent("tacit-joint", epsilon=1.0), "lifetime"),
    ):
        sizes.simulate("", problem, agent, 100, m, **rule(m, teaches))  # compiles
        began = time.process_time()
        row = sizes.simulate(f"{agent.name}, {teaches}", problem, agent, n, m, **rule(m, teaches))
        took = time.process_time() - began
        print(f"{n * m * sizes.runs / took:,.0f} participations per second of processor time")
        yield row


PARTS: dict[str, tuple[Callable[[Sizes], Iterator[Row]], tuple[int, int, int]]] = {
    "local": (local, (33_000, 30, 3)),
    "joint": (joint, (10_000, 10, 4)),
    "speed": (speed, (100_000, 30, 1)),
}
"""By name: people, times, runs."""


def verdicts(rows: list[Row]) -> Iterator[str]:
    """How the ways compare with each other, in words."""
    by = {row.what: row for row in rows}
    if "once" in by:
        # Free riders who come after 33,000 one-time people have the policy that these left behind.
        left = by["once"].result
        problem = tacit.problem("river-swim")
        lost = np.mean(
            [problem.optimal_value() - problem.value(p.publication.policy) for p in left.policies]
        )
        yield f"free riders after one-time people lose {lost:.4g} each"
        for row in rows[1:]:
            yield f"{row.what}: late regret {row.late.mean() / lost:.3g} times that"
    if "lifetime" in by:
        total = by["lifetime"].result.regret[:, -1].mean()
        other = by["once, as many participations"].result.regret[:, -1].mean()
        yield f"lifetime: total regret {total / other:.3g} times that of as many one-time people"


def main(words: list[str]) -> None:
    """Run what is asked for, print it, and write it to a file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    for name in ("people", "returns", "runs"):
        parser.add_argument(f"--{name}", type=int, default=None)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args(words)
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)
        if given.out is not None:
            given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")

    for part in given.parts or PARTS:
        if part not in PARTS:
            raise InvalidInput(f"{part!r} is none of {', '.join(PARTS)}")
        measured, usual = PARTS[part]
        asked = (given.people, given.returns, given.runs)
        sizes = Sizes(*(a or u for a, u in zip(asked, usual, strict=True)), given.seed)
        say(f"\n{part}, seed {given.seed}\n\n{HEAD}")
        rows = []
        for row in measured(sizes):
            rows.append(row)
            say(row.cells())
        for verdict in verdicts(rows):
            say(f"\n{verdict}")


if __name__ == "__main__":
    main(sys.argv[1:])
