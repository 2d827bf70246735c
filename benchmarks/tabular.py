"""The published tabular agents: speed and regret. Run: python benchmarks/tabular.py [--regret].

Speed: microseconds of processor time per episode, planning anew after every user, of every agent
and of a plain compiled loop of LDP-OBI with Laplace noise, timed in turns, best of several.

Regret (``--regret``, minutes): mean cumulative regret on the eight random-mdp instances of
docs/papers/tabular_ldp.md#replication (S = A = H = 2, start in state 0, beta = 0.1, alpha = 2,
delta = 0.1), one run per instance, beside what a separate implementation measured.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import tacit
from tacit.simulation.dispatch import compiled_run
from tacit_lab.bench import by_hand

SEEDS = (1, 2, 3, 4, 5, 8, 9, 10)
EPSILONS = (0.2, 2.0, 20.0)

NOISE: dict[str, dict[str, Any]] = {
    "laplace": {},
    "gaussian": {"randomizer": "gaussian", "delta": 0.1},
    "randomized-response": {"randomizer": "randomized-response"},
    "bounded": {"randomizer": "bounded", "delta": 0.1},
}
REFERENCE: dict[str, tuple[float, ...]] = {
    "ldp-obi laplace, paper": (5.51e5, 3.76e5, 1.155e5),
    "ldp-obi gaussian, paper": (5.09e5, 2.58e5, 6.13e4),
    "ldp-obi randomized-response, paper": (5.10e5, 2.90e5, 1.47e5),
    "ldp-obi bounded, paper": (4.78e5, 3.46e5, 1.09e5),
    "ldp-obi bounded, paper, eps' = eps": (3.88e5, 1.52e5, 3.16e4),
    "ldp-obi laplace, tight widths": (5.10e5, 1.25e5, 4.37e4),
    "ldp-psrl, paper": (2.55e5, 3.50e4, 6.6e2),
    "obi": (7.4e3,),
    "ucb-vi": (7.5e4,),
    "psrl": (17.0,),
}


def rows(epsilon: float) -> dict[str, tacit.Agent]:
    """All agents that take an epsilon."""
    found = {}
    for name, noise in NOISE.items():
        for kind, how in (
            ("paper", {"calibration": "paper"}),
            ("corrected widths", {}),
            ("tight widths", {"width": "tight"}),
        ):
            agent = tacit.agent("ldp-obi", epsilon=epsilon, **noise, **how)
            found[f"ldp-obi {name}, {kind}"] = agent
    # the paper's other reading: the budget of bounded noise not divided by 3H = 6
    found["ldp-obi bounded, paper, eps' = eps"] = tacit.agent(
        "ldp-obi", epsilon=6 * epsilon, calibration="paper", **NOISE["bounded"]
    )
    found["ldp-psrl, paper"] = tacit.agent("ldp-psrl", epsilon=epsilon, calibration="paper")
    found["ldp-psrl, tight"] = tacit.agent("ldp-psrl", epsilon=epsilon)
    return found


def microseconds(problem: tacit.TabularMDP, agent: tacit.Agent, episodes: int) -> float:
    """Of one episode late in a run, once compiled."""
    bound = agent.bind(problem.task(users=10 * episodes))
    run = compiled_run(problem, bound, 0, 0, np.array([10 * episodes]))
    assert run is not None
    run.advance(episodes // 10)
    began = time.thread_time()
    run.advance(episodes)
    return 1e6 * (time.thread_time() - began) / episodes


def speed(rounds: int) -> None:
    """Best of several rounds, the plain loop and ours in turns."""
    cases = {
        "random-mdp S=A=H=2": (tacit.problem("random-mdp", seed=1), 200_000),
        "river-swim S=6 A=2 H=20": (tacit.problem("river-swim"), 10_000),
    }
    for case, (problem, episodes) in cases.items():
        agents = {
            **{f"ldp-obi {n}": tacit.agent("ldp-obi", epsilon=2.0, **p) for n, p in NOISE.items()},
            "ldp-obi tight": tacit.agent("ldp-obi", epsilon=2.0, width="tight"),
            "ldp-psrl": tacit.agent("ldp-psrl", epsilon=2.0),
            "obi": tacit.agent("obi"),
        }
        best = dict.fromkeys(["plain loop", *agents], np.inf)
        for _ in range(rounds):
            plain = by_hand.ldp_obi(problem, episodes)
            best["plain loop"] = min(best["plain loop"], plain)
            for name, agent in agents.items():
                best[name] = min(best[name], microseconds(problem, agent, episodes))
        print(f"\n{case}: microseconds per episode (ratio to the plain loop of ldp-obi laplace)")
        for name, cost in best.items():
            print(f"  {name:28s} {cost:8.3f}  {cost / best['plain loop']:5.2f}")


def regret(episodes: int, wanted: str) -> None:
    """One line per agent: mean [least, most] over the instances, for each epsilon."""
    problems = [tacit.problem("random-mdp", seed=seed) for seed in SEEDS]

    def measure(agent: tacit.Agent) -> str:
        runs = [
            tacit.simulate(problem, agent, episodes, checkpoints=episodes).regret[0, -1]
            for problem in problems
        ]
        return f"{np.mean(runs):.3g} [{min(runs):.2g}, {max(runs):.2g}]"

    print(f"\nregret after {episodes:,} episodes, epsilon = {EPSILONS}")
    print("(in brackets, at 1e6: docs/papers/tabular_ldp.md#replication)")
    for name in rows(1.0):
        if wanted in name:
            cells = [measure(rows(epsilon)[name]) for epsilon in EPSILONS]
            print(f"  {name:36s} {'  '.join(cells)}  {_spec(name)}", flush=True)
    for name in ("obi", "ucb-vi", "psrl"):
        if wanted in name:
            print(f"  {name:36s} {measure(tacit.agent(name))}  {_spec(name)}", flush=True)
    if wanted in "plain loop":
        found = [
            np.mean([by_hand.ldp_obi_regret(problem, epsilon, episodes) for problem in problems])
            for epsilon in EPSILONS
        ]
        print(
            f"  {'plain loop of ldp-obi laplace, paper':36s} {'  '.join(f'{r:.3g}' for r in found)}"
        )


def _spec(name: str) -> str:
    return f"({' / '.join(f'{r:.3g}' for r in REFERENCE[name])})" if name in REFERENCE else ""


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--regret", action="store_true", help="the regret table instead of speed")
    options.add_argument("--episodes", type=float, default=1e6)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="", help="rows whose name contains this")
    chosen = options.parse_args()
    if chosen.regret:
        regret(int(chosen.episodes), chosen.only)
    else:
        speed(chosen.rounds)


if __name__ == "__main__":
    main()
