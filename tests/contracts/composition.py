"""How the cost of coming back adds up, worked out without the library's accounting."""

import math

import numpy as np
from scipy import optimize, stats

from contracts.randomizer import subset_law
from tacit.privacy.finite.subset import SubsetSelection


def gaussian_delta(mu: float, epsilon: float) -> float:
    """P(L > eps) - e^eps Q(L > eps) for two unit normals mu apart; L is the log ratio."""
    crossing = epsilon / mu + mu / 2
    return float(
        stats.norm.sf(crossing - mu) - math.exp(epsilon + stats.norm.logsf(crossing))
    )  # fmt: skip


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Where that is delta."""
    high = mu**2 / 2 + mu * 40
    return float(
        optimize.brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, high, xtol=1e-13, rtol=1e-13)
    )


def fresh_noise(mu: float, times: int, delta: float) -> float:
    """Every participation sends a report of its own: the squares of mu add up."""
    return gaussian_epsilon(math.hypot(*[mu] * times), delta)


def one_draw(mu: float, times: int, delta: float) -> float:
    """Several contributions may meet under one draw of noise: the distances add up."""
    return gaussian_epsilon(math.fsum([mu] * times), delta)


def pure_delta(epsilon: float, at: float) -> float:
    """Of two outcomes as far apart as a pure epsilon allows, at a lower level."""
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    return likely - math.exp(at) * (1.0 - likely)


def bits_delta(bits: int, per_bit: float, at: float) -> float:
    """Of that many bits that all differ, each told truthfully with odds e^per_bit."""
    truth = 1.0 / (1.0 + math.exp(-per_bit))
    same = np.arange(bits + 1)
    first, second = (stats.binom.pmf(same, bits, p) for p in (truth, 1.0 - truth))
    return float(np.maximum(first - math.exp(at) * second, 0.0).sum())


def repeated_delta(oracle: SubsetSelection, times: int, at: float) -> float:
    """Of that many reports on two cells, by all combinations of their outputs."""
    first, second = (np.array([*map(float, subset_law(oracle, x).values())]) for x in (0, 1))
    one, two = np.ones(1), np.ones(1)
    for _ in range(times):
        one, two = np.outer(one, first).ravel(), np.outer(two, second).ravel()
    return float(np.maximum(one - math.exp(at) * two, 0.0).sum())


def counts_l1(horizon: int) -> float:
    """Of visit counts: H leave and H enter for visits and for rewards, H - 1 for transitions."""
    return 2.0 * (horizon + horizon + (horizon - 1))


def counts_l2(horizon: int) -> float:
    """The same where all steps are in one cell."""
    return math.sqrt(2.0 * (horizon**2 + horizon**2 + (horizon - 1) ** 2))


def subset_loss(oracle: SubsetSelection) -> float:
    """Of a report on one of D cells that names some of them, from its whole numbers."""
    own, size = oracle.own, oracle.size
    return math.log(own * (oracle.domain - size)) - math.log((2**64 - own) * size)
