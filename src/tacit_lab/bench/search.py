"""Policy search side by side: with and without privacy, and Stable-Baselines3's PPO, not private.

All get the same number of episodes of CartPole-v1. PPO learns from every step of them, a search
from one number of each.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit.agents import make_agent
from tacit.errors import InvalidInput
from tacit.problems.classic_control import cart_pole
from tacit.simulation.learning import learn
from tacit_lab.bench import peer_sb3

PEER = "stable-baselines3"
ENVIRONMENT, EPSILON, TESTS = "CartPole-v1", 1.0, 100
_SECONDS = 3600.0


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
        result = learn(f"gym:{ENVIRONMENT}", agent, people, seeds)
        rng, world = np.random.default_rng(2026), cart_pole()
        found = [
            float(np.mean([world.rollout(p.policy, rng).rewards[0] for _ in range(TESTS)]))
            for p in result.policies
        ]
        rows.append(_row(name, result.guarantee.brief(), found))
    missing = f"{PEER} was not measured: --peer-python PATH names a Python that has it"
    if peer is not None:
        try:
            found = []
            for seed in range(seeds):
                watch(f"search: {PEER}, seed {seed}")
                found.append(_peer(peer, people, seed))
            rows.append(_row(f"{PEER} PPO", "not private", found))
            missing = ""
        except InvalidInput as error:
            missing = str(error)
    return {"environment": ENVIRONMENT, "episodes": people, "rows": rows, "missing": missing}


def _row(who: str, guarantee: str, found: list[float]) -> dict[str, Any]:
    mean, worst = float(np.mean(found)), min(found)
    return {"who": who, "guarantee": guarantee, "mean": mean, "worst": worst, "returns": found}


def _peer(python: Path, episodes: int, seed: int) -> float:
    order = {"environment": ENVIRONMENT, "episodes": episodes, "tests": TESTS, "seed": seed}
    command = [str(python), "-W", "ignore", str(Path(peer_sb3.__file__).resolve())]
    try:
        done = subprocess.run(
            command, input=json.dumps(order), capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidInput(f"{PEER} was not measured: {error}") from None
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InvalidInput(f"{PEER} was not measured: {python} says {why}")
    return float(json.loads(done.stdout.strip().splitlines()[-1])["return"])
