"""The values of LDP-OBI by whichever widths are chosen."""

from __future__ import annotations

from typing import NamedTuple

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.obi import (
    CellNoise,
    obi_induction,
    obi_precision,
    optimistic_reward,
    transition_bonus,
)
from tacit.kernels.obi_tight import obi_tails, reward_bound, tight_induction, value_bound

PUBLISHED, CORRECTED, TIGHT = range(3)

WIDTHS = {"published": PUBLISHED, "corrected": CORRECTED, "tight": TIGHT}
"""Widths by name, as kernels know them."""


class Rule(NamedTuple):
    """How optimistic LDP-OBI is: which widths, shift of denominators, failure probability."""

    width: int
    alpha: float
    beta: float


@kernel
def obi_values(
    reward: Array,
    visits: Array,
    transitions: Array,
    noise: CellNoise,
    n: int,
    rule: Rule,
    Q: Array,
    V: Array,
) -> None:
    """Fill Q [H, S, A] and V [H+1, S] from the release of n reports."""
    H, S, A = Q.shape
    if rule.width == TIGHT:
        tails = obi_tails(noise, n, (S, A, H), rule.beta)
        tight_induction(reward, visits, transitions, tails, Q, V)
    else:
        printed = rule.width == PUBLISHED
        precision = obi_precision(noise, n, (S, A, H), rule.alpha, rule.beta, printed)
        obi_induction(reward, visits, transitions, precision, printed, Q, V)


@kernel
def first_bonus(noise: CellNoise, n: int, sizes: tuple[int, int, int], rule: Rule) -> float:
    """Bonus of step 1 for a pair (s, a) that all n users visited at all of their steps.

    For the tight widths, in the direction of one state worth H - 1 and the others nothing.
    """
    S, A, H = sizes
    if rule.width == TIGHT:
        tails = obi_tails(noise, n, sizes, rule.beta)
        bonus = reward_bound(0.0, float(n * H), tails)
        if H > 1:
            most = H - 1.0
            spread = max(1.0, S - 1.0) * most**2
            bonus += value_bound(0.0, float(n * (H - 1)), S, most, spread, tails)
        return bonus
    printed = rule.width == PUBLISHED
    precision = obi_precision(noise, n, sizes, rule.alpha, rule.beta, printed)
    bonus = optimistic_reward(0.0, n * H + precision.alpha * precision.c2, precision)
    weight = H if printed else H - 1
    if weight > 0:
        dp = n * (H - 1) + precision.alpha * precision.c3
        bonus += weight * transition_bonus(dp, S, precision)
    return bonus
