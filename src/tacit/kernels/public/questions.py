"""Which step a user is asked about and how, and how much the answer weighs: public numbers only.

Nothing here may import rollout, counts or sums: a planner uses it.
"""

from __future__ import annotations

from typing import NamedTuple

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.sampling import draw

STEP, MOVE, REWARD = 0, 1, 2
"""Kinds of questions: about (s, rho, s'), (s, s') or (s, rho)."""

KINDS = 3

WEIGHT_STEPS = 2**14
"""Weights are whole steps of this fraction, so that weighted sums are exact in any order."""

OWN_VARIANCE = 0.25
"""Largest variance of an indicator: what a user's own luck adds to a count, per visit."""

_CIRCLE = 2**31
_GOLDEN = 1327217885
"""The circle divided by the golden ratio: its multiples fill it as evenly as can be."""


class Weighing(NamedTuple):
    """How reports are weighted against each other.

    ``moves`` and ``rewards`` hold the noise variance of one report's count, for joint cells and for
    the question about that alone; ``most`` scales the largest weight to 1.
    """

    moves: tuple[float, float]
    rewards: tuple[float, float]
    most: float


@kernel
def report_weight(occupancy: int, noise: float, weighing: Weighing) -> int:
    """Weight of a report about a state that is met with that chance, both in whole steps.

    Signal d over variance d / 4 + v of one report: the matched filter of
    docs/papers/tabular_ldp.md#b4. At least one step.
    """
    d = occupancy / WEIGHT_STEPS
    return max(1, int(weighing.most * d / (OWN_VARIANCE * d + noise) * WEIGHT_STEPS + 0.5))


@kernel
def in_turn(coin: int, H: int) -> int:
    """The question of a report's id where nothing else was published: all steps in turn."""
    h = coin % H
    return KINDS * h + (REWARD if h == H - 1 else STEP)


@kernel
def pick_question(asked: Array, coin: int) -> int:
    """The question of a report's id where cumulative shares ``asked`` [3 H] were published.

    Ids are spread over the shares by multiples of the golden ratio: any run of consecutive ids asks
    in these shares, nearly exactly.
    """
    return draw(asked, (coin * _GOLDEN & (_CIRCLE - 1)) * (1.0 / _CIRCLE))


@kernel
def pick_questions(asked: Array, H: int, coins: IntArray, numbers: IntArray) -> None:
    """The questions of many ids; ``asked`` is empty where nothing was published."""
    for i in range(coins.shape[0]):
        if asked.shape[0]:
            numbers[i] = pick_question(asked, coins[i])
        else:
            numbers[i] = in_turn(coins[i], H)
