"""Planners of PUCB, Private-UCB-VI, Private-UCB-PO and DP-UCBVI: published bonuses on noisy counts.

Each turns the law of the noise in a release into a bound e that holds for all cells and releases
together, and that into a bonus; planning is the same. The bonus scale c multiplies every width, of
sampling (the square roots) and of noise (e), wherever it enters; 1 is where the theorem is stated.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public.joint_tables import (
    Bonus,
    bonus_induction,
    bonus_model,
    consistent_counts,
)
from tacit.kernels.public.obi import tail
from tacit.planners.base import Context, Streams, ValuePlanner, least_count
from tacit.planners.vtr import Rate, mirror_descent
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy
from tacit.publication import Publication
from tacit.release import NoiseLaw, Release
from tacit.task.task import Task, table_sizes


def noise_bound(law: NoiseLaw, block: str, cells: float, beta: float) -> float:
    """What the noise of that many cells exceeds with probability beta at most (sub-gamma tail)."""
    variance = float(law.variance(block).max())
    linear = law.scale(block) if law.name == "laplace" and variance > 0.0 else 0.0
    return tail(variance, linear, math.log(2.0 * cells / beta))


@dataclass(frozen=True, kw_only=True)
class JointTablePlanner(ValuePlanner):
    """What the four share.

    Attributes:
        bonus_scale: c.
        beta: failure probability.
        releases: how many there will be.
        paper: values are capped at H, as published; else at what is left of the episode.
    """

    bonus_scale: float
    beta: float
    releases: int
    paper: bool

    @abstractmethod
    def bonus(self, task: Task, law: NoiseLaw) -> Bonus:
        """The numbers of this algorithm for a release with noise of that law."""

    def pairs(self, task: Task) -> float:
        """S A, whatever is allowed."""
        return float(task.sizes["states"] * task.sizes["actions"])

    def steps(self, task: Task) -> float:
        """T = K H."""
        return float(task.users * task.horizon)

    def noise(self, task: Task, law: NoiseLaw, block: str) -> float:
        """c e: the noise of all tables of that kind, in all releases."""
        next_states = task.sizes["states"] if block == "transitions" else 1
        cells = self.releases * task.horizon * self.pairs(task) * next_states
        return self.bonus_scale * noise_bound(law, block, cells, self.beta)

    def slack(self, task: Task, law: NoiseLaw) -> float:
        """c e, of visits and of transitions alike."""
        return max(self.noise(task, law, name) for name in ("visits", "transitions"))

    def counts(self, task: Task, release: Release) -> tuple[Array, Array]:
        """N(s, a) [H, X] and N(s, a, s') [H, X, S], as planned with."""
        H, X = task.horizon, len(task.pairs.action)
        return (
            release.blocks["visits"].reshape(H, X),
            release.blocks["transitions"].reshape(H, X, -1),
        )

    def evaluate(self, task: Task, release: Release, weights: Array) -> Array:
        """Optimistic Q [H, X]; ``weights`` without rows means the greedy value."""
        (H, S, _), pairs = table_sizes(task), task.pairs
        visits, transitions = self.counts(task, release)
        P, R, spread = np.empty((H, len(pairs.action), S)), np.empty(visits.shape), visits.copy()
        reward = release.blocks["reward"].reshape(visits.shape)
        bonus = self.bonus(task, release.law)
        bonus_model(pairs.first, reward, visits, transitions, bonus, P, R, spread)
        caps = np.full(H, float(H)) if self.paper else np.arange(H, 0.0, -1.0)
        Q, V = np.empty(visits.shape), np.empty((H + 1, S))
        end = task.end_reward
        bonus_induction(pairs.first, pairs.action, P, R, spread, weights, caps, end, Q, V)
        return Q

    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Greedy in the optimistic values."""
        return self.evaluate(task, release, np.zeros((0, 1, 1))), {}

    def break_even(self, task: Task, law: NoiseLaw, target: float) -> int | None:
        """Visits of a pair at a stage after which its bonus is at most ``target``, if ever.

        Without the part that grows with the variance of the next values.
        """
        b = self.bonus(task, law)

        def small(count: int) -> bool:
            D = max(count + b.shift, 1.0)
            width = b.root / math.sqrt(max(D - b.back, 1.0)) + b.one / D + b.two / D**2
            return count >= b.least and width <= target

        return least_count(small, 10**15)


@dataclass(frozen=True, kw_only=True)
class PucbPlanner(JointTablePlanner):
    """PUCB (docs/papers/pucb.md#algorithm).

    Bonus (H + 1) sqrt(2 L / max(N - E, 1)) + (1 + S H) (3 E / N + 2 E^2 / N^2), L = ln(4 T / beta);
    pairs with N < 2 E are unknown.

    Attributes:
        epsilon: for the published E = (3 / eps) H ln((2 S A H + S^2 A H) / beta) ln(K)^(5/2), over
            the factor by which noise was raised; None where E comes from the law of the noise.
    """

    epsilon: float | None

    def error(self, task: Task, law: NoiseLaw) -> float:
        """c E; 0 before the first release."""
        slack = self.slack(task, law)
        if self.epsilon is None or slack == 0.0:
            return slack
        cells = self.pairs(task) * task.horizon
        logs = math.log((2.0 + task.sizes["states"]) * cells / self.beta)
        logs *= math.pow(math.log(task.users), 2.5)
        return self.bonus_scale * 3.0 / self.epsilon * task.horizon * logs

    def bonus(self, task: Task, law: NoiseLaw) -> Bonus:
        """The published one."""
        H, S, c = task.horizon, task.sizes["states"], self.bonus_scale
        E = self.error(task, law)
        L = math.log(4.0 * self.steps(task) / self.beta)
        root, noise = c * (H + 1) * math.sqrt(2.0 * L), 1.0 + S * H
        least = max(2.0 * E, 1.0)
        return Bonus(0.0, least, root, E, 3.0 * noise * E, 2.0 * noise * E**2)


class PrivateUcbPlanner(JointTablePlanner):
    """Private-UCB-VI (docs/papers/private_ucb.md#algorithm).

    Means are sums over D = max(N + E1, 1). Bonus (1 + H) L / sqrt(D) + (3 E1 + H (S E2 + 2 E1)) / D
    with L = sqrt(2 ln(6 S A T / beta)); E1 bounds the noise of visits and rewards, E2 that of
    transitions.
    """

    def bonus(self, task: Task, law: NoiseLaw) -> Bonus:
        """The published one."""
        H, S, c = task.horizon, task.sizes["states"], self.bonus_scale
        E1, E2 = (self.noise(task, law, name) for name in ("visits", "transitions"))
        L = math.sqrt(2.0 * math.log(6.0 * self.pairs(task) * self.steps(task) / self.beta))
        one = 3.0 * E1 + H * (S * E2 + 2.0 * E1)
        return Bonus(shift=E1, root=c * (1.0 + H) * L, one=one)


@dataclass(frozen=True, kw_only=True)
class PrivateUcbMirrorPlanner(PrivateUcbPlanner):
    """Private-UCB-PO: exponential weights on the same values (docs/papers/private_ucb.md#po).

    Attributes:
        rate: step sizes, "tight" or as in the "paper".
    """

    rate: Rate

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """One exponential step per user served with the last Q, then evaluate the new policy."""
        pairs = task.pairs
        flags = pairs.spread(np.ones((1, len(pairs.action))), 0.0)
        flags[:, ~flags.any(axis=(0, 2))] = 1.0  # nobody acts where an episode has ended
        allowed = np.broadcast_to(flags, table_sizes(task))
        weights, logits = mirror_descent(task, release, previous, self.rate, allowed)
        Q = pairs.spread(self.evaluate(task, release, weights), 0.0)
        context = {"Q": Q, "logits": logits, "users": np.asarray(release.users)}
        return StochasticPolicy(weights), context


class DpUcbviPlanner(JointTablePlanner):
    """DP-UCBVI: Bernstein bonuses on consistent counts (docs/papers/dp_ucbvi.md#algorithm).

    With N the consistent counts, E = 4 e and I = ln(30 H S A K / beta):
    2 sqrt(I Var(V) / N) + sqrt(2 I / N) + 20 H S E I / N + 4 sqrt(I / N) sqrt(sum P min(H^2, M))
    and M = m^2 (H^3 S A I^2 / n' + H^4 S^4 A^2 E^2 I^4 / n'^2 + H^6 S^4 A^2 I^4 / n'^2), n' the
    count of the next state. As published m = 1000, which leaves H^2; tight takes 1, and 1 for 20.
    """

    def counts(self, task: Task, release: Release) -> tuple[Array, Array]:
        """Noisy counts made consistent."""
        visits, transitions = super().counts(task, release)
        totals, cells = np.empty(visits.shape), np.empty(transitions.shape)
        slack = self.slack(task, release.law)
        consistent_counts(slack, visits, transitions, totals, cells)
        return totals, cells

    def bonus(self, task: Task, law: NoiseLaw) -> Bonus:
        """The published one."""
        H, S, A = (float(n) for n in table_sizes(task))
        c, E = self.bonus_scale, 4.0 * self.slack(task, law)
        first, second = (20.0, 1000.0) if self.paper else (1.0, 1.0)
        log = math.log(30.0 * H * S * A * task.users / self.beta)
        # the kernel has one factor for both roots of variances: 2 here, and 4 there
        after = 4.0 * second**2 * (H**4 * E**2 + H**6) * S**4 * A**2 * log**4
        return Bonus(
            root=c * math.sqrt(2.0 * log),
            one=first * H * S * E * log,
            spread=c * 2.0 * math.sqrt(log),
            most=2.0 * H,
            next=4.0 * second**2 * H**3 * S * A * log**2,
            after=after,
        )
