"""The statistic of a learner that collects nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.publication import Publication
from tacit.statistics.base import BatchStatistic, Layout, Norm, Relation, block_weights
from tacit.trajectory import Trajectory


class Nothing(BatchStatistic):
    """An empty contribution: reference policies need no data, and so protect it perfectly."""

    def __init__(self) -> None:
        self.layout = Layout([])

    def add_many(
        self,
        states: npt.NDArray[Any],
        actions: npt.NDArray[Any],
        rewards: Array,
        publication: Publication,
        coins: IntArray,
        out: IntArray,
    ) -> None:
        """Add nothing."""

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """Zero: no trajectory changes an empty vector."""
        block_weights(self.layout, norm, relation, scale)
        return 0.0

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Any two: none of them shows."""
        nobody = np.zeros(0, dtype=np.int64)
        return Trajectory(nobody, nobody, np.zeros(0)), Trajectory(nobody, nobody, np.zeros(0))
