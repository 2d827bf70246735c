"""Laplace, Gaussian or bounded noise on the whole contribution vector, added by the user.

One joint charge covers everything a user sends: the statistic is asked for its sensitivity with
every block divided by its noise scale, which gives epsilon (Laplace, L1) or mu (Gaussian, L2)
directly. For bounded noise the privacy losses of all cells that can move are convolved. No budget
is split by hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels.noise import add_scaled
from tacit.privacy import accounting, bounded
from tacit.privacy.base import Query, Secret, require_room
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.local.whole import WholeReport
from tacit.privacy.noise import GridLaw, Kind, Noise
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Norm, Relation, Statistic
from tacit.statistics.counts import VisitCounts
from tacit.task import Task
from tacit.validate import number

GRID = 2.0**-24
"""Reports are whole steps of this size, in every block."""

FINE: dict[Kind, int] = {"laplace": 64, "gaussian": 2**16, "bounded": 64}
"""Least noise scale in steps. Discrete Laplace noise is exact on any grid, only its variance is
rounded; the delta of discrete Gaussian noise is off by a relative 1 / steps^2, here below 1e-9.
Bounded noise is only ever a rounded draw, which is exact on any grid."""

TAIL: dict[Kind, float] = {"laplace": 64.0, "gaussian": 12.0, "bounded": 1.0}
"""In scales: noise beyond it has a chance below 1e-27, so a report beyond it was not made by us."""

_SCALE_NAMES: dict[Kind, str] = {"laplace": "scale", "gaussian": "std", "bounded": "radius"}

_VARIANCES: dict[Kind, float] = {"laplace": 2.0, "gaussian": 1.0, "bounded": bounded.VARIANCE}
"""Variance of noise of scale 1."""


@dataclass(frozen=True)
class AdditiveLaw:
    """Independent noise of one kind, one scale per block, summed over that many users."""

    name: Kind
    scales: Mapping[str, float]
    users: int

    def scale(self, block: str) -> float:
        """Scale of one user's noise."""
        return self.scales[block]

    def variance(self, block: str) -> Array:
        """Exact variance of every entry of a block."""
        one = self.scales[block] ** 2 * _VARIANCES[self.name]
        return np.asarray(self.users * one)


def laplace_scales(
    statistic: Statistic, epsilon: float, participations: int = 1
) -> dict[str, float]:
    """The least Laplace scale b = m L1 / epsilon, equal in all blocks, for pure epsilon."""
    epsilon = number(epsilon, "epsilon", low=0.0, low_open=True)
    b = participations * statistic.sensitivity("l1", Relation.REPLACE_ONE) / epsilon
    while participations * _laplace_epsilon(statistic, _equal(statistic, b)) > epsilon:
        b = math.nextafter(b, math.inf)
    return _equal(statistic, b)


def gaussian_scales(
    statistic: Statistic, epsilon: float, delta: float, participations: int = 1
) -> dict[str, float]:
    """The least Gaussian standard deviation, equal in all blocks, for (epsilon, delta)."""
    mu = accounting.gaussian_mu(epsilon, delta) / math.sqrt(participations)
    sigma = statistic.sensitivity("l2", Relation.REPLACE_ONE) / mu
    while _gaussian_mu(statistic, _equal(statistic, sigma)) > mu:
        sigma = math.nextafter(sigma, math.inf)
    return _equal(statistic, sigma)


def bounded_scales(
    statistic: VisitCounts, epsilon: float, delta: float, participations: int = 1
) -> dict[str, float]:
    """The least radii for (epsilon, delta) in the published proportion."""
    ratio = math.sqrt(statistic.layout.blocks[0].shape[1])
    radius = bounded.calibrate_radius(epsilon, delta, statistic.horizon, ratio, participations)
    return proportional_radii(statistic, radius)


def proportional_radii(statistic: VisitCounts, radius: float) -> dict[str, float]:
    """R1 for rewards and visits, R2 = sqrt(S) R1 for transitions.

    See docs/papers/tabular_ldp.md#randomizers.
    """
    states = statistic.layout.blocks[0].shape[1]
    return {**_equal(statistic, radius), "transitions": math.sqrt(states) * radius}


def _equal(statistic: Statistic, scale: float) -> dict[str, float]:
    return {block.name: scale for block in statistic.layout.blocks}


def _inverse(scales: Mapping[str, float]) -> dict[str, float]:
    return {name: 1.0 / scale for name, scale in scales.items()}


def _laplace_epsilon(statistic: Statistic, scales: Mapping[str, float]) -> float:
    return statistic.sensitivity("l1", Relation.REPLACE_ONE, _inverse(scales))


def _gaussian_mu(statistic: Statistic, scales: Mapping[str, float]) -> float:
    return statistic.sensitivity("l2", Relation.REPLACE_ONE, _inverse(scales))


def _moves(
    statistic: Statistic, scales: Mapping[str, float], times: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Radii and shifts of the cells that move when a trajectory is replaced, that many times.

    Per block, its whole mass leaves one cell and enters another: no other trajectories are worse
    (proofs/bounded_noise.md).
    """
    if not isinstance(statistic, VisitCounts):
        raise InvalidInput("the guarantee of bounded noise is known for visit counts only")
    cells = [(scales[name], float(mass)) for name, mass in statistic.masses.items()] * 2 * times
    radii, shifts = zip(*cells, strict=True)
    return radii, shifts


class LocalAdditive(WholeReport):
    """Every user adds independent noise to every cell, then sends; the collector adds up.

    Args:
        statistic: what is sent; asked for its own sensitivity.
        task: the public task.
        kind: "laplace", "gaussian", or "bounded" (simulated only).
        scales: noise scale of every block, in natural units (b, standard deviation or radius).
        requested_epsilon: what was asked for; the guarantee is computed from ``scales`` alone.
        requested_delta: likewise; also the delta at which a guarantee with one is stated.
    """

    def __init__(
        self,
        statistic: Statistic,
        task: Task,
        kind: Kind,
        scales: Mapping[str, float],
        *,
        requested_epsilon: float,
        requested_delta: float = 0.0,
    ) -> None:
        self._statistic = statistic
        self.layout = statistic.layout
        self.scales = dict(scales)
        self.kind = kind
        factors = self.layout.units / GRID
        if not np.array_equal(factors, np.rint(factors)):
            raise InvalidInput("the statistic's grid must be made of whole steps of 2^-24")
        self.factors = factors.astype(np.int64)
        steps = [np.full(b.size, self.scales[b.name] / GRID) for b in self.layout.blocks]
        self.noise_law = GridLaw(kind, np.concatenate(steps))
        if self.noise_law.scales.min() < FINE[kind]:
            raise InvalidInput(
                f"noise of scale {min(self.scales.values()):g} is too small for the grid of 2^-24; "
                f"choose an epsilon below {requested_epsilon:g}"
            )
        require_room(statistic, task, GRID, math.sqrt(2) * max(self.scales.values()))
        own = statistic.sensitivity("l1", Relation.ADD_REMOVE_ONE) / GRID
        reach = np.minimum(own + TAIL[kind] * self.noise_law.scales, 2.0**62)
        self._reach: IntArray = np.ceil(reach).astype(np.int64)
        self.largest = int(self._reach.max())
        self.guarantee = self._account(statistic, task, requested_epsilon, requested_delta)

    def _account(self, statistic: Statistic, task: Task, epsilon: float, delta: float) -> Guarantee:
        times = task.participations
        epsilon = number(epsilon, "requested_epsilon", low=0.0, low_open=True)
        if self.kind != "laplace":
            delta = number(delta, "requested_delta", low=0.0, high=1.0, low_open=True)
        mu = None
        if self.kind == "laplace":
            true = times * _laplace_epsilon(statistic, self.scales)
            at_request = accounting.pure_delta(true, epsilon)
            stated, how = 0.0, "pure: L1 sensitivity over scale, joint over all blocks"
        elif self.kind == "gaussian":
            mu = math.sqrt(times) * _gaussian_mu(statistic, self.scales)
            mu *= 1 + accounting.DISCRETE
            true = accounting.gaussian_epsilon(mu, delta)
            at_request = accounting.gaussian_delta(mu, epsilon)
            stated, how = delta, f"exact Gaussian trade-off at mu = {mu:.6g}, joint over all blocks"
        else:
            radii, shifts = _moves(statistic, self.scales, times)
            at_request = bounded.bounded_delta(np.array(radii), np.array(shifts), epsilon)
            true = bounded.bounded_epsilon(radii, shifts, delta)
            if at_request <= delta:
                true = min(true, epsilon)  # the request was checked itself
            stated, how = delta, "convolved privacy losses of all cells that can move, rounded up"
        return Guarantee(
            model="local" if math.isfinite(true) else "none",
            epsilon=true,
            delta=stated,
            mechanism=f"{self.kind} noise on every cell of one report per user",
            accountant=how,
            mu=mu,
            requested_epsilon=epsilon,
            requested_delta=delta,
            delta_at_requested_epsilon=at_request,
            unit="user",
            participations=times,
            noise={f"{name} {_SCALE_NAMES[self.kind]}": s for name, s in self.scales.items()},
            assumptions=(
                "every participation sends exactly one report, and a retry resends the same bytes",
            ),
            revealed=task.revealed,
        )

    def law(self, users: int) -> AdditiveLaw:
        """Independent noise of that many users, summed."""
        return AdditiveLaw(self.kind, self.scales, users)

    def init(self) -> Secret:
        """Zero sums."""
        return Secret(np.zeros(self.layout.size, dtype=np.int64))

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: contribution plus fresh noise, in whole steps of the grid."""
        message = np.empty(self.layout.size, dtype=np.int64)
        noise.fill(self.noise_law, message)
        add_scaled(contribution, self.factors, message)
        return message

    def moved(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """L2 (Gaussian noise) or L1 distance in units of noise, over the declared one."""
        norm: Norm = "l2" if self.kind == "gaussian" else "l1"
        most = self._statistic.sensitivity(norm, Relation.REPLACE_ONE, _inverse(self.scales))
        apart = (second - first) * self.factors / self.noise_law.scales
        return float(np.linalg.norm(apart, 2 if norm == "l2" else 1)) / most

    def log_ratio(
        self, messages: IntArray, first: IntArray, second: IntArray, publication: Publication
    ) -> Array:
        """The densities of the noise, cell by cell."""
        zero, one, scale = first * self.factors, second * self.factors, self.noise_law.scales
        if self.kind == "laplace":
            ratio = (np.abs(messages - zero) - np.abs(messages - one)) / scale
        elif self.kind == "gaussian":
            ratio = (messages - (zero + one) / 2) * ((one - zero) / scale**2)
        else:
            below, above = (bounded.log_density((messages - x) / scale) for x in (zero, one))
            ratio = above - below
        total: Array = ratio.sum(axis=1)
        return total

    def reach(self, publication: Publication) -> IntArray:
        """The largest contribution and the tail of the noise, whatever was published."""
        return self._reach

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """The sums so far; their noise was added by the users."""
        values = secret.sums * GRID
        law = self.law(secret.users)
        return Release(secret.users, self.layout.views(values), law, secret.source)
