"""OFU-RL: optimal control of the most favourable model in a confidence set.

The confidence set is built from released matrices and public bounds only
(docs/papers/lq_jdp.md#confidence): the paper's radius contains a determinant of exact data
(#e1 on that page), which no finite epsilon allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import gammaincinv

from tacit.arrays import Array
from tacit.kernels.public.lq_optimism import Ellipsoid, best_dual_bound, descend
from tacit.planners.base import Context
from tacit.planners.lq_model import (
    LinearTask,
    Moments,
    MomentsPlanner,
    certainty_gains,
    within_unit,
)
from tacit.policies.linear import LinearPolicy
from tacit.publication import Publication

STARTS = 6
SURVEY = 12
KEPT = 2
ITERATIONS = 100
"""Descend a little from six starts, then to the end from the two best. Not measured: other numbers
(``benchmarks/control.py`` times a solve)."""
LEAST_EIGENVALUE_SHARE = 1e-3
"""Least eigenvalue of a released V, as a share of the largest. Not measured: others."""


class Solution(NamedTuple):
    """The most favourable model found, its cost, and whether the sets met at all."""

    theta: Array
    value: float
    met: bool


@dataclass(frozen=True)
class Regulariser:
    """What regularises the released matrices, and how far noise can move them.

    Attributes:
        shift: eta, added to the diagonal of the released M.
        least: bound from below on the regulariser that the data see (lambda_min).
        most: bound from above (lambda_max).
        target: nu, bound on the noise in N in the metric of the regulariser.
    """

    shift: float
    least: float
    most: float
    target: float


def plain_ridge(weight: float) -> Regulariser:
    """No noise: H_k = lambda I, L_k = 0."""
    return Regulariser(weight, weight, weight, 0.0)


def paper_ridge(
    moment_std: float,
    target_std: float,
    levels: int,
    sizes: tuple[int, int],
    users: int,
    beta: float,
) -> Regulariser:
    """The constants of docs/papers/lq_jdp.md#private-ofu-rl.

    ``sizes`` are D and n, stds are per node.
    """
    D, n = sizes
    bound = moment_std * math.sqrt(levels)
    bound *= 4.0 * math.sqrt(D) + math.sqrt(8.0 * math.log(4.0 * users / beta))
    spread = math.sqrt(2.0 * n * D) + math.sqrt(4.0 * math.log(2.0 * users / beta))
    return Regulariser(2 * bound, bound, 3 * bound, target_std * math.sqrt(levels / bound) * spread)


def tight_ridge(
    moment_std: float, target_std: float, sizes: tuple[int, int], updates: int, beta: float
) -> Regulariser:
    """The same from the true law of a prefix, with beta / 4 for each of the two over all updates.

    Isometric symmetric noise of scale s has E lambda_max <= s sqrt(2D) (Gaussian comparison) and is
    1-Lipschitz in its packed vector; the Frobenius norm of the other is a chi of n D degrees.
    """
    D, n = sizes
    each = beta / 4.0 / updates
    bound = moment_std * (math.sqrt(2.0 * D) + math.sqrt(2.0 * math.log(2.0 / each)))
    norm = target_std * math.sqrt(2.0 * float(gammaincinv(n * D / 2.0, 1.0 - each)))
    return Regulariser(2.0 * bound, bound, 3.0 * bound, norm / math.sqrt(bound))


def confidence(facts: LinearTask, M: Array, N: Array, ridge: Regulariser, beta: float) -> Ellipsoid:
    """The confidence set of released moments: radius from ln det(V / lambda_min), which is public.

    V is floored to be positive definite first; on the good event Z^T Z <= V - lambda_min I.
    """
    lam, U = np.linalg.eigh(M + ridge.shift * np.eye(facts.D))
    lam = np.maximum(lam, LEAST_EIGENVALUE_SHARE * max(float(lam[-1]), ridge.least))
    centre = U @ ((U.T @ N) / lam[:, np.newaxis])
    logdet = float(np.log(np.maximum(lam / ridge.least, 1.0)).sum())
    radius = facts.C_w * math.sqrt(2.0 * math.log(2.0 / beta) + facts.n * logdet)
    return Ellipsoid(centre, lam, U, radius + math.sqrt(ridge.most) + ridge.target)


def optimistic(
    facts: LinearTask, region: Ellipsoid, previous: Array | None, rng: np.random.Generator
) -> Solution:
    """The model of least optimal cost in the region and the unit ball, at the public start law.

    Zero, where it is inside, is the least of all: noise alone already costs tr(Q W) in every later
    step, and a plant that is still costs no more.
    """
    zero = np.zeros((facts.D, facts.n))
    if region.holds(zero):
        return Solution(zero, float(np.trace(facts.Q @ (facts.X1 + (facts.H - 1) * facts.W))), True)
    best = Solution(within_unit(region.centre), math.inf, False)
    tried = [
        Solution(start, descend(start, region, facts.setting, facts.H, SURVEY), True)
        for start in _starts(facts, region, previous, rng)
    ]
    for theta, _, _ in sorted(tried, key=lambda solution: solution.value)[:KEPT]:
        value = descend(theta, region, facts.setting, facts.H, ITERATIONS)
        if value < best.value:
            best = Solution(theta, value, True)
    return best


def _starts(
    facts: LinearTask, region: Ellipsoid, previous: Array | None, rng: np.random.Generator
) -> list[Array]:
    doubled, undriven = region.centre.copy(), region.centre.copy()
    doubled[facts.n :] *= 2.0
    undriven[facts.n :] = 0.0
    starts = [region.centre.copy(), np.zeros((facts.D, facts.n)), doubled, undriven]
    if previous is not None:
        starts.append(previous.copy())
    while len(starts) < STARTS:
        normal = rng.standard_normal((facts.D, facts.n))
        normal *= region.radius / np.linalg.norm(normal) / np.sqrt(region.lam)[:, np.newaxis]
        starts.append(region.centre + region.U @ normal)
    return starts


def certificate(facts: LinearTask, region: Ellipsoid) -> float:
    """A lower bound on the least cost in the region, by a dual problem.

    The problem is in docs/papers/lq_jdp.md#certificate. Every convex mixture of the ellipsoid and
    the unit ball is an ellipsoid that holds both sets' intersection, so any of them may stand in
    for the first; the best of a few is taken, and then multipliers are chosen step by step.
    """
    shares = 1.0 - np.linspace(0.0, 0.9, 7) ** 2
    bounds = [_bound(facts, _mixture(region, share), False) for share in shares]
    best = shares[int(np.argmax(bounds))]
    around = (best, min(best + 0.04, 1.0), best - 0.04)
    return max(_bound(facts, _mixture(region, share), True) for share in around)


def _mixture(region: Ellipsoid, share: float) -> Ellipsoid:
    """share (|Theta - That|_V / radius)^2 + (1 - share) |Theta|_F^2 <= 1 as an ellipsoid."""
    pull = share * region.lam / region.radius**2
    lam = pull + (1.0 - share)
    rotated = region.U.T @ region.centre
    centre = (pull / lam)[:, np.newaxis] * rotated
    square = 1.0 - (pull[:, np.newaxis] * rotated**2).sum() + (lam[:, np.newaxis] * centre**2).sum()
    return Ellipsoid(region.U @ centre, lam, region.U, math.sqrt(max(float(square), 1e-300)))


def _bound(facts: LinearTask, region: Ellipsoid, stepwise: bool) -> float:
    centre, lam, U, radius = region
    return best_dual_bound(centre, (U / lam) @ U.T, radius, facts.setting, facts.H, stepwise)


@dataclass(frozen=True)
class OfuPlanner(MomentsPlanner):
    """Optimism over the confidence set, gains capped.

    docs/papers/lq_jdp.md#ofu-rl and #private-ofu-rl, with #e1 and #e6 to #e8 put right.

    Attributes:
        ridge: regulariser and noise bounds.
        beta: failure probability.
        certify: also publish a lower bound on the value of every solve.
    """

    ridge: Regulariser
    beta: float
    certify: bool = False

    def _policy(
        self, facts: LinearTask, moments: Moments, previous: Publication | None, rng: Generator
    ) -> tuple[LinearPolicy, Context]:
        region = confidence(facts, moments.M, moments.N, self.ridge, self.beta)
        before = None if previous is None else previous.context["theta"]
        solution = optimistic(facts, region, before, rng)
        misses = 0 if previous is None else int(previous.context["misses"])
        context = {
            "theta": solution.theta,
            "radius": np.array(region.radius),
            "value": np.array(solution.value),
            "misses": np.array(misses + (not solution.met)),
        }
        if self.certify:
            context["bound"] = np.array(certificate(facts, region))
        return LinearPolicy(certainty_gains(facts, solution.theta, facts.gain)), context
