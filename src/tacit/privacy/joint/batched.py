"""Sums of separate batches, each released once: a user is in exactly one release.

No counter is needed where a learner weighs the batches itself: one user's contribution enters one
noisy sum, so everything ever released costs that user mu = Delta / sigma, also when later batches
were planned from earlier releases (docs/papers/lq_jdp.md#b1; proofs/lq.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import GRID, least_std, require_coarse, whole_steps
from tacit.kernels.raw import sums as sums
from tacit.privacy import accounting, base
from tacit.privacy.events import GaussianEvent
from tacit.privacy.noise import GridLaw, Noise, weakest
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Bounded, Norm, Relation, bounds_lifetimes
from tacit.task.task import Task
from tacit.validate import number


@dataclass(frozen=True)
class GaussianLaw:
    """Independent Gaussian noise of one standard deviation in every cell."""

    std: float
    name: str = "gaussian"

    def scale(self, block: str) -> float:
        """The standard deviation."""
        return self.std

    def variance(self, block: str) -> Array:
        """Exact variance of every entry."""
        return np.asarray(self.std**2)


SumsKind = Literal["gaussian", "laplace"]
"""Noise that a curator adds to sums."""

NORMS: dict[SumsKind, Norm] = {"gaussian": "l2", "laplace": "l1"}
"""In which norm one person's change is paid for."""


class BatchSecret(base.Secret):
    """Exact sums of the open batch, how many users are in it, and the last release."""

    __slots__ = ("drawn", "last", "open")
    stored = (*base.Secret.stored, "open")  # the last release is public, and stored as such

    def __init__(self, sums: IntArray) -> None:
        super().__init__(sums)
        self.last: tuple[int, Release] | None = None
        self.open = 0
        self.drawn: IntArray | None = None


B = TypeVar("B", bound=BatchSecret)


class NoisySums(base.Privatizer[B]):
    """A curator that adds up batches of users and releases noisy sums on the grid.

    Args:
        statistic: what each user contributes; asked for its own sensitivity.
        scale: of one draw in every cell, natural units: a standard deviation, or the b of Laplace
            noise.
        kind: of the noise.
    """

    absorbs_sums = True
    has_likelihood = True

    def __init__(self, statistic: Bounded, scale: float, kind: SumsKind = "gaussian") -> None:
        self.layout = statistic.layout
        self.factors = whole_steps(self.layout.units)
        self._plain = bool((self.factors == 1).all())
        self.kind = kind
        self.scale = number(scale, "noise", low=0.0, low_open=True)
        require_coarse("noise", self.scale, kind)
        self._sensitivity = statistic.sensitivity(NORMS[kind], Relation.REPLACE_ONE)
        self._noise_law = GridLaw(kind, np.full(self.layout.size, self.scale / GRID))

    @property
    def noise_std(self) -> float:
        """Standard deviation of one draw."""
        return self.scale * (math.sqrt(2.0) if self.kind == "laplace" else 1.0)

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> base.Report:
        """To the curator, over its own channel: the contribution on the common grid."""
        return base.Report(contribution * self.factors)  # a copy, also where all factors are 1

    def absorb(self, secret: B, report: base.Report, version: int) -> B:
        """Add to the open batch."""
        self._require_place(secret, 1)
        secret = super().absorb(secret, report, version)
        secret.open += 1
        return secret

    def absorb_sums(
        self, secret: B, total: IntArray, users: int, publication: Publication, noise: Noise
    ) -> B:
        """The same for what several users contributed, added up before."""
        self._require_place(secret, users)
        sums.absorb(secret.sums, total if self._plain else total * self.factors)
        secret.users += users
        secret.open += users
        return secret

    def _require_place(self, secret: B, users: int) -> None:
        if self.batch is not None and secret.open + users > self.batch:
            raise InvalidInput(
                f"{self.batch} users share a batch at most, and {users} more came after "
                f"{secret.open}; release first"
            )

    def release(self, secret: B, query: base.Query, noise: Noise) -> Release:
        """Close the batch as release ``query.id`` and publish.

        Asked again for the last release, the same one comes back; earlier ones are public already
        and are not kept.
        """
        if secret.last is not None and secret.last[0] == query.id:
            return secret.last[1]
        release = self._next(secret, query.id, noise)
        secret.last = (query.id, release)
        return release

    def renew(self, secret: B) -> None:
        """Between two releases only; batches themselves have noise of their own."""
        if secret.open:
            raise InvalidInput(
                f"a batch is in one period, and {secret.open} users are in the open one; release "
                "first"
            )

    def _draw(self, noise: Noise) -> IntArray:
        """Noise of one release, or of one node."""
        drawn = np.empty(self.layout.size, dtype=np.int64)
        noise.fill(self._noise_law, drawn)
        return drawn

    def _require_shape(self, drawn: IntArray, nodes: int) -> None:
        if drawn.shape != (nodes, self.layout.size):
            raise InvalidInput(
                f"the stored noise has shape {drawn.shape}, but the next release uses "
                f"{(nodes, self.layout.size)}"
            )

    @abstractmethod
    def _next(self, secret: B, number: int, noise: Noise) -> Release:
        """The release of that number, if it is its turn."""

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """Distance over the declared one: L2, or L1 where noise is Laplace."""
        moved = (second - first) * self.layout.units
        apart = float(np.linalg.norm(moved, 2 if NORMS[self.kind] == "l2" else 1))
        return apart / self._sensitivity

    def log_likelihood_ratio(self, record: base.AuditRecord) -> base.LogLikelihoodRatio:
        """Of all releases together: their noise has covariance sigma^2 times a public matrix."""
        count = len(record.released)
        first, second = (
            self._exact(np.array(batches[:count])) * self.layout.units
            for batches in (record.first, record.second)
        )
        shift = self._unmixed(second - first) / self.noise_std**2
        mu_squared = float((shift * (second - first)).sum())
        ratio = float((shift * (np.array(record.released) - first)).sum()) - mu_squared / 2
        return base.LogLikelihoodRatio(ratio, mu_squared)

    @abstractmethod
    def _exact(self, batches: IntArray) -> IntArray:
        """What is released about these batches [releases, cells], without noise."""

    @abstractmethod
    def _unmixed(self, apart: Array) -> Array:
        """A difference of releases, multiplied by the inverse of the noise's matrix."""


class BatchSums(NoisySums[BatchSecret]):
    """A curator that adds up a batch, publishes its noisy sum, and begins the next one at zero.

    Args:
        statistic: what each user contributes; asked for its own sensitivity.
        task: the public task.
        noise_std: standard deviation of the noise in every cell of every release, natural units; by
            default the least for what is requested.
        requested: epsilon and delta that were asked for, the delta being that at which epsilon is
            stated; the guarantee is computed from ``noise_std``.
    """

    def __init__(
        self,
        statistic: Bounded,
        task: Task,
        noise_std: float | None = None,
        *,
        requested: tuple[float, float],
    ) -> None:
        moved = statistic.sensitivity("l2", Relation.REPLACE_ONE) * task.participations
        if noise_std is None:
            noise_std = least_std(moved, accounting.gaussian_mu(*requested))
        super().__init__(statistic, noise_std)
        base.require_room(statistic, task, GRID, self.noise_std)
        self.event = GaussianEvent.of(moved, self.noise_std)
        self.guarantee = self.event.guarantee(
            task,
            model="joint",
            mechanism=f"gaussian noise on the sum of every batch, each {task.counted} in one batch",
            accountant=f"one release per {task.counted}",
            requested=requested,
            noise={"batch std": self.noise_std},
            assumptions=base.TRUSTED,
            lifetime=bounds_lifetimes(statistic),
        )

    served: Literal["local", "joint"] | None = "joint"

    def law(self, users: int) -> GaussianLaw:
        """The same in every release."""
        return GaussianLaw(self.noise_std)

    def draw(self, secret: BatchSecret, noise: Noise) -> IntArray:
        """The noise of the next release [1, cells], so that it can be stored first."""
        return self._draw(noise)[None]

    def replay(self, secret: BatchSecret, drawn: IntArray) -> None:
        """Make the next release use noise that was drawn and stored before."""
        self._require_shape(drawn, 1)
        secret.drawn = drawn

    def init(self) -> BatchSecret:
        """An empty batch."""
        return BatchSecret(np.zeros(self.layout.size, dtype=np.int64))

    def _next(self, secret: BatchSecret, number: int, noise: Noise) -> Release:
        """The noisy sum of the batch; one without users is published as exact zeros."""
        if secret.last is not None and number < secret.last[0]:
            raise InvalidInput(
                f"release {number} was asked for after release {secret.last[0]}; a release is made "
                "once, in order"
            )
        values, law = secret.sums.astype(np.float64), GaussianLaw(0.0)
        if secret.open:
            drawn = self.draw(secret, noise) if secret.drawn is None else secret.drawn
            values, law = (secret.sums + drawn[0]).astype(np.float64), self.law(secret.open)
            secret.source, secret.drawn = weakest(secret.source, noise.source), None
        release = Release(secret.open, self.layout.views(values * GRID), law, secret.source)
        secret.sums[:] = 0
        secret.open = 0
        return release

    def _exact(self, batches: IntArray) -> IntArray:
        """The batches themselves."""
        return batches

    def _unmixed(self, apart: Array) -> Array:
        """Their noise is independent."""
        return apart


def reread(users: int, blocks: Mapping[str, Array], noise_std: float, source: str) -> Release:
    """A release of one batch that was published before and kept as plain numbers."""
    return Release(users, blocks, GaussianLaw(noise_std), source)
