"""The statistic of a learner that collects nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tacit.arrays import IntArray
from tacit.publication import Publication
from tacit.statistics.base import Layout, Norm, Relation, block_weights
from tacit.trajectory import Trajectory


class Nothing:
    """An empty contribution: reference policies need no data, and so protect it perfectly."""

    def __init__(self) -> None:
        self.layout = Layout([])

    def contribute(
        self, trajectory: Trajectory, publication: Publication, coin: int, out: IntArray
    ) -> None:
        """Write nothing."""

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
