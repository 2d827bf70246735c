"""Sums of separate batches, each released once: a user is in exactly one release.

No counter is needed where a learner weighs the batches itself: one user's contribution enters one
noisy sum, so everything ever released costs that user mu = Delta / sigma, also when later batches
were planned from earlier releases (docs/papers/lq_jdp.md#b1; proofs/lq.md).
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.kernels import sums
from tacit.privacy import accounting
from tacit.privacy.base import Curated, Likelihood, Query, Record, Report, Secret, require_room
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.joint.counted import CounterLaw
from tacit.privacy.local.additive import FINE, GRID
from tacit.privacy.noise import GridLaw, Noise, weakest
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Relation, Statistic
from tacit.task import Task
from tacit.validate import number


def batch_noise_std(statistic: Statistic, task: Task, epsilon: float, delta: float) -> float:
    """The least standard deviation of a cell's noise for (epsilon, delta)."""
    sensitivity = statistic.sensitivity("l2", Relation.REPLACE_ONE) * task.participations
    mu = accounting.gaussian_mu(epsilon, delta)
    sigma = sensitivity / mu
    while sensitivity / sigma > mu:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


class BatchSecret(Secret):
    """Exact sums of the open batch, and the last release."""

    __slots__ = ("last", "open")

    def __init__(self, sums: IntArray) -> None:
        super().__init__(sums)
        self.last: tuple[int, Release] | None = None
        self.open = 0


class BatchSums(Curated):
    """A curator that adds up a batch, publishes its noisy sum, and begins the next one at zero.

    Args:
        statistic: what each user contributes; asked for its own sensitivity.
        task: the public task.
        noise_std: standard deviation of the noise in every cell of every release, natural units.
        requested_epsilon: what was asked for; the guarantee is computed from ``noise_std``.
        requested_delta: likewise, and the delta at which epsilon is stated.
    """

    absorbs_sums = True

    def __init__(
        self,
        statistic: Statistic,
        task: Task,
        noise_std: float,
        *,
        requested_epsilon: float,
        requested_delta: float,
    ) -> None:
        self.layout = statistic.layout
        self.noise_std = number(noise_std, "noise_std", low=FINE["gaussian"] * GRID)
        factors = self.layout.units / GRID
        if not np.array_equal(factors, np.rint(factors)):
            raise InvalidInput("the statistic's grid must be made of whole steps of 2^-24")
        self.factors = factors.astype(np.int64)
        require_room(statistic, task, GRID, self.noise_std)
        self._sensitivity = statistic.sensitivity("l2", Relation.REPLACE_ONE)
        moved = task.participations * self._sensitivity
        self.mu = moved / self.noise_std * (1 + accounting.DISCRETE)
        self._noise_law = GridLaw("gaussian", np.full(self.layout.size, self.noise_std / GRID))
        self.guarantee = self._account(
            task,
            number(requested_epsilon, "requested_epsilon", low=0.0, low_open=True),
            number(requested_delta, "requested_delta", low=0.0, high=1.0, low_open=True),
        )

    def _account(self, task: Task, epsilon: float, delta: float) -> Guarantee:
        return Guarantee(
            model="joint",
            epsilon=accounting.gaussian_epsilon(self.mu, delta),
            delta=delta,
            mechanism="gaussian noise on the sum of every batch, each user in one batch",
            accountant=f"exact Gaussian trade-off at mu = {self.mu:.6g}, one release per user",
            mu=self.mu,
            requested_epsilon=epsilon,
            requested_delta=delta,
            delta_at_requested_epsilon=accounting.gaussian_delta(self.mu, epsilon),
            participations=task.participations,
            noise={"batch std": self.noise_std},
            assumptions=(
                "the curator is trusted with trajectories and keeps its secret state secret",
                "each participation falls into one batch",
            ),
            revealed=task.revealed,
        )

    def law(self, users: int) -> CounterLaw:
        """The same in every release."""
        return CounterLaw(self.noise_std)

    def init(self) -> BatchSecret:
        """An empty batch."""
        return BatchSecret(np.zeros(self.layout.size, dtype=np.int64))

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """To the curator, over its own channel: the contribution on the common grid."""
        return Report(contribution * self.factors)

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        """Add to the open batch."""
        assert isinstance(secret, BatchSecret)
        sums.absorb(secret.sums, report.take())
        secret.users += 1
        secret.open += 1
        return secret

    def absorb_sums(
        self,
        secret: Secret,
        total: IntArray,
        users: int,
        publication: Publication,
        noise: Noise,
    ) -> Secret:
        """The same for what several users contributed, added up before."""
        assert isinstance(secret, BatchSecret)
        sums.absorb(secret.sums, total * self.factors)
        secret.users += users
        secret.open += users
        return secret

    def moved(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """L2 distance over the declared one."""
        apart = float(np.linalg.norm((second - first) * self.layout.units))
        return apart / self._sensitivity

    def evidence(self, record: Record) -> Likelihood:
        """Of all batches: their noise is independent."""
        count, units = len(record.released), self.layout.units
        first, second = (
            np.array(batches[:count]) * units for batches in (record.first, record.second)
        )
        shift = (second - first) / self.noise_std**2
        mu_squared = float((shift * (second - first)).sum())
        return Likelihood(
            float((shift * (record.released - first)).sum()) - mu_squared / 2, mu_squared
        )

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """Close the batch as release ``query.id`` and publish its noisy sum.

        A batch without users is published as exact zeros. Asked again for the last release, the
        same one comes back; earlier ones are public already and are not kept.
        """
        assert isinstance(secret, BatchSecret)
        if secret.last is not None:
            if secret.last[0] == query.id:
                return secret.last[1]
            if query.id < secret.last[0]:
                raise InvalidInput(
                    f"release {query.id} was asked for after release {secret.last[0]}; a release "
                    "is made once, in order"
                )
        values = secret.sums.astype(np.float64)
        law = CounterLaw(0.0)
        if secret.open:
            drawn = np.empty(self.layout.size, dtype=np.int64)
            noise.fill(self._noise_law, drawn)
            values = (secret.sums + drawn).astype(np.float64)
            law = self.law(secret.open)
            secret.source = weakest(secret.source, noise.source)
        release = Release(secret.open, self.layout.views(values * GRID), law, secret.source)
        secret.sums[:] = 0
        secret.open = 0
        secret.last = (query.id, release)
        return release
