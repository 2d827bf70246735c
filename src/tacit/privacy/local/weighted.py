"""Gaussian noise on a report, in proportion to weights that everybody can work out.

A statistic may say, from the publication alone, how large each cell can be (``weights``): cells
with small public values get little noise, and cells that the published policy cannot reach get
none and are sent as zeros whatever the user did. The declared sensitivity is that of the
contribution divided by the weights, for every publication, so one mu covers all of them.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.errors import InvalidInput
from tacit.grid import FINE, GRID, TAIL, least_std, require_coarse, whole_steps
from tacit.privacy import accounting
from tacit.privacy.base import BlockLaw, LocalPrivatizer, Query, Report, Secret, require_room
from tacit.privacy.events import GaussianEvent
from tacit.privacy.noise import GridLaw, Noise, Source, weakest
from tacit.privacy.sentences import ONE_REPORT
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Relation, Statistic
from tacit.task.task import Task
from tacit.validate import number


@runtime_checkable
class Weighted(Protocol):
    """A statistic that knows the public size of its cells."""

    def weights(self, publication: Publication) -> Array:
        """One number in [0, 1] per cell, a function of the publication alone."""


class WeightedSecret(Secret):
    """Sums of randomized reports, and the (public) sum of their squared weights."""

    __slots__ = ("spread",)
    stored = (*Secret.stored, "spread")

    def __init__(self, sums: IntArray) -> None:
        super().__init__(sums)
        self.spread: Array = np.zeros(len(sums))


def weighted_noise(statistic: Statistic, task: Task, epsilon: float, delta: float) -> float:
    """The least sigma for (epsilon, delta), whoever comes back."""
    mu = accounting.gaussian_mu(epsilon, delta) / math.sqrt(task.participations)
    return least_std(statistic.sensitivity("l2", Relation.REPLACE_ONE), mu)


class LocalWeighted(LocalPrivatizer[WeightedSecret]):
    """Every user adds Gaussian noise of std sigma w_i to cell i and sends nothing where w_i = 0.

    Args:
        statistic: what is sent; asked for its own sensitivity and, if it has some, its weights.
        task: the public task.
        noise_std: sigma, natural units; by default the least for what is requested.
        requested: epsilon and delta that were asked for, the delta being that at which epsilon is
            stated; the guarantee is computed from ``noise_std`` alone.
    """

    served = None
    absorbs_sums = True

    def __init__(
        self,
        statistic: Statistic,
        task: Task,
        noise_std: float | None = None,
        *,
        requested: tuple[float, float],
    ) -> None:
        self.statistic = statistic
        self.layout = statistic.layout
        if self.layout.size == 0:
            raise InvalidInput(
                "there is nothing to report: with horizon 1 there are no transitions to learn"
            )
        self._sensitivity = statistic.sensitivity("l2", Relation.REPLACE_ONE)
        times = task.participations
        if noise_std is None:
            noise_std = weighted_noise(statistic, task, *requested)
        self.noise_std = number(noise_std, "noise_std", low=0.0, low_open=True)
        require_coarse("noise", self.noise_std)
        self.least = FINE["gaussian"] * GRID / self.noise_std
        self.factors = whole_steps(self.layout.units)
        require_room(statistic, task, GRID, self.noise_std)
        self._own = statistic.sensitivity("l1", Relation.ADD_REMOVE_ONE) / GRID
        self.max_increment = int(self._reach(np.ones(self.layout.size)).max())
        self.event = GaussianEvent.of(math.sqrt(times) * self._sensitivity, self.noise_std)
        self.guarantee = self.event.guarantee(
            task,
            model="local",
            mechanism=f"gaussian noise on one report per {task.counted}, in proportion to public "
            "weights",
            accountant="joint over all blocks",
            requested=requested,
            noise={"std at weight 1": self.noise_std, "sensitivity": self._sensitivity},
            assumptions=(ONE_REPORT,),
        )

    def weights(self, publication: Publication) -> Array:
        """Public size of every cell, raised to what the grid can resolve where it is positive."""
        if not isinstance(self.statistic, Weighted):
            return np.ones(self.layout.size)
        weights = self.statistic.weights(publication)
        return np.where(weights > 0.0, np.maximum(weights, self.least), 0.0)

    def law(self, users: int) -> BlockLaw:
        """The law of that many reports of full weight: no release is noisier."""
        return self._law(np.full(self.layout.size, float(users)))

    def _law(self, spread: Array) -> BlockLaw:
        """Of reports whose squared weights add up to that, cell by cell."""
        variances = self.layout.views(frozen(self.noise_std**2 * spread))
        return BlockLaw("gaussian", dict.fromkeys(variances, self.noise_std), variances)

    def init(self) -> WeightedSecret:
        """Zero sums."""
        return WeightedSecret(np.zeros(self.layout.size, dtype=np.int64))

    def grid_law(self, weights: Array) -> GridLaw:
        """Noise of the cells with positive weight, in grid steps."""
        return GridLaw("gaussian", self.noise_std / GRID * weights[weights > 0.0])

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: contribution plus noise where the public weight is positive, else 0."""
        weights = self.weights(publication)
        live = np.flatnonzero(weights > 0.0)
        drawn = np.empty(len(live), dtype=np.int64)
        noise.fill(self.grid_law(weights), drawn)
        message = np.zeros(self.layout.size, dtype=np.int64)
        message[live] = contribution[live] * self.factors[live] + drawn
        return message

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """L2 distance over the public weights, over the declared one."""
        apart, _ = self._apart(first, second, publication)
        return float(np.linalg.norm(apart)) / (self._sensitivity / self.noise_std)

    def log_ratio(
        self, messages: IntArray, first: IntArray, second: IntArray, publication: Publication
    ) -> Array:
        """Gaussian densities of the cells that carry noise."""
        apart, std = self._apart(first, second, publication)
        middle = (first + second) * self.factors / 2
        live = std > 0.0
        residual = (messages - middle)[:, live] / std[live]
        ratio: Array = residual @ apart[live]
        return ratio

    def _apart(
        self, first: IntArray, second: IntArray, publication: Publication
    ) -> tuple[Array, Array]:
        """Distance of two contributions in units of noise, and that noise in grid steps."""
        std = self.noise_std / GRID * self.weights(publication)
        moved = (second - first) * self.factors
        return np.divide(moved, std, out=np.zeros(len(std)), where=std > 0.0), std

    def message_bounds(self, publication: Publication) -> IntArray:
        """The largest contribution and the tail of the noise; nothing where there is no weight."""
        return self._reach(self.weights(publication))

    def _reach(self, weights: Array) -> IntArray:
        spread = self._own + TAIL["gaussian"] * self.noise_std / GRID * weights
        reach: IntArray = np.ceil(np.minimum(spread, 2.0**62)).astype(np.int64)
        return np.where(weights > 0.0, reach, 0)

    def report(self, message: IntArray, publication: Publication, source: Source) -> Report:
        """The message, with the weights that its publication gave it."""
        return Report(message, source, frozen(self.weights(publication)))

    def absorb(self, secret: WeightedSecret, report: Report, version: int) -> WeightedSecret:
        """Add up what is already randomized, and how much noise is in it."""
        secret = super().absorb(secret, report, version)
        secret.spread += report.public**2
        return secret

    def absorb_sums(
        self,
        secret: WeightedSecret,
        total: IntArray,
        users: int,
        publication: Publication,
        noise: Noise,
    ) -> WeightedSecret:
        """The same for many users at once, as only a simulation can, which sees contributions.

        The noise of n users under one publication is drawn once, with standard deviation sqrt(n)
        times that of one: its law, up to how draws are rounded to the grid.
        """
        weights = self.weights(publication)
        live = np.flatnonzero(weights > 0.0)
        drawn = np.empty(len(live), dtype=np.int64)
        noise.fill(GridLaw("gaussian", math.sqrt(users) * self.grid_law(weights).scales), drawn)
        secret.sums[live] += total[live] * self.factors[live] + drawn
        secret.spread += users * weights**2
        secret.users += users
        secret.source = weakest(secret.source, noise.source)
        return secret

    def release(self, secret: WeightedSecret, query: Query, noise: Noise) -> Release:
        """The sums so far; their noise was added by the users."""
        values = secret.sums * GRID
        law = self._law(secret.spread)
        return Release(secret.users, self.layout.views(values), law, secret.source)
