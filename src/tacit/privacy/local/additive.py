"""Laplace and Gaussian noise on the whole contribution vector, added by the user.

One joint charge covers everything a user sends: the statistic is asked for its sensitivity with
every block divided by its noise scale, which gives epsilon (Laplace, L1) or mu (Gaussian, L2)
directly. No budget is split by hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels import sums
from tacit.kernels.noise import add_scaled
from tacit.privacy import accounting
from tacit.privacy.base import Query, Report, Secret, require_room
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import GridLaw, Kind, Noise, weakest
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Relation, Statistic
from tacit.task import Task
from tacit.validate import number

GRID = 2.0**-24
"""Reports are whole steps of this size, in every block."""

FINE: dict[Kind, int] = {"laplace": 64, "gaussian": 2**16}
"""Least noise scale in steps. Discrete Laplace noise is exact on any grid, only its variance is
rounded; the delta of discrete Gaussian noise is off by a relative 1 / steps^2, here below 1e-9."""


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
        one = self.scales[block] ** 2 * (2.0 if self.name == "laplace" else 1.0)
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


def _equal(statistic: Statistic, scale: float) -> dict[str, float]:
    return {block.name: scale for block in statistic.layout.blocks}


def _inverse(scales: Mapping[str, float]) -> dict[str, float]:
    return {name: 1.0 / scale for name, scale in scales.items()}


def _laplace_epsilon(statistic: Statistic, scales: Mapping[str, float]) -> float:
    return statistic.sensitivity("l1", Relation.REPLACE_ONE, _inverse(scales))


def _gaussian_mu(statistic: Statistic, scales: Mapping[str, float]) -> float:
    return statistic.sensitivity("l2", Relation.REPLACE_ONE, _inverse(scales))


class LocalAdditive:
    """Every user adds independent noise to every cell, then sends; the collector adds up.

    Args:
        statistic: what is sent; asked for its own sensitivity.
        task: the public task.
        kind: "laplace" or "gaussian".
        scales: noise scale of every block, in natural units (b or standard deviation).
        requested_epsilon: what was asked for; the guarantee is computed from ``scales`` alone.
        requested_delta: likewise; also the delta at which a Gaussian guarantee is stated.
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
        self.guarantee = self._account(statistic, task, requested_epsilon, requested_delta)

    def _account(self, statistic: Statistic, task: Task, epsilon: float, delta: float) -> Guarantee:
        times = task.participations
        epsilon = number(epsilon, "requested_epsilon", low=0.0, low_open=True)
        if self.kind == "gaussian":
            delta = number(delta, "requested_delta", low=0.0, high=1.0, low_open=True)
        if self.kind == "laplace":
            true = times * _laplace_epsilon(statistic, self.scales)
            at_request = accounting.pure_delta(true, epsilon)
            stated, how = 0.0, "pure: L1 sensitivity over scale, joint over all blocks"
        else:
            mu = math.sqrt(times) * _gaussian_mu(statistic, self.scales)
            mu *= 1 + accounting.DISCRETE
            true = accounting.gaussian_epsilon(mu, delta)
            at_request = accounting.gaussian_delta(mu, epsilon)
            stated, how = delta, f"exact Gaussian trade-off at mu = {mu:.6g}, joint over all blocks"
        return Guarantee(
            model="local",
            epsilon=true,
            delta=stated,
            mechanism=f"{self.kind} noise on every cell of one report per user",
            accountant=how,
            requested_epsilon=epsilon,
            requested_delta=delta,
            delta_at_requested_epsilon=at_request,
            unit="user",
            participations=times,
            noise={f"{name} {self._scale_name}": s for name, s in self.scales.items()},
            assumptions=(
                "every participation sends exactly one report, and a retry resends the same bytes",
            ),
            revealed=task.revealed,
        )

    @property
    def _scale_name(self) -> str:
        return "scale" if self.kind == "laplace" else "std"

    def law(self, users: int) -> AdditiveLaw:
        """Independent noise of that many users, summed."""
        return AdditiveLaw(self.kind, self.scales, users)

    def init(self) -> Secret:
        """Zero sums."""
        return Secret(np.zeros(self.layout.size, dtype=np.int64))

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """On the device: contribution plus fresh noise, in whole steps of the grid."""
        message = np.empty(self.layout.size, dtype=np.int64)
        noise.fill(self.noise_law, message)
        add_scaled(contribution, self.factors, message)
        return Report(message, noise.source)

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        """Add up what is already randomized."""
        sums.absorb(secret.sums, report.take())
        secret.users += 1
        secret.source = weakest(secret.source, report.source)
        return secret

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """The sums so far; their noise was added by the users."""
        values = secret.sums * GRID
        law = self.law(secret.users)
        return Release(secret.users, self.layout.views(values), law, secret.source)
