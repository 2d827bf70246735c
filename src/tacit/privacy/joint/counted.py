"""Running sums released through a continual counter, charged once for the whole stream.

All contributions between two releases form one item of the counter's stream. A user is in exactly
one item, so the cost of everything ever released is mu = a Delta / sigma, a the column norm of the
counter and Delta the statistic's L2 sensitivity, jointly over all blocks
(docs/papers/mixture_jdp.md#composition).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels import sums
from tacit.privacy import accounting
from tacit.privacy.base import Curated, Likelihood, Query, Record, Report, Secret
from tacit.privacy.counters import State, Strategy
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.local.additive import FINE, GRID
from tacit.privacy.noise import GridLaw, Noise, weakest
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Relation, Statistic
from tacit.task import Task
from tacit.validate import integer, number


@dataclass(frozen=True)
class CounterLaw:
    """Independent Gaussian noise of one standard deviation in every cell of a prefix."""

    std: float
    name: str = "gaussian"

    def scale(self, block: str) -> float:
        """Standard deviation of the noise in the prefix."""
        return self.std

    def variance(self, block: str) -> Array:
        """Exact variance of every entry."""
        return np.asarray(self.std**2)


class CountedSecret(Secret):
    """Exact sums of the open batch, the counter's state, and the last release."""

    __slots__ = ("counter", "last", "open")

    def __init__(self, sums: IntArray, counter: State) -> None:
        super().__init__(sums)
        self.counter = counter
        self.last: tuple[int, Release] | None = None
        self.open = 0


def _shift(statistic: Statistic, strategy: Strategy, largest: int) -> float:
    """How far one user can move everything published, in natural units."""
    steps = statistic.sensitivity("l2", Relation.REPLACE_ONE) / GRID
    return strategy.shift(steps, statistic.layout.size, largest) * GRID


def _largest(statistic: Statistic, batch: int) -> int:
    """Bound on one cell of one item: a full batch of users, each with all its mass there.

    A statistic that knows a better bound on what one user adds to a cell says ``largest_cell()``.
    """
    own = getattr(statistic, "largest_cell", None)
    per_user = own() if own else statistic.sensitivity("l1", Relation.ADD_REMOVE_ONE)
    return math.ceil(batch * per_user / GRID)


def counted_noise_std(
    statistic: Statistic, task: Task, strategy: Strategy, batch: int, epsilon: float, delta: float
) -> float:
    """The least standard deviation of a node's noise for (epsilon, delta) over the whole stream."""
    mu = accounting.gaussian_mu(epsilon, delta) / task.participations
    shift = _shift(statistic, strategy, _largest(statistic, batch))
    sigma = shift / mu
    while shift / sigma > mu:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


class CountedSums(Curated):
    """A curator that adds contributions up and publishes noisy prefix sums.

    Args:
        statistic: what each user contributes; asked for its own sensitivity.
        task: the public task.
        strategy: the counter; its length is the number of releases with data.
        noise_std: standard deviation of one node's noise, natural units.
        batch: largest number of users between two releases.
        requested_epsilon: what was asked for; the guarantee is computed from ``noise_std``.
        requested_delta: likewise, and the delta at which epsilon is stated.
    """

    absorbs_sums = True

    def __init__(
        self,
        statistic: Statistic,
        task: Task,
        strategy: Strategy,
        noise_std: float,
        *,
        batch: int,
        requested_epsilon: float,
        requested_delta: float,
    ) -> None:
        self.layout = statistic.layout
        self.strategy = strategy
        self.noise_std = number(noise_std, "noise_std", low=FINE["gaussian"] * GRID)
        self.batch = integer(batch, "batch", low=1)
        factors = self.layout.units / GRID
        if not np.array_equal(factors, np.rint(factors)):
            raise InvalidInput("the statistic's grid must be made of whole steps of 2^-24")
        self.factors = factors.astype(np.int64)
        self._precisions: dict[int, Array] = {}
        self._sensitivity = statistic.sensitivity("l2", Relation.REPLACE_ONE)
        self._largest = _largest(statistic, self.batch)
        shift = _shift(statistic, strategy, self._largest)
        self.rounding = strategy.rounding_sensitivity(self.layout.size, self._largest) * GRID
        overlapping = task.participations  # columns of C may overlap in every row
        self.mu = overlapping * shift / self.noise_std * (1 + accounting.DISCRETE)
        self._laws = GridLaw("gaussian", np.full(self.layout.size, self.noise_std / GRID))
        self.guarantee = self._account(
            task,
            number(requested_epsilon, "requested_epsilon", low=0.0, low_open=True),
            number(requested_delta, "requested_delta", low=0.0, high=1.0, low_open=True),
        )

    @classmethod
    def calibrated(
        cls,
        statistic: Statistic,
        task: Task,
        strategy: Strategy,
        *,
        batch: int,
        epsilon: float,
        delta: float,
    ) -> CountedSums:
        """With the least noise for (epsilon, delta)."""
        return cls(
            statistic,
            task,
            strategy,
            counted_noise_std(statistic, task, strategy, batch, epsilon, delta),
            batch=batch,
            requested_epsilon=float(epsilon),
            requested_delta=float(delta),
        )

    def _account(self, task: Task, epsilon: float, delta: float) -> Guarantee:
        return Guarantee(
            model="joint",
            epsilon=accounting.gaussian_epsilon(self.mu, delta),
            delta=delta,
            mechanism=f"gaussian noise on running sums through a {self.strategy.name} counter",
            accountant=f"exact Gaussian trade-off at mu = {self.mu:.6g}, one charge for the stream",
            mu=self.mu,
            requested_epsilon=epsilon,
            requested_delta=delta,
            delta_at_requested_epsilon=accounting.gaussian_delta(self.mu, epsilon),
            participations=task.participations,
            noise={
                "node std": self.noise_std,
                "column norm": self.strategy.column_norm(),
                "releases": self.strategy.length,
            },
            assumptions=(
                "the curator is trusted with trajectories and keeps its secret state secret",
                "each participation falls into one batch",
            ),
            revealed=task.revealed,
        )

    def law(self, users: int) -> CounterLaw:
        """The law of the noisiest release; it does not depend on users."""
        return CounterLaw(max(self._law(t).std for t in _peaks(self.strategy.length)))

    def _law(self, release: int) -> CounterLaw:
        worst = self.strategy.error_std(release) if release else 0.0
        return CounterLaw(worst * self.noise_std)

    def init(self) -> CountedSecret:
        """Empty batch, fresh counter."""
        counter = self.strategy.init(self.layout.size, self._largest)
        return CountedSecret(np.zeros(self.layout.size, dtype=np.int64), counter)

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """To the curator, over its own channel: the contribution on the common grid."""
        return Report(contribution * self.factors)

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        """Add to the open batch."""
        assert isinstance(secret, CountedSecret)
        if secret.open >= self.batch:
            raise InvalidInput(
                f"{self.batch} users share a batch at most, and this one is full; release first"
            )
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
        assert isinstance(secret, CountedSecret)
        if secret.open + users > self.batch:
            raise InvalidInput(
                f"{self.batch} users share a batch at most, and {users} more came after "
                f"{secret.open}; release first"
            )
        sums.absorb(secret.sums, total * self.factors)
        secret.users += users
        secret.open += users
        return secret

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """Close the batch as item ``query.id`` of the stream and publish the noisy prefix.

        Release 0, before anybody, is exact zeros. Asked again for the last release, the same one
        comes back; earlier ones are public already and are not kept.
        """
        assert isinstance(secret, CountedSecret)
        if secret.last is not None and secret.last[0] == query.id:
            return secret.last[1]
        done = secret.counter.steps
        if query.id == 0 and done == 0 and secret.users == 0:
            values = np.zeros(self.layout.size)
        elif query.id == done + 1:
            values, _ = self.strategy.step(
                secret.counter, secret.sums, lambda node: self._draw(node, noise)
            )
            secret.sums[:] = 0
            secret.open = 0
            secret.source = weakest(secret.source, noise.source)
            values = values * GRID
        else:
            raise InvalidInput(
                f"release {query.id} was asked for, but the next one is {done + 1}; a release is "
                "made once, in order"
            )
        release = Release(
            secret.users, self.layout.views(values), self._law(query.id), secret.source
        )
        secret.last = (query.id, release)
        return release

    def moved(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """L2 distance over the declared one."""
        apart = float(np.linalg.norm((second - first) * self.layout.units))
        return apart / self._sensitivity

    def evidence(self, record: Record) -> Likelihood:
        """Of all prefixes together: their noise has covariance sigma^2 B B^T in every cell."""
        units, released = self.layout.units, np.array(record.released)
        count = len(released)
        first, second = (
            np.cumsum(batches[:count], axis=0) * units for batches in (record.first, record.second)
        )
        shift = self._precision(count) @ (second - first) / self.noise_std**2
        mu_squared = float((shift * (second - first)).sum())
        return Likelihood(float((shift * (released - first)).sum()) - mu_squared / 2, mu_squared)

    def _precision(self, releases: int) -> Array:
        """Inverse of B B^T for the first releases, remembered."""
        if releases not in self._precisions:
            covariance = self.strategy.covariance()[:releases, :releases]
            self._precisions[releases] = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        return self._precisions[releases]

    def draw(self, secret: CountedSecret, noise: Noise) -> IntArray:
        """Draw the noise of the next release [nodes, cells] now, so that it can be stored first."""
        nodes = self.strategy.nodes(secret.counter.steps + 1)
        return secret.counter.take(nodes, lambda node: self._draw(node, noise))

    def replay(self, secret: CountedSecret, drawn: IntArray) -> None:
        """Make the next release use noise that was drawn and stored before."""
        nodes = self.strategy.nodes(secret.counter.steps + 1)
        if drawn.shape != (len(nodes), self.layout.size):
            raise InvalidInput(
                f"the stored noise has shape {drawn.shape}, but the next release uses "
                f"{(len(nodes), self.layout.size)}"
            )
        secret.counter.take(nodes, lambda node: drawn[node - nodes.start])

    def _draw(self, node: int, noise: Noise) -> IntArray:
        drawn = np.empty(self.layout.size, dtype=np.int64)
        noise.fill(self._laws, drawn)
        return drawn


def _peaks(length: int) -> list[int]:
    """Where the error of a counter can be largest: the end, and numbers that end in ones.

    Errors of the Toeplitz counters grow with t. Those of the trees add a positive amount per set
    bit, more for lower bits, so below ``length`` they peak where one bit of it is cleared and all
    lower ones are set.
    """
    bits = [bit for bit in range(length.bit_length()) if length >> bit & 1]
    filled = [(length >> bit << bit) - 1 for bit in bits]
    return [length, *(t for t in filled if t > 0)]
