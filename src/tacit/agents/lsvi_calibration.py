"""Noise, ridge and widths of private LSVI.

Tight: how a budget is divided between Gram matrices and answers (docs/papers/linear_jdp.md#tight).
Paper: constants as in the papers or their public code, all of them functions of the noise that is
added; corrected ones are those of more noise. These are no recommendation: at any size that can be
run the bonus exceeds the largest possible value by orders of magnitude
(docs/papers/linear_jdp.md#e17).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.planners.lsvi import PlusBonus
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.counters.base import Strategy
from tacit.privacy.curator.declared_answers import Answers, Price, grid_rounding
from tacit.statistics.linear import CuratedTransitions
from tacit.task.task import Task

GRAM_SHARE = 0.5
"""Share of the budget for the Gram matrices, before the joint price gives some of it back. Not
measured: others."""

ROUNDING_MARGIN = 2e-5
"""More noise by this share where the counter rounds its rows: enough for ten million users."""


@dataclass(frozen=True, eq=False)
class Targets:
    """What will be asked: by target the range R_h [H], and whether r is part of it."""

    ranges: Mapping[str, Array]
    rewards: Mapping[str, bool]

    @property
    def questions(self) -> int:
        """Questions per round: stages with a positive range, over all targets."""
        return sum(int((ranges > 0).sum()) for ranges in self.ranges.values())

    @property
    def least_range(self) -> float:
        """The smallest positive range."""
        return float(min(ranges[ranges > 0].min(initial=1.0) for ranges in self.ranges.values()))

    def load(self) -> Array:
        """Sum over targets of (R / max(R, 1))^2 [H]."""
        shares = [(ranges / np.maximum(ranges, 1.0)) ** 2 for ranges in self.ranges.values()]
        load: Array = np.sum(shares, axis=0)
        return load


def one_target(horizon: int) -> Targets:
    """r + V in [0, H - h] (h from 0), at every stage."""
    return Targets({"value": np.arange(horizon, 0, -1.0)}, {"value": True})


def three_targets(task: Task, stage_ranges: bool = True) -> Targets:
    """V, its pessimistic twin and V^2; r is part of the first two unless it is revealed.

    V is in [0, H - h] (h from 1), or anywhere in [0, H] except that it is 0 after the last stage.
    """
    unknown = "reward" not in task.known
    before = np.arange(task.horizon - 1, -1, -1.0)
    if not stage_ranges:
        before = np.where(before > 0.0, float(task.horizon), 0.0)
    ranges = before + 1.0 if unknown else before
    return Targets(
        {"hat": ranges, "check": ranges, "square": before**2},
        {"hat": unknown, "check": unknown, "square": False},
    )


@dataclass(frozen=True, eq=False)
class Shares:
    """The least noise for a budget, before it is known how often questions will be asked.

    Attributes:
        gram_std: noise of a node, per packed entry.
        answer_unit: noise of an answer of range 1 that is asked once.
        price: how the two add up.
    """

    gram_std: float
    answer_unit: float
    price: Price

    def answers(self, targets: Targets, rounds: int) -> Answers:
        """The answers, each to be asked that many times."""
        scale = self.answer_unit * math.sqrt(rounds)
        stds = {name: scale * np.maximum(r, 1.0) for name, r in targets.ranges.items()}
        return Answers(targets.ranges, stds, rounds, targets.rewards)


def tight_shares(
    statistic: CuratedTransitions,
    task: Task,
    strategy: Strategy,
    targets: Targets,
    epsilon: float,
    delta: float,
) -> Shares:
    """Split the budget in two, then spend what the joint price leaves over on all noise alike."""
    if delta <= 0.0:
        raise InvalidInput(f"delta = {delta:g}, but gaussian noise needs a delta > 0")
    mu2 = (gaussian_mu(epsilon, delta) / task.participations) ** 2
    H, w = task.horizon, statistic.largest_weight
    price = Price.joint(statistic.pairs, w)
    price = price.rounded(grid_rounding(statistic, task, targets.least_range))
    gram = w * strategy.column_norm() * math.sqrt(2 * H / (GRAM_SHARE * mu2))
    unit = w * math.sqrt(targets.questions / ((1 - GRAM_SHARE) * mu2))
    cost = price.total((strategy.column_norm() / gram) ** 2, targets.load() / unit**2)
    slack = 1e-7 if strategy.rounding_sensitivity(1, 1) == 0.0 else ROUNDING_MARGIN
    factor = math.sqrt(cost / mu2) * (1 + slack)
    return Shares(factor * gram, factor * unit, price)


def spectral_shift(
    gram_std: float, strategy: Strategy, dimension: int, horizon: int, users: int, beta: float
) -> float:
    """What must be added so that the noise leaves all matrices positive, with probability 1 - beta.

    s sqrt(Lv) (2 sqrt d + sqrt(2 log(2 H K / beta))), s = gram_std / sqrt 2
    (docs/papers/linear_jdp.md#tight).
    """
    s = gram_std / math.sqrt(2) * strategy.column_norm()
    return s * (2 * math.sqrt(dimension) + math.sqrt(2 * math.log(2 * horizon * users / beta)))


@dataclass(frozen=True)
class Sizes:
    """d, H, K and the failure probability."""

    d: int
    H: int
    K: int
    beta: float


def zcdp(epsilon: float, delta: float) -> float:
    """rho = (sqrt(L + eps) - sqrt L)^2, L = log(1 / delta): the papers' conversion."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


@dataclass(frozen=True)
class PlusConstants:
    """DP-LSVI-UCB++: ridge lam~, noise bound L and the bonuses, O(.) constants 1."""

    ridge: float
    noise_bound: float
    bonus: PlusBonus


def plus_constants(sizes: Sizes, rho: float) -> PlusConstants:
    """lam~, L, beta^, beta-bar and beta of docs/papers/linear_jdp.md#published-constants."""
    d, H, K, p = sizes.d, sizes.H, sizes.K, sizes.beta
    ridge = math.sqrt(8 * d * H * K / rho) * (2 + (math.log(5 * H / p) / d) ** (2 / 3))
    bound = 4 * H * math.sqrt(d * H * K / rho * math.log(10 * d * K * H / p))
    inside = H * K**4 * bound**2 * d / (p * ridge)
    logs = math.log1p(inside), math.log(inside)
    return PlusConstants(ridge, bound, PlusBonus.theorem(d, H, ridge, bound, logs))


@dataclass(frozen=True)
class PaperConstants:
    """What Luyo's and Ngo's algorithms run with: rounds of answers, noise, ridge and bonus."""

    rounds: int
    gram_std: float
    target_std: float
    ridge: float
    bonus: float


def batch_count(sizes: Sizes, epsilon: float) -> int:
    """B = ceil((K eps)^(2/5) d^(3/5) H^(1/5)), at most one batch per user."""
    wanted = (sizes.K * epsilon) ** 0.4 * sizes.d**0.6 * sizes.H**0.2
    return int(min(math.ceil(wanted), sizes.K))


def batch_constants(
    sizes: Sizes, epsilon: float, delta: float, factor: float = 1.0
) -> PaperConstants:
    """Luyo's B, sigma_Lam, sigma_u, the shift lambda + c_K + Y and the bonus factor.

    Constants of the public code (docs/papers/linear_jdp.md#luyo); noise is ``factor`` times theirs.
    """
    d, H, K, p = sizes.d, sizes.H, sizes.K, sizes.beta
    B = batch_count(sizes, epsilon)
    B0 = math.ceil(math.log2(B) + 1)
    log = math.log2(32 * H * B0 * B / delta)
    gram = factor * (128 / epsilon * math.sqrt(B * H * B0) * log)
    target = factor * (128 / (epsilon * H) * math.sqrt(H * B) * log)
    Y = gram * B0 * (4 * math.sqrt(d) + 2 * math.log(6 * K * H / p))
    ridge = d + d * Y
    C = target * (math.sqrt(d) + 2 * math.sqrt(math.log(6 * K * H * d / p)))
    U = max(1.0, (2 * H * math.sqrt(d * K) + C) / ridge)
    chi = 242 * 18 * K**2 * d * U * H / p
    return PaperConstants(B, gram, target, ridge + Y, 24 * H * math.sqrt(d * ridge) * math.log(chi))


def adaptive_constants(
    sizes: Sizes, rho: float, levels: int, factor: float = 1.0
) -> PaperConstants:
    """Ngo's lam~, N_max, node noise at rho / 2, target variance 6 H^2 N_max / rho, bonus factor.

    Constants of the public code; N_max as in the paper (docs/papers/linear_jdp.md#ngo). Noise, and
    so lam~ and lam_y, are ``factor`` times theirs.
    """
    d, H, K, p = sizes.d, sizes.H, sizes.K, sizes.beta
    lam = math.log(K) if K > 1 else 1.0
    lam *= ((6 * math.sqrt(d) + 1) + 2 * math.log(3 * K * H / p)) / math.sqrt(2 * rho)
    growth = math.log1p(K / (lam * d))
    switches = max(1, math.ceil(d * H / math.log(2) * growth))
    lam *= factor
    lam_y = factor * math.sqrt(d * H**2 * growth**2 * math.log(3 * K * H / p) / rho)
    U = max(1.0, (2 * H * math.sqrt(d * K) + lam_y) / lam)
    chi = 254 * 162 * K**4 * d * U * H / p
    bonus = 5 * H**2 * math.sqrt(d * lam) * math.log(chi) + 6 * d * H * math.sqrt(math.log(chi))
    gram, target = math.sqrt(2 * H * levels / rho), H * math.sqrt(6 * switches / rho)
    return PaperConstants(switches, factor * gram, factor * target, 2 * lam, bonus)
