"""Policy search side by side: with and without privacy, and Stable-Baselines3's PPO, not private.

All get the same number of episodes of CartPole-v1. PPO learns from every step of them, a search
from one number of each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit.agents import make_agent
from tacit.errors import InvalidInput
from tacit.experiment import simulate
from tacit.problems.classic_control import cart_pole
from tacit.problems.environment import environment
from tacit_lab.bench import peer_sb3
from tacit_lab.bench.peer import ask

PEER = "stable-baselines3"
ENVIRONMENT, EPSILON, TESTS = "CartPole-v1", 1.0, 100


def report(quick: bool, peer: Path | None, watch: Callable[[str], None]) -> dict[str, Any]:
    """Mean and worst return of the final policies, over seeds."""
    people, seeds = (500, 2) if quick else (5000, 10)
    rows = []
    for name, parameters in (
        ("policy-search", {}),
        ("tacit-search", {"epsilon": EPSILON, "model": "joint"}),
        ("tacit-search", {"epsilon": EPSILON, "model": "local"}),
    ):
        watch(f"search: {name}")
        agent = make_agent(name, **parameters)
        result = simulate(environment(f"gym:{ENVIRONMENT}"), agent, people, seeds)
        rng, world = np.random.default_rng(2026), cart_pole()
        returns = [
            float(np.mean([world.rollout(p.policy, rng).rewards[0] for _ in range(TESTS)]))
            for p in result.policies
        ]
        rows.append(_row(name, result.guarantee.brief(), returns))
    missing = f"{PEER} was not measured: -O peer_python=PATH names a Python that has it"
    if peer is not None:
        try:
            returns = []
            for seed in range(seeds):
                watch(f"search: {PEER}, seed {seed}")
                order = {"environment": ENVIRONMENT, "episodes": people, "tests": TESTS}
                answer = ask(peer, peer_sb3.__file__, {**order, "seed": seed}, PEER)
                returns.append(float(answer["return"]))
            rows.append(_row(f"{PEER} PPO", "not private", returns))
            missing = ""
        except InvalidInput as error:
            missing = str(error)
    return {"environment": ENVIRONMENT, "episodes": people, "rows": rows, "missing": missing}


def _row(who: str, guarantee: str, returns: list[float]) -> dict[str, Any]:
    mean, worst = float(np.mean(returns)), min(returns)
    return {"who": who, "guarantee": guarantee, "mean": mean, "worst": worst, "returns": returns}
