"""Running sums released through a continual counter, charged once for the whole stream.

All contributions between two releases form one item of the counter's stream. A user is in exactly
one item, so the cost of everything ever released is mu = a Delta / sigma, a the column norm of the
counter and Delta the statistic's L2 sensitivity, jointly over all blocks
(docs/papers/mixture_jdp.md#composition). With Laplace noise of scale b on the nodes of a tree it is
epsilon = m Delta / b, m the nodes that hold one item and Delta the L1 sensitivity, and pure
(proofs/continual_counters.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import GRID, least_scale
from tacit.privacy import accounting
from tacit.privacy.base import TRUSTED, AuditRecord, LogLikelihoodRatio
from tacit.privacy.counters.base import Strategy
from tacit.privacy.counters.state import CounterState
from tacit.privacy.events import Event, GaussianEvent, PureEvent
from tacit.privacy.joint.batched import BatchSecret, GaussianLaw, NoisySums, SumsKind
from tacit.privacy.noise import Noise, weakest
from tacit.release import Release
from tacit.statistics.base import Relation, Statistic, bounds_lifetimes
from tacit.task.task import Task
from tacit.validate import integer


class CountedSecret(BatchSecret):
    """The open batch, the counter's state, and what is public besides.

    Attributes:
        counter: where the counter stands.
        prefix: the newest one, in grid steps.
        begun: the prefix with which the counter began anew, and so the period.
        past: by counter that ended before, its steps.
    """

    __slots__ = ("begun", "counter", "past", "prefix")
    stored = BatchSecret.stored

    def __init__(self, sums: IntArray, counter: CounterState) -> None:
        super().__init__(sums)
        self.counter = counter
        self.prefix: Array = np.zeros(len(sums))
        self.begun: Array = np.zeros(len(sums))
        self.past: list[int] = []

    @property
    def steps(self) -> int:
        """Releases so far."""
        return sum(self.past) + self.counter.steps


@dataclass(frozen=True)
class LaplaceLaw:
    """A sum of independent Laplace draws in every cell.

    Attributes:
        node: the b of one of them.
        std: standard deviation of the sum.
    """

    node: float
    std: float
    name: str = "laplace"

    def scale(self, block: str) -> float:
        """The b of one draw."""
        return self.node

    def variance(self, block: str) -> Array:
        """Exact variance of every entry."""
        return np.asarray(self.std**2)


def _shift(statistic: Statistic, strategy: Strategy, largest: int, kind: SumsKind) -> float:
    """How far one user can move everything published, in natural units."""
    if kind == "laplace":
        return strategy.column_sum() * statistic.sensitivity("l1", Relation.REPLACE_ONE)
    steps = statistic.sensitivity("l2", Relation.REPLACE_ONE) / GRID
    return strategy.shift(steps, statistic.layout.size, largest) * GRID


def _largest(statistic: Statistic, task: Task, batch: int) -> int:
    """Bound on one cell of one item: a full batch of users, each with all its mass there.

    A statistic that knows a better bound on what one user adds to a cell says ``largest_cell()``.
    A batch that closes by the clock may be everybody: what is beyond the bound is cut off, and
    bounds on lives do not hold for cells that are (proofs/lifetimes.md).
    """
    if task.rule is not None and task.rule.attendance == "private":
        batch = task.users
    own = getattr(statistic, "largest_cell", None)
    per_user = own() if own else statistic.sensitivity("l1", Relation.ADD_REMOVE_ONE)
    return math.ceil(batch * per_user / GRID)


def counted_noise(
    statistic: Statistic,
    task: Task,
    strategy: Strategy,
    batch: int,
    epsilon: float,
    delta: float,
    kind: SumsKind = "gaussian",
) -> float:
    """The least scale of a node's noise for (epsilon, delta) over the whole stream."""
    shift = _shift(statistic, strategy, _largest(statistic, task, batch), kind)
    times = task.participations
    if kind == "laplace":
        return least_scale(
            times * shift / epsilon, lambda scale: _pure(times * shift, scale) <= epsilon
        )
    most = accounting.gaussian_mu(epsilon, delta) / times
    return least_scale(shift / most, lambda scale: shift / scale <= most)


def _pure(shift: float, scale: float) -> float:
    """What Laplace noise costs, rounded up."""
    from tacit.privacy.charges import rounded_up  # needs SciPy, which devices lack

    return rounded_up(Fraction(shift) / Fraction(scale))


class CountedSums(NoisySums[CountedSecret]):
    """A curator that adds contributions up and publishes noisy prefix sums.

    Args:
        statistic: what each user contributes; asked for its own sensitivity.
        task: the public task.
        strategy: the counter; its length is the number of releases with data.
        scale: of one node's noise, natural units: its standard deviation, or the b of Laplace
            noise; by default the least for what is requested.
        kind: of the noise; Laplace noise goes through trees only, and is purely epsilon-private.
        batch: largest number of users between two releases.
        requested: epsilon and delta that were asked for, the delta being that at which epsilon is
            stated; the guarantee is computed from ``scale``.
    """

    served: Literal["local", "joint"] | None = "joint"

    def __init__(
        self,
        statistic: Statistic,
        task: Task,
        strategy: Strategy,
        scale: float | None = None,
        *,
        kind: SumsKind = "gaussian",
        batch: int,
        requested: tuple[float, float],
    ) -> None:
        if scale is None:
            scale = counted_noise(statistic, task, strategy, batch, *requested, kind)
        super().__init__(statistic, scale, kind)
        self.strategy = strategy
        self.batch = integer(batch, "batch", low=1)
        self._precisions: dict[int, Array] = {}
        self._largest = _largest(statistic, task, self.batch)
        self.rounding = strategy.rounding_sensitivity(self.layout.size, self._largest) * GRID
        shift = _shift(statistic, strategy, self._largest, kind)
        shift *= task.participations  # columns of C may overlap in every row
        pure = kind == "laplace"
        if pure:
            self.event: Event = PureEvent(_pure(shift, self.scale))
            scales = {"node scale": self.scale, "nodes of one item": strategy.column_sum()}
        else:
            self.event = GaussianEvent.of(shift, self.scale)
            scales = {"node std": self.scale, "column norm": strategy.column_norm()}
        self.guarantee = self.event.guarantee(
            task,
            model="joint",
            mechanism=f"{kind} noise on running sums through a {self.strategy.name} counter",
            accountant="pure, one charge for the stream" if pure else "one charge for the stream",
            requested=requested,
            noise={**scales, "releases": strategy.length},
            assumptions=TRUSTED,
            lifetime=bounds_lifetimes(statistic),
        )

    def renew(self, secret: CountedSecret) -> None:
        """The counter begins again; where it is a new one, prefixes go on from the last."""
        super().renew(secret)
        counter = self.strategy.renew(secret.counter)
        if counter is not secret.counter and secret.counter.steps:
            secret.past.append(secret.counter.steps)
            secret.counter, secret.begun = counter, secret.prefix

    def law(self, users: int) -> GaussianLaw | LaplaceLaw:
        """The law of the noisiest release; it does not depend on users."""
        return self._noise(self.strategy.worst_std())

    def _law(self, secret: CountedSecret) -> GaussianLaw | LaplaceLaw:
        """Of the newest prefix: counters that began anew have independent noise."""
        return self._noise(math.hypot(*map(self._units, [*secret.past, secret.counter.steps])))

    def _units(self, steps: int) -> float:
        """Standard deviation of what one counter shows after so many steps, for unit nodes."""
        if steps > self.strategy.length:
            return self.strategy.closing_std()
        return self.strategy.error_std(steps) if steps else 0.0

    def _noise(self, units: float) -> GaussianLaw | LaplaceLaw:
        """The law of noise that has this many standard deviations of a node."""
        std = units * self.noise_std
        return LaplaceLaw(self.scale, std) if self.kind == "laplace" else GaussianLaw(std)

    def init(self) -> CountedSecret:
        """Empty batch, fresh counter."""
        counter = self.strategy.init(self.layout.size, self._largest)
        return CountedSecret(np.zeros(self.layout.size, dtype=np.int64), counter)

    def _next(self, secret: CountedSecret, number: int, noise: Noise) -> Release:
        """The noisy prefix with the batch as its last item; release 0, before anybody, is zeros.

        One release more than the counter has steps closes it. The newest one is public and may be
        asked for again, also after a restart: users of the open batch are not in it.
        """
        done = secret.steps
        if number == 0 and done == 0 and secret.users == 0:
            values = np.zeros(self.layout.size)
        elif number == done > 0:
            values = secret.prefix * GRID
        elif number == done + 1:
            item = secret.counter, secret.sums, lambda node: self._draw(noise)
            if secret.counter.steps < self.strategy.length:
                own, _ = self.strategy.step(*item)
            else:
                own = self.strategy.close(item[0], secret.prefix - secret.begun, *item[1:])
            secret.prefix = values = secret.begun + own
            secret.sums[:] = 0
            secret.open = 0
            secret.source = weakest(secret.source, noise.source)
            values = values * GRID
        else:
            raise InvalidInput(
                f"release {number} was asked for, but the next one is {done + 1}; a release is "
                "made once, in order"
            )
        law = self._law(secret)
        users = secret.users - secret.open
        return Release(users, self.layout.views(values), law, secret.source)

    def audit_view(self, secret: CountedSecret, release: Release) -> Array:
        """What the counter has published with it, of its own period."""
        own = secret.prefix - secret.begun
        return self.strategy.audit_view(secret.counter.public, own) * GRID

    def _exact(self, batches: IntArray) -> IntArray:
        """What the counter shows of them."""
        return self.strategy.expected(batches)

    def _unmixed(self, apart: Array) -> Array:
        """The noise has one matrix in every cell."""
        releases = len(apart)
        if releases not in self._precisions:
            self._precisions[releases] = self.strategy.precision(releases)
        product: Array = self._precisions[releases] @ apart
        return product

    def log_likelihood_ratio(self, record: AuditRecord) -> LogLikelihoodRatio:
        """Of all releases; of Laplace noise node by node, which the prefixes of a tree show."""
        if self.kind == "gaussian":
            return super().log_likelihood_ratio(record)
        b, c = self.strategy.factors()
        count, units = len(record.released), self.layout.units
        shown = np.linalg.solve(b[:count, :count], np.array(record.released))

        def off(batches: list[IntArray]) -> float:
            exact = c[:count, :count] @ (np.array(batches[:count]) * units)
            return float(np.abs(shown - exact).sum())

        return LogLikelihoodRatio((off(record.first) - off(record.second)) / self.scale)

    def draw(self, secret: CountedSecret, noise: Noise) -> IntArray:
        """Draw the noise of the next release [nodes, cells] now, so that it can be stored first."""
        nodes = self.strategy.due(secret.counter.steps)
        return secret.counter.take(nodes, lambda node: self._draw(noise))

    def replay(self, secret: CountedSecret, drawn: IntArray) -> None:
        """Make the next release use noise that was drawn and stored before."""
        nodes = self.strategy.due(secret.counter.steps)
        self._require_shape(drawn, len(nodes))
        secret.counter.take(nodes, lambda node: drawn[node - nodes.start])

    def state(self, secret: CountedSecret) -> dict[str, npt.NDArray[Any]]:
        """The open batch, the counter and its newest prefix; what was before it, if there was."""
        counter = secret.counter.to_arrays()
        own = {f"counter.{name}": a for name, a in counter.items()}
        if secret.past:
            own |= {"begun": secret.begun, "past": np.array(secret.past)}
        return {**own, **super().state(secret), "prefix": secret.prefix}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> CountedSecret:
        """The counter goes on where it stood."""
        secret, prefix = super().restore(arrays), "counter."
        saved = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        secret.counter = self.strategy.from_arrays(saved, self.layout.size, self._largest)
        secret.prefix = np.array(arrays["prefix"])
        if "past" in arrays:
            secret.begun, secret.past = np.array(arrays["begun"]), arrays["past"].tolist()
        return secret
