"""Running sums released through a continual counter, charged once for the whole stream.

All contributions between two releases form one item of the counter's stream. A user is in exactly
one item, so the cost of everything ever released is mu = a Delta / sigma, a the column norm of the
counter and Delta the statistic's L2 sensitivity, jointly over all blocks
(docs/papers/mixture_jdp.md#composition).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import GRID, least_std
from tacit.privacy import accounting
from tacit.privacy.base import TRUSTED
from tacit.privacy.counters.base import Strategy
from tacit.privacy.counters.state import State
from tacit.privacy.events import GaussianEvent, guaranteed
from tacit.privacy.joint.batched import BatchSecret, GaussianLaw, NoisySums
from tacit.privacy.noise import Noise, weakest
from tacit.release import Release
from tacit.statistics.base import Relation, Statistic
from tacit.task import Task
from tacit.validate import integer


class CountedSecret(BatchSecret):
    """The open batch, the counter's state, and the newest prefix in grid steps (it is public)."""

    __slots__ = ("counter", "prefix")

    def __init__(self, sums: IntArray, counter: State) -> None:
        super().__init__(sums)
        self.counter = counter
        self.prefix: Array = np.zeros(len(sums))


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
    return least_std(shift, mu)


class CountedSums(NoisySums[CountedSecret]):
    """A curator that adds contributions up and publishes noisy prefix sums.

    Args:
        statistic: what each user contributes; asked for its own sensitivity.
        task: the public task.
        strategy: the counter; its length is the number of releases with data.
        noise_std: standard deviation of one node's noise, natural units; by default the least for
            what is requested.
        batch: largest number of users between two releases.
        requested_epsilon: what was asked for; the guarantee is computed from ``noise_std``.
        requested_delta: likewise, and the delta at which epsilon is stated.
    """

    served: Literal["local", "joint"] | None = "joint"

    def __init__(
        self,
        statistic: Statistic,
        task: Task,
        strategy: Strategy,
        noise_std: float | None = None,
        *,
        batch: int,
        requested_epsilon: float,
        requested_delta: float,
    ) -> None:
        if noise_std is None:
            asked = requested_epsilon, requested_delta
            noise_std = counted_noise_std(statistic, task, strategy, batch, *asked)
        super().__init__(statistic, noise_std)
        self.strategy = strategy
        self.batch = integer(batch, "batch", low=1)
        self._precisions: dict[int, Array] = {}
        self._largest = _largest(statistic, self.batch)
        self.rounding = strategy.rounding_sensitivity(self.layout.size, self._largest) * GRID
        shift = _shift(statistic, strategy, self._largest)
        overlapping = task.participations  # columns of C may overlap in every row
        self.event = GaussianEvent.of(overlapping * shift, self.noise_std)
        self.guarantee = guaranteed(
            self.event,
            task,
            model="joint",
            mechanism=f"gaussian noise on running sums through a {self.strategy.name} counter",
            accountant="one charge for the stream",
            requested=(requested_epsilon, requested_delta),
            noise={
                "node std": self.noise_std,
                "column norm": self.strategy.column_norm(),
                "releases": self.strategy.length,
            },
            assumptions=TRUSTED,
        )

    def law(self, users: int) -> GaussianLaw:
        """The law of the noisiest release; it does not depend on users."""
        return GaussianLaw(max(self._law(t).std for t in _peaks(self.strategy.length)))

    def _law(self, release: int) -> GaussianLaw:
        if release > self.strategy.length:
            return GaussianLaw(self.strategy.closing_std() * self.noise_std)
        worst = self.strategy.error_std(release) if release else 0.0
        return GaussianLaw(worst * self.noise_std)

    def init(self) -> CountedSecret:
        """Empty batch, fresh counter."""
        counter = self.strategy.init(self.layout.size, self._largest)
        return CountedSecret(np.zeros(self.layout.size, dtype=np.int64), counter)

    def _next(self, secret: CountedSecret, number: int, noise: Noise) -> Release:
        """The noisy prefix with the batch as its last item; release 0, before anybody, is zeros.

        One release more than the counter has steps closes it.
        """
        done = secret.counter.steps
        if number == 0 and done == 0 and secret.users == 0:
            values = np.zeros(self.layout.size)
        elif number == done + 1:
            item = secret.counter, secret.sums, lambda node: self._draw(noise)
            if done < self.strategy.length:
                values, _ = self.strategy.step(*item)
            else:
                values = self.strategy.close(item[0], secret.prefix, *item[1:])
            secret.prefix = values
            secret.sums[:] = 0
            secret.open = 0
            secret.source = weakest(secret.source, noise.source)
            values = values * GRID
        else:
            raise InvalidInput(
                f"release {number} was asked for, but the next one is {done + 1}; a release is "
                "made once, in order"
            )
        law = self._law(number)
        return Release(secret.users, self.layout.views(values), law, secret.source)

    def _exact(self, batches: IntArray) -> IntArray:
        """Running sums."""
        return np.cumsum(batches, axis=0)

    def _unmixed(self, apart: Array) -> Array:
        """The noise of all prefixes has covariance sigma^2 B B^T in every cell."""
        releases = len(apart)
        if releases not in self._precisions:
            covariance = self.strategy.covariance()[:releases, :releases]
            self._precisions[releases] = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        product: Array = self._precisions[releases] @ apart
        return product

    def draw(self, secret: CountedSecret, noise: Noise) -> IntArray:
        """Draw the noise of the next release [nodes, cells] now, so that it can be stored first."""
        nodes = self.strategy.due(secret.counter.steps)
        return secret.counter.take(nodes, lambda node: self._draw(noise))

    def replay(self, secret: CountedSecret, drawn: IntArray) -> None:
        """Make the next release use noise that was drawn and stored before."""
        nodes = self.strategy.due(secret.counter.steps)
        if drawn.shape != (len(nodes), self.layout.size):
            raise InvalidInput(
                f"the stored noise has shape {drawn.shape}, but the next release uses "
                f"{(len(nodes), self.layout.size)}"
            )
        secret.counter.take(nodes, lambda node: drawn[node - nodes.start])

    def _draw(self, noise: Noise) -> IntArray:
        drawn = np.empty(self.layout.size, dtype=np.int64)
        noise.fill(self._noise_law, drawn)
        return drawn

    def state(self, secret: CountedSecret) -> dict[str, npt.NDArray[Any]]:
        """The open batch, the counter and its newest prefix."""
        counter = secret.counter.to_arrays()
        own = {f"counter.{name}": a for name, a in counter.items()}
        return {**own, **super().state(secret), "prefix": secret.prefix}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> CountedSecret:
        """The counter goes on where it stood."""
        secret, prefix = super().restore(arrays), "counter."
        saved = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        secret.counter = self.strategy.from_arrays(saved, self.layout.size, self._largest)
        secret.prefix = np.array(arrays["prefix"])
        return secret


def _peaks(length: int) -> list[int]:
    """Where the error of a counter can be largest: the end, and numbers that end in ones.

    Errors of the Toeplitz counters grow with t. Those of the trees add a positive amount per set
    bit, more for lower bits, so below ``length`` they peak where one bit of it is cleared and all
    lower ones are set.
    """
    bits = [bit for bit in range(length.bit_length()) if length >> bit & 1]
    filled = [(length >> bit << bit) - 1 for bit in bits]
    return [length, *(t for t in filled if t > 0)]
