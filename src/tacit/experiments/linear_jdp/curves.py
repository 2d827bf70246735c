"""The five learners of the linear paper, with the constants of their theorems and with tuned ones.

The text gives neither K nor epsilon nor delta, and its code never learns: every learner plays the
first action, which is optimal there (docs/papers/linear_jdp.md#e20). So both ways are shown here,
on the problem the text names, with ties drawn at random and regret computed exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.experiments.figure import Curve, Named, Size

DELTA = 1e-5
EPSILON = 10.0

LEARNERS: Mapping[str, str] = {
    "lsvi-ucb": "LSVI-UCB",
    "lsvi-ucb++": "LSVI-UCB++",
    "dp-lsvi-batch": "Luyo et al.",
    "dp-lsvi-adaptive": "Ngo et al.",
    "dp-lsvi-ucb++": "DP-LSVI-UCB++",
}
PRIVATE = ("dp-lsvi-batch", "dp-lsvi-adaptive", "dp-lsvi-ucb++")

GRID = (0.0, 0.1, 0.3, 1.0)
TUNED: Mapping[str, float] = {
    "lsvi-ucb": 0.3,
    "lsvi-ucb++": 0.1,
    "dp-lsvi-batch": 0.0,
    "dp-lsvi-adaptive": 1.0,
    "dp-lsvi-ucb++": 0.0,
}
"""c of the bonus c H |phi|: the best of GRID for each learner, on runs that are not shown."""

SEED = 0
"""Root of the runs shown; the bonus scales were chosen at root 900."""


def instances(size: Size) -> tuple[Named, ...]:
    """synthetic-linear with the alpha_h of seeds 0, 1, 2, ..."""
    return tuple(Named("synthetic-linear", {"seed": seed}) for seed in range(size.instances))


def by_theory(name: str, size: Size, epsilon: float = EPSILON) -> Curve:
    """Constants as published, noise included."""
    private = {"epsilon": epsilon, "delta": DELTA, "calibration": "paper"}
    parameters = private if name in PRIVATE else {}
    return _curve(f"theory {name}", f"{LEARNERS[name]}, theory", name, parameters, size)


def tuned(name: str, size: Size, epsilon: float = EPSILON) -> Curve:
    """Tight noise, tuned bonus."""
    private = {"epsilon": epsilon, "delta": DELTA} if name in PRIVATE else {}
    parameters = {**private, "bonus_scale": TUNED[name]}
    key = f"tuned {name}" if epsilon == EPSILON else f"tuned {name}@{epsilon:g}"
    return _curve(key, f"{LEARNERS[name]}, tuned", name, parameters, size)


def ours(size: Size, epsilon: float = EPSILON) -> Curve:
    """tacit-linear at the same guarantee; it has no bonus to tune."""
    parameters = {"epsilon": epsilon, "delta": DELTA}
    key = "tacit-linear" if epsilon == EPSILON else f"tacit-linear@{epsilon:g}"
    return _curve(key, "tacit-linear", "tacit-linear", parameters, size)


def _curve(key: str, label: str, name: str, parameters: Mapping[str, Any], size: Size) -> Curve:
    return Curve(
        key=key,
        label=label,
        agent=Named(name, parameters),
        problems=instances(size),
        episodes=size.episodes,
        runs=size.runs,
        seed=SEED,
    )


def notes(size: Size) -> list[str]:
    """What a reader should know."""
    return [
        "reward unknown: with the reward revealed, a learner that ignores all data has regret 0",
        f"bonus scales were chosen from {', '.join(f'{c:g}' for c in GRID)} on other runs",
        "the paper plots |cumulated (H/2 - sampled reward)| of a program in which every learner "
        "plays action 0 (docs/papers/linear_jdp.md#e20 and #e21); that plot is not reproduced",
    ]
