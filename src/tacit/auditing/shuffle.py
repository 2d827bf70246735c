"""What an observer of the shuffler sees: whole batches, opened."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.auditing.pairs import Case, contribution
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.privacy import SimulatedNoise
from tacit.privacy.shuffle import Shuffled
from tacit.trajectory import Trajectory


class BatchTarget:
    """One batch behind the shuffler, one person's trajectory replaced; output is its sums.

    The others live through a third trajectory, so that only noise can hide the person.
    """

    source = "simulated"

    def __init__(self, bound: BoundAgent, case: Case) -> None:
        if not isinstance(bound.privatizer, Shuffled):
            raise InvalidInput("only a shuffled agent has batches to audit")
        self._shuffler = bound.privatizer
        self.name = f"one opened batch of {self._shuffler.batch:,} users"
        self.distance = case.distance
        public = case.publication
        context = {name: x for name, x in public.context.items() if name not in case.context}
        self._publication = dataclasses.replace(public, context=context)  # nobody is aimed at
        self._bound = bound
        H = self._shuffler.statistic.horizon
        self._lives = case.lives
        idle = Trajectory(np.zeros(H + 1, dtype=np.int64), np.zeros(H, dtype=np.int64), np.zeros(H))
        self._others = [contribution(bound, idle, self._publication, step) for step in range(H)]

    def sample(self, worlds: IntArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        """The sums of independent batches."""
        noise = SimulatedNoise(rng)
        return np.array([self._batch(world, noise) for world in worlds.tolist()], dtype=np.float64)

    def _batch(self, world: int, noise: SimulatedNoise) -> IntArray:
        shuffler, H, times = self._shuffler, len(self._others), self._bound.task.participations
        secret = shuffler.init()
        for k in range(shuffler.batch):
            row = self._others[k % H]
            if k < times:
                row = contribution(self._bound, self._lives[world], self._publication, k)
            shuffler.absorb(secret, shuffler.encode(row, self._publication, noise), 0)
        return secret.sums

    def score(self, outputs: Array) -> Array | None:
        """Unknown: it is learned."""
        return None
