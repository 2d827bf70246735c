"""How often intervals about a log hold the truth, for logs as they come: cut, ended, dirty.

Every log is of people who lived for it alone, so logs owe each other nothing: drawn again from one
pool they would share its luck. The truth is that of the table. No constant of the intervals was
chosen on these tables at these seeds (``planners/evaluation/by_log.py`` says on which).

    python benchmarks/logs.py rows.jsonl                         # every row that is not there yet
    python benchmarks/logs.py rows.jsonl --table | python docs/measured.py logs.intervals
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.agents.offline import TacitOffline
from tacit.learner import Learner
from tacit.logs.mapping import LogMapping, make_mapping
from tacit.logs.rows import arranged
from tacit.logs.simulated import simulate_log
from tacit.logs.values import value_by_release, values_of
from tacit.policies.tabular import StochasticPolicy
from tacit.privacy.noise import SimulatedNoise
from tacit.problems import TabularMDP
from tacit.publication import Publication
from tacit.streams import planner_streams
from tacit.trajectory import Log

STATES, ACTIONS, HORIZON = 12, 3, 10
PEOPLE = (5_000, 50_000, 400_000)
LOGS, DELTA = 300, 1e-5
TOGETHER = 5_000
"""People who are simulated at once."""


class Kind(NamedTuple):
    """A kind of log.

    Attributes:
        rows: that are recorded of a person who stays, counted from the first step.
        quits: whether episodes end before the horizon, each by a row that ends.
        leaves: of those who have not left, the share that does after each row.
        dirty: chance that a row is spoilt where it paid nothing, and where it paid.
        inert: whether actions have no effect.
        rare: declared states beside those that occur.
        led: whether a step is paid for leading to an even state; these lead to each other mostly.
    """

    rows: int = HORIZON + 1
    quits: bool = False
    leaves: float = 0.0
    dirty: tuple[float, float] = (0.0, 0.0)
    inert: bool = False
    rare: int = 0
    led: bool = False


KINDS = {
    "clean": Kind(),
    "clean, as long as the horizon": Kind(rows=HORIZON),
    "clean, longer than the horizon": Kind(rows=HORIZON + 5),
    "clean, shorter than the horizon": Kind(rows=HORIZON - 4),
    "ending by `ends`": Kind(quits=True),
    "ending by `ends`, as long as the horizon": Kind(rows=HORIZON, quits=True),
    "ending by `ends`, shorter than the horizon": Kind(rows=HORIZON - 4, quits=True),
    "cut at random": Kind(leaves=0.1),
    "cut at random, and ending by `ends`": Kind(leaves=0.1, quits=True),
    "cut at random, actions without effect": Kind(leaves=0.1, inert=True),
    "declared states that never occur": Kind(rare=12),
    "dirty at random": Kind(dirty=(0.06, 0.06)),
    "dirty at random, and ending by `ends`": Kind(dirty=(0.06, 0.06), quits=True),
    "dirty by outcome": Kind(dirty=(0.02, 0.15)),
    "rewards for where a step leads": Kind(led=True),
}


def world(kind: Kind, horizon: int, seed: int) -> TabularMDP:
    """A table with three next states per pair; who quits does so with up to .15 a step."""
    rng = np.random.default_rng(seed)
    size = STATES + kind.rare + kind.quits
    P, R = np.zeros((size, ACTIONS, size)), np.zeros((size, ACTIONS))
    R[:STATES] = rng.random((STATES, ACTIONS))
    for s in range(STATES):
        for a in range(ACTIONS):
            P[s, a, rng.choice(STATES, 3, replace=False)] = rng.dirichlet(np.ones(3))
    if kind.quits:
        ends = 0.15 * rng.random((STATES, ACTIONS))
        P[:STATES] *= 1.0 - ends[..., np.newaxis]
        P[:STATES, :, -1] = ends
    if kind.led:
        P *= np.where(np.add.outer(np.arange(size), np.arange(size)) % 2, 1.0, 9.0)[:, np.newaxis]
        P[:STATES] /= P[:STATES].sum(axis=2, keepdims=True)
        R[:STATES] = P[:STATES, :, ::2].sum(axis=2).clip(0.0, 1.0)
    if kind.inert:
        P[:], R[:] = P[:, :1], R[:, :1]
    for s in range(STATES, size):
        P[s, :, s] = 1.0
    start = np.append(rng.dirichlet(np.ones(STATES)), np.zeros(size - STATES))
    over = [size - 1] if kind.quits else []
    return TabularMDP(P, R, horizon, start, rewards="bernoulli", terminal=over)


def behaviours(size: int, horizon: int, seed: int) -> tuple[StochasticPolicy, StochasticPolicy]:
    """How people act, and how they do not: with the chances the other way round."""
    rng = np.random.default_rng([seed, 1])
    rows = 0.8 * rng.dirichlet(np.ones(ACTIONS), size) + 0.2 / ACTIONS
    table = np.tile(rows, (horizon, 1, 1))
    return StochasticPolicy(table), StochasticPolicy(table[..., ::-1].copy())


def mapping(kind: Kind) -> LogMapping:
    """What is declared: rows are numbered from 0, rewards lie in [0, 1]."""
    names = ("person", "step", "reward", *(("ends",) if kind.quits else ()))
    return make_mapping(
        {
            "data": {"name": "made up", "people": 10**7},
            "columns": {name: name for name in names},
            "state": [{"column": "state", "size": STATES + kind.rare}],
            "action": {"column": "action", "size": ACTIONS},
            "task": {"horizon": HORIZON},
        }
    )


def recorded(log: Log, kind: Kind, ended: int, rng: np.random.Generator) -> dict[str, Any]:
    """What is left of a log: people leave, rows are spoilt."""
    rows: dict[str, Any] = {
        "person": np.repeat(np.arange(log.people), np.diff(log.begin)),
        "ends": (log.after == ended).astype(np.int8),
    }
    rows |= {name: getattr(log, name) for name in ("step", "state", "action", "reward", "chance")}
    if kind.led:
        rows["reward"] = (log.after % 2 == 0).astype(np.float32)
    last = rng.geometric(kind.leaves, log.people) if kind.leaves else np.full(log.people, kind.rows)
    spoilt = rng.random(len(rows["step"])) < np.where(rows["reward"] > 0, *kind.dirty[::-1])
    place = rng.random(len(spoilt)) < 0.5  # of the spoilt, half lack the state, half the reward
    rows["state"] = np.where(spoilt & place, -1, rows["state"]).astype(np.int16)
    rows["reward"] = np.where(spoilt & ~place, np.nan, rows["reward"]).astype(np.float32)
    here = rows["step"] < last[rows["person"]]
    names = [name for name in rows if name != "ends" or kind.quits]
    return {name: rows[name][here] for name in names}


def measure(name: str, people: int, epsilon: float, seed: int) -> dict[str, Any]:
    """One row: shares of logs whose intervals hold the truth, and mean half widths."""
    kind, rng = KINDS[name], np.random.default_rng([seed, people, list(KINDS).index(name)])
    truth, lives, mapped = world(kind, HORIZON, seed), world(kind, kind.rows, seed), mapping(kind)
    task, size = mapped.task, truth.states
    behaviour, other = behaviours(size, HORIZON, seed)
    acts, ended = behaviours(size, kind.rows, seed)[0], size - 1 if kind.quits else -1
    agent = TacitOffline(epsilon, DELTA, counts="transitions")
    bound = agent.bind_log(task, mapped.max_return, mapped.ended)
    statistic: Any = bound.statistic
    value = {"other": truth.value(other), "behaviour": truth.value(behaviour)}
    nobody = Publication(0, other, {})
    rows: dict[str, list[tuple[bool, float]]] = {}
    for _ in range(LOGS):
        total = np.zeros(statistic.layout.size, dtype=np.int64)
        for _ in range(people // TOGETHER):
            log = simulate_log(lives, acts, TOGETHER, rng)
            statistic.add(arranged(recorded(log, kind, ended, rng), mapped).log, total)
        noise, privatizer = SimulatedNoise(rng), bound.privatizer
        secret = privatizer.absorb_sums(privatizer.init(), total, people, nobody, noise)
        learner = Learner(bound, noise, secret=secret, served=task.users)
        policy, release = learner.publish(planner_streams(seed, 0)).policy, learner.release
        value["policy"] = truth.value(policy)
        value["difference"] = value["policy"] - value["behaviour"]
        found = values_of(mapped, release, policy)
        found["other"] = value_by_release(mapped, release, other, 0.05)
        for what, interval in found.items():
            if interval is not None:
                holds = interval.low <= value[what] <= interval.high
                rows.setdefault(what, []).append((holds, (interval.high - interval.low) / 2))
    held = {
        what: {"logs": len(row), "holds": share, "half": half}
        for what, row in rows.items()
        for share, half in [np.mean(row, axis=0).tolist()]
    }
    about = {"kind": name, "people": people, "epsilon": epsilon, "seed": seed, "logs": LOGS}
    return {**about, "intervals": held}


def main() -> None:
    """Measure what is not there yet, or print the table of docs/results/logs.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    parser.add_argument("--people", type=int, nargs="*", default=PEOPLE)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=2026)
    given = parser.parse_args()
    lines = given.rows.read_text().splitlines() if given.rows.exists() else []
    rows = [json.loads(line) for line in lines]
    if given.table:
        print(table(rows))
        return
    done = {(row["kind"], row["people"], row["epsilon"], row["seed"]) for row in rows}
    for people in given.people:
        for name in KINDS:
            asked = (name, people, given.epsilon, given.seed)
            if asked in done or given.only not in name:
                continue
            row = measure(*asked)
            with given.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(line(row), flush=True)


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    cells = [row["kind"], f"{row['people']:,}"]
    for what in ("policy", "behaviour", "difference", "other"):
        found = row["intervals"].get(what, {"logs": 0})
        text = f"withheld {row['logs'] - found['logs']} times"
        if found["logs"] == row["logs"]:
            text = f"{100 * found['holds']:.1f}% ({found['half']:.3g})"
        elif found["logs"]:
            text = f"{100 * found['holds']:.1f}% ({found['half']:.3g}), {text}"
        cells.append(f"**{text}**" if found["logs"] and found["holds"] < 0.93 else text)
    return f"| {' | '.join(cells)} |"


def table(rows: list[dict[str, Any]]) -> str:
    """The page's table, from all rows."""
    rows = sorted(rows, key=lambda row: (list(KINDS).index(row["kind"]), row["people"]))
    head = "| log | people | policy | behaviour | difference | other |"
    return "\n".join([head, "|" + "---|" * 6, *map(line, rows)])


if __name__ == "__main__":
    main()
