"""What an observer of the shuffler sees: whole batches, opened."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.privacy import SimulatedNoise
from tacit.privacy.shuffle import Shuffled
from tacit.publication import Publication
from tacit.trajectory import Trajectory


class BatchTarget:
    """One batch behind the shuffler, its first user's trajectory replaced; output is its sums.

    The others live through a third trajectory, so that only noise can hide the first one. Sums of
    one-cell reports are all there is to know about a batch without order.
    """

    source = "simulated"

    def __init__(self, bound: BoundAgent, publication: Publication) -> None:
        if not isinstance(bound.privatizer, Shuffled):
            raise InvalidInput("only a shuffled agent has batches to audit")
        self._shuffler = bound.privatizer
        self.name = f"one opened batch of {self._shuffler.batch:,} users"
        self._bound = bound
        self._publication = publication
        H = self._shuffler.statistic.horizon
        self._worlds = [self._contribution(t, 0) for t in bound.statistic.worst_pair()]
        idle = Trajectory(np.zeros(H + 1, dtype=np.int64), np.zeros(H, dtype=np.int64), np.zeros(H))
        self._others = [self._contribution(idle, step) for step in range(H)]

    def _contribution(self, trajectory: Trajectory, coin: int) -> IntArray:
        out = np.zeros(self._bound.statistic.layout.size, dtype=np.int64)
        self._bound.statistic.contribute(trajectory, self._publication, coin, out)
        return out

    def sample(self, world: int, trials: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """The sums of that many independent batches."""
        noise = SimulatedNoise(rng)
        return np.array([self._batch(world, noise) for _ in range(trials)], dtype=np.float64)

    def _batch(self, world: int, noise: SimulatedNoise) -> IntArray:
        shuffler, H = self._shuffler, len(self._others)
        secret = shuffler.init()
        for k in range(shuffler.batch):
            row = self._worlds[world] if k == 0 else self._others[k % H]
            shuffler.absorb(secret, shuffler.encode(row, self._publication, noise), 0)
        return secret.sums

    def score(self, outputs: Array) -> Array | None:
        """Unknown: it is learned."""
        return None
