"""What private policy search promises, row by row: ``python benchmarks/search.py``.

Mean return of the final policy on 200 fresh episodes, the mean and the worst of 10 seeds; "played"
is the mean over all people of the search, what they tried out included. Constants were chosen on
other problems (docs/results/search.md). ``--only TEXT`` runs the rows whose line holds the
text, ``--seeds N`` fewer seeds, ``--honest`` the rows that show where search is the wrong tool,
beside agents for tables.
"""

import argparse
import functools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import tacit
from tacit.experiment import simulate
from tacit.problems.classic_control import linear_episodes

WANTED = (
    ("cart-pole", 5_000, "joint", 1.0, 450),
    ("cart-pole", 5_000, "local", 2.0, 480),
    ("cart-pole", 20_000, "joint", 1.0, 495),
    ("cart-pole", 20_000, "joint", 0.1, 450),
    ("cart-pole", 20_000, "local", 0.5, 495),
    ("cart-pole", 20_000, "local", 0.2, 450),
    ("acrobot", 50_000, "joint", 1.0, -120),
    ("acrobot", 50_000, "local", 2.0, -130),
    ("pendulum", 120_000, "joint", 1.0, -200),
    ("pendulum", 120_000, "local", 2.0, -220),
)
PLAIN = (("cart-pole", 5_000), ("acrobot", 50_000), ("pendulum", 120_000))
HONEST = ("mountain-car", "mountain-car-continuous", "gym:FrozenLake-v1")
LARGE = {"states": 400, "actions": 4, "horizon": 20}
"""Of a random table: 1,200 parameters."""


def searched(problem: Any, users: int, agent: Any, seeds: int) -> tuple[np.ndarray, float]:
    """Mean test return of every seed's final policy, and what people were returned."""
    result = simulate(tacit.environment(problem), agent, users, seeds)
    rng = np.random.default_rng(2026)
    tests = [
        np.mean([problem.rollout(learned.policy, rng).rewards[0] for _ in range(200)])
        for learned in result.policies
    ]
    return np.array(tests), float(result.reward[:, -1].mean() / users)


def line(name: str, users: int, who: str, found: np.ndarray, played: float, want: Any) -> str:
    """One row of the table."""
    cells = (name, f"{users:,}", who, f"{found.mean():.4g}", f"{found.min():.4g}")
    return "| " + " | ".join([*cells, f"{played:.4g}", str(want)]) + " |"


def rows(seeds: int, honest: bool) -> Iterator[tuple[str, Any]]:
    """What is run: a name, and what gives its line."""

    def one(name: str, users: int, who: str, agent: Any, want: Any, problem: Any = None) -> Any:
        def run() -> str:
            world = problem or tacit.problem(name)
            return line(name, users, who, *searched(world, users, agent, seeds), want)

        return f"{name} {users} {who}", run

    if honest:
        yield from _honest(one, seeds)
        return
    for name, users, model, epsilon, want in WANTED:
        agent = tacit.agent("tacit-search", epsilon=epsilon, model=model)
        yield one(name, users, f"{model} {epsilon:g}", agent, f">= {want}")
    for name, users in PLAIN:
        yield one(name, users, "not private", tacit.agent("policy-search"), "")
    system = tacit.problem("lq-double-integrator")
    for model, epsilon in (("joint", 1.0), ("local", 1.0), ("local", 2.0)):
        agent = tacit.agent("tacit-search", epsilon=epsilon, model=model)
        want = f"> {system.baseline()[1]:.3f}"
        yield one("lq", 10_000, f"{model} {epsilon:g}", agent, want, linear_episodes(system))
    yield "lq tacit-control", lambda: control(system, seeds)


def control(system: Any, seeds: int) -> str:
    """The agent that is told that the system is linear, on the same people."""
    result = tacit.simulate(system, tacit.agent("tacit-control", epsilon=1.0), 10_000, seeds)
    values = np.array([system.value(policy.policy) for policy in result.policies])
    played = system.optimal_value() - result.regret[:, -1].mean() / 10_000
    who = f"tacit-control, joint 1 (optimum {system.optimal_value():.3f})"
    return line("lq", 10_000, who, values, played, "")


def _honest(one: Any, seeds: int) -> Iterator[tuple[str, Any]]:
    """Sparse returns and small tables."""
    from tacit.problems.classic_control import table_episodes

    for name in HONEST:
        table = tacit.problem(name, horizon=100) if name.startswith("gym:") else None
        problem = None if table is None else table_episodes(table, returns=(0.0, 1.0))
        for model, epsilon in (("joint", 1.0), ("local", 2.0)):
            agent = tacit.agent("tacit-search", epsilon=epsilon, model=model)
            yield one(name, 20_000, f"{model} {epsilon:g}", agent, "", problem)
        yield one(name, 20_000, "not private", tacit.agent("policy-search"), "", problem)
    large = tacit.problem("random-mdp", **LARGE)
    world = table_episodes(large)
    agent = tacit.agent("tacit-search", epsilon=1.0)
    yield one("random-mdp", 100_000, "joint 1", agent, "", world)
    yield one("random-mdp", 100_000, "not private", tacit.agent("policy-search"), "", world)
    lake = tacit.problem("gym:FrozenLake-v1", horizon=100)
    for table, users, unit, who, parameters in (
        (lake, 20_000, 100.0, "psrl", {}),
        (lake, 20_000, 100.0, "tacit-joint", {"epsilon": 1.0}),
        (lake, 20_000, 100.0, "tacit-local", {"epsilon": 2.0}),
        (large, 100_000, 1.0, "psrl", {"every": 500}),
        (large, 100_000, 1.0, "tacit-joint", {"epsilon": 1.0}),
    ):
        run = functools.partial(tables, table, users, unit, who, parameters, seeds)
        yield f"{table.name} {who}", run


def tables(
    table: Any, users: int, unit: float, who: str, parameters: dict[str, Any], seeds: int
) -> str:
    """An agent for tables on the same table; values in these units."""
    result = tacit.simulate(table, tacit.agent(who, **parameters), users, seeds)
    values = np.array([table.value(policy.policy) for policy in result.policies])
    played = table.optimal_value() - result.regret[:, -1].mean() / users
    said = f"{who} {parameters.get('epsilon', '')}".strip()
    best = f"optimum {unit * table.optimal_value():.4g}"
    return line(table.name, users, said, unit * values, unit * played, best)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--honest", action="store_true")
    given = parser.parse_args()
    print("| environment | people | who | mean | worst seed | played | wanted |")
    print("|---|---|---|---|---|---|---|")
    for name, run in rows(given.seeds, given.honest):
        if given.only in name:
            began = time.process_time()
            print(run(), flush=True)
            print(f"<!-- {time.process_time() - began:.0f} s of processor time -->", flush=True)


if __name__ == "__main__":
    main()
