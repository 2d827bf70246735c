"""Laplace, Gaussian or bounded noise on the whole contribution vector, added by the user.

One joint charge covers everything a user sends: the statistic is asked for its sensitivity with
every block divided by its noise scale, which gives epsilon (Laplace, L1) or mu (Gaussian, L2)
directly. For bounded noise the privacy losses of all cells that can move are convolved. No budget
is split by hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import GRID, TAIL, least_scale, require_coarse, whole_steps
from tacit.kernels.raw.noise import add_scaled
from tacit.privacy import accounting, bounded
from tacit.privacy.base import BlockLaw, LocalPrivatizer, Query, Secret, require_room
from tacit.privacy.events import BoundedEvent, Event, GaussianEvent, PureEvent
from tacit.privacy.noise import GridLaw, Kind, Noise
from tacit.privacy.sentences import ONE_REPORT
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Norm, Relation, Statistic
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task
from tacit.validate import number

_SCALE_NAMES: dict[Kind, str] = {"laplace": "scale", "gaussian": "std", "bounded": "radius"}

_NORMS: dict[Kind, Norm] = {"laplace": "l1", "gaussian": "l2", "bounded": "l1"}

_VARIANCES: dict[Kind, float] = {"laplace": 2.0, "gaussian": 1.0, "bounded": bounded.VARIANCE}
"""Variance of noise of scale 1."""

_SCOPES: dict[Kind, str] = {
    "laplace": "pure: L1 sensitivity over scale, joint over all blocks",
    "gaussian": "joint over all blocks",
    "bounded": "convolved privacy losses of all cells that can move, rounded up",
}


def least_scales(
    statistic: Statistic, kind: Kind, epsilon: float, delta: float = 0.0, participations: int = 1
) -> dict[str, float]:
    """The least noise for (epsilon, delta), equal in all blocks but for radii of bounded noise.

    Laplace noise is purely epsilon-private, with b = m L1 / epsilon for m participations.
    """
    if kind == "bounded":
        visits = _visit_counts(statistic)
        ratio = math.sqrt(visits.layout.blocks[0].shape[1])
        facts = visits.horizon, ratio, participations, len(visits.masses) - 1
        radius = bounded.calibrate_radius(epsilon, delta, *facts)
        return proportional_radii(visits, radius)
    if kind == "laplace":
        most = number(epsilon, "epsilon", low=0.0, low_open=True)
        near = participations * statistic.sensitivity("l1", Relation.REPLACE_ONE) / most
        times: float = participations
    else:
        most = accounting.gaussian_mu(epsilon, delta) / math.sqrt(participations)
        near, times = statistic.sensitivity("l2", Relation.REPLACE_ONE) / most, 1.0

    def suffices(scale: float) -> bool:
        return times * _spent(statistic, kind, _equal(statistic, scale)) <= most

    return _equal(statistic, least_scale(near, suffices))


def proportional_radii(statistic: VisitCounts, radius: float) -> dict[str, float]:
    """R1 for rewards and visits, R2 = sqrt(S) R1 for transitions.

    See docs/papers/tabular_ldp.md#randomizers.
    """
    states = statistic.layout.blocks[0].shape[1]
    return {**_equal(statistic, radius), "transitions": math.sqrt(states) * radius}


def _equal(statistic: Statistic, scale: float) -> dict[str, float]:
    return {block.name: scale for block in statistic.layout.blocks}


def _spent(statistic: Statistic, kind: Kind, scales: Mapping[str, float]) -> float:
    """Sensitivity over scale: epsilon of Laplace noise, mu of Gaussian noise, in one report."""
    inverse = {name: 1.0 / scale for name, scale in scales.items()}
    return statistic.sensitivity(_NORMS[kind], Relation.REPLACE_ONE, inverse)


def _visit_counts(statistic: Statistic) -> VisitCounts:
    if not isinstance(statistic, VisitCounts):
        raise InvalidInput("the guarantee of bounded noise is known for visit counts only")
    return statistic


def _event(
    statistic: Statistic, kind: Kind, scales: Mapping[str, float], times: int, asked: float
) -> Event:
    """Everything that one person sends in that many reports."""
    if kind == "laplace":
        return PureEvent(times * _spent(statistic, kind, scales))
    if kind == "gaussian":
        return GaussianEvent.of(math.sqrt(times) * _spent(statistic, kind, scales), 1.0)
    # Per block, its whole mass leaves one cell and enters another: no other trajectories are worse
    # (proofs/bounded_noise.md).
    masses = _visit_counts(statistic).masses
    cells = [(scales[name], float(mass)) for name, mass in masses.items()] * 2 * times
    radii, shifts = zip(*cells, strict=True)
    return BoundedEvent(radii, shifts, number(asked, "requested_epsilon", low=0.0, low_open=True))


class LocalAdditive(LocalPrivatizer[Secret]):
    """Every user adds independent noise to every cell, then sends; the collector adds up.

    Args:
        statistic: what is sent; asked for its own sensitivity.
        task: the public task.
        kind: "laplace", "gaussian", or "bounded" (simulated only).
        scales: noise scale of every block, in natural units (b, standard deviation or radius); by
            default the least for what is requested.
        requested: epsilon and delta that were asked for, the delta being that at which a guarantee
            with one is stated; the guarantee is computed from ``scales`` alone.
    """

    def __init__(
        self,
        statistic: Statistic,
        task: Task,
        kind: Kind,
        scales: Mapping[str, float] | None = None,
        *,
        requested: tuple[float, float],
    ) -> None:
        self._statistic = statistic
        self.layout = statistic.layout
        times = task.participations
        self.scales = dict(scales or least_scales(statistic, kind, *requested, times))
        self.kind = kind
        self.secure = kind != "bounded"
        self.factors = whole_steps(self.layout.units)
        steps = [np.full(b.size, self.scales[b.name] / GRID) for b in self.layout.blocks]
        self.noise_law = GridLaw(kind, np.concatenate(steps))
        require_coarse("noise", min(self.scales.values()), kind)
        require_room(statistic, task, GRID, math.sqrt(2) * max(self.scales.values()))
        own = statistic.sensitivity("l1", Relation.ADD_REMOVE_ONE) / GRID
        reach = np.minimum(own + TAIL[kind] * self.noise_law.scales, 2.0**62)
        self._reach: IntArray = np.ceil(reach).astype(np.int64)
        self.max_increment = int(self._reach.max())
        self.event = _event(statistic, kind, self.scales, times, requested[0])
        self.guarantee = self.event.guarantee(
            task,
            model="local",
            mechanism=f"{kind} noise on every cell of one report per {task.counted}",
            accountant=_SCOPES[kind],
            requested=requested,
            noise={f"{name} {_SCALE_NAMES[kind]}": s for name, s in self.scales.items()},
            assumptions=(ONE_REPORT,),
        )

    def law(self, users: int) -> BlockLaw:
        """Independent noise of that many users, summed."""
        own = {name: scale**2 * _VARIANCES[self.kind] for name, scale in self.scales.items()}
        variances = {name: np.asarray(users * variance) for name, variance in own.items()}
        return BlockLaw(self.kind, self.scales, variances)

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: contribution plus fresh noise, in whole steps of the grid."""
        message = np.empty(self.layout.size, dtype=np.int64)
        noise.fill(self.noise_law, message)
        add_scaled(contribution, self.factors, message)
        return message

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """L2 (Gaussian noise) or L1 distance in units of noise, over the declared one."""
        apart = (second - first) * self.factors / self.noise_law.scales
        distance = float(np.linalg.norm(apart, 2 if _NORMS[self.kind] == "l2" else 1))
        return distance / _spent(self._statistic, self.kind, self.scales)

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

    @property
    def max_influence(self) -> float:
        """The far tail of the noise, against what one person can honestly add to the cell."""
        honest = self._statistic.masses  # type: ignore[attr-defined]
        cells = np.concatenate([np.full(b.size, honest[b.name]) for b in self.layout.blocks])
        return float((self._reach * GRID / cells).max())

    def message_bounds(self, publication: Publication) -> IntArray:
        """The largest contribution and the tail of the noise, whatever was published."""
        return self._reach

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """The sums so far; their noise was added by the users."""
        values = secret.sums * GRID
        law = self.law(secret.users)
        return Release(secret.users, self.layout.views(values), law, secret.source)
