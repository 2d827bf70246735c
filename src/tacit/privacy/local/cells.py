"""What one-cell reports are added to: the sums, what is released of them, and the law of its noise.

See docs/papers/tabular_ldp.md#b3 and B4 there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.arrays import Array
from tacit.kernels.public.questions import KINDS, OWN_VARIANCE, WEIGHT_STEPS, Weighing
from tacit.privacy.finite import best_oracle
from tacit.privacy.finite.oracle import Oracle
from tacit.statistics import Block, Layout
from tacit.statistics.one_step import EachStep, OneStep
from tacit.task.task import Task

Oracles = tuple[Oracle, Oracle, Oracle]
"""One for each kind of question: whole steps, moves, rewards."""


@dataclass(frozen=True)
class CellLaw:
    """Variance of the estimates for users outside a cell: v times the sum of squared weights.

    A user inside a cell adds p (1-p) / (p-q)^2 instead of v; which users are inside is not public,
    so this is the law but for that correction (docs/papers/tabular_ldp.md#b3). Cells of one (s, a)
    share one variance: the arrays have the shape of the block without its cells. Of the ``*_unit``,
    which are ratios, no law is stated.
    """

    name: str
    per_report: Mapping[str, float]
    variances: Mapping[str, Array]

    def scale(self, block: str) -> float:
        """Standard deviation of one report of weight 1."""
        return math.sqrt(self.per_report[block])

    def variance(self, block: str) -> Array:
        """Of every cell, by (s, a)."""
        return self.variances[block]


def best_oracles(epsilon: float, domains: tuple[int, int, int]) -> Oracles:
    """The oracle of least variance at epsilon for each kind of question."""
    step, move, reward = (best_oracle(epsilon, cells) for cells in domains)
    return step, move, reward


def weighing(oracles: Oracles, places: int) -> Weighing:
    """The noise in one count by kind of question, and the scale of weights that follows.

    A count of moves adds up two cells of a whole step, a count of rewards as many as places can
    follow.
    """
    step, move, reward = (oracle.variance_outside for oracle in oracles)
    moves, rewards = (2 * step, move), (places * step, reward)
    return Weighing(moves, rewards, OWN_VARIANCE + min(*moves, *rewards))


def layouts(statistic: OneStep | EachStep, task: Task) -> tuple[Layout, Layout]:
    """Of releases, and of the sums behind them."""
    H, places, pairs = statistic.horizon, statistic.places, task.pairs.shape()
    G, every = (1, 1) if task.homogeneous else (max(H - 1, 1), H)
    shapes = {"moves": (G, *pairs), "rewards": (every, *pairs)}
    outcomes = {"moves": len(places.state), "rewards": 2}
    w, w2 = 1.0 / WEIGHT_STEPS, 1.0 / WEIGHT_STEPS**2
    released = [
        *(Block(name, (*shape, outcomes[name])) for name, shape in shapes.items()),
        *(Block(f"{name}_unit", shape) for name, shape in shapes.items()),
        Block("first", (places.live,)),
        Block("first_users", (1,)),
    ]
    summed = [Block(name, (2, *shape, outcomes[name]), w) for name, shape in shapes.items()]
    for what, unit in (("weight", w), ("square", w2), ("seen", w2)):
        summed += [Block(f"{name}_{what}", (2, *shape), unit) for name, shape in shapes.items()]
    summed += [Block("first", (KINDS, places.live)), Block("first_users", (KINDS,))]
    return Layout(released), Layout(summed)
