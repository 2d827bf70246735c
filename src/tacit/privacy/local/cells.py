"""What one-cell reports are added to: the sums, what is released of them, and the law of its noise.

See docs/papers/tabular_ldp.md#b3 and B4 there.
"""

from __future__ import annotations

from tacit.kernels.public.questions import KINDS, OWN_VARIANCE, WEIGHT_STEPS, Weighing
from tacit.privacy.finite import best_oracle
from tacit.privacy.finite.oracle import Oracle
from tacit.statistics import Block, Layout
from tacit.statistics.one_step import EachStep, OneStep
from tacit.task.task import Task

Oracles = tuple[Oracle, Oracle, Oracle]
"""One for each kind of question: whole steps, moves, rewards."""


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
