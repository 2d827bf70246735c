"""What planning less often costs, and what lists of next states change, on sparse tables.

Regret per user (mean over runs, 95% interval) and processor time per user of psrl and ucb-vi that
plan anew after every user, every tenth and every hundredth; and of psrl that draws the chance of
every next state instead of one for all that were never seen, as small tables do.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import tacit
from tacit.planners import base
from tacit.util.intervals import mean_interval


def garnet(states: int, actions: int, successors: int, horizon: int, seed: int) -> tacit.TabularMDP:
    """A random sparse table: few next states for every pair, one pair in ten pays."""
    rng = np.random.default_rng(seed)
    steps = []
    for s, a in np.ndindex(states, actions):
        chances = rng.dirichlet(np.ones(successors))
        for n, p in zip(rng.choice(states, successors, replace=False), chances, strict=True):
            steps.append((s, a, n, p))
    R = (rng.random((states, actions)) < 0.1) * rng.random((states, actions))
    return tacit.TabularMDP(steps, R, horizon, name=f"garnet {states} x {actions} x {successors}")


def measured(problem: tacit.TabularMDP, name: str, users: int, seeds: int, **given: float) -> str:
    """Regret and processor time per user."""
    agent = tacit.agent(name, **given)
    tacit.simulate(problem, agent, 10, workers=1)
    began = time.process_time()
    result = tacit.simulate(problem, agent, users, seeds=seeds, workers=1)
    spent = (time.process_time() - began) / users / seeds * 1e6
    lost = result.regret[:, -1] / users
    band = mean_interval(lost, least=0.0)
    return f"{band.value:.4f} ({band.low:.4f} to {band.high:.4f}), {spent:.0f} us"


def main() -> None:
    """Print one row per problem and agent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=6)
    asked = parser.parse_args()
    problems = [
        tacit.problem("river-swim", states=12, horizon=40),
        garnet(60, 4, 3, 20, seed=0),
    ]
    for problem in problems:
        print(
            f"{problem.name}: uniform actions lose {problem.optimal_value():.3f} - "
            f"{problem.baseline()[1]:.3f} per user"
        )
        for name, given in (("psrl", {}), ("ucb-vi", {"bonus_scale": 0.01})):
            for every in (1, 10, 100):
                found = measured(problem, name, asked.users, asked.seeds, every=every, **given)
                print(f"| {problem.name} | {name}, every={every} | {found} |", flush=True)
        few, base.MANY_STATES = base.MANY_STATES, 10**9
        found = measured(problem, "psrl", asked.users, asked.seeds)
        print(f"| {problem.name} | psrl, every next state drawn | {found} |", flush=True)
        base.MANY_STATES = few


if __name__ == "__main__":
    main()
