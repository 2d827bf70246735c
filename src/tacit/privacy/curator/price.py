"""What Gram matrices and answers cost one user together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.statistics.pairs import FeaturePairs


@dataclass(frozen=True, eq=False)
class Price:
    """mu^2 of one stage as a function of the load on it, by pairs of features.

    A replaced step moves the Gram matrix by w^2 ``gram`` and an answer of range 1 by w^2
    ``target``, squared, for some pair of features. The two are not worst at the same pair, and the
    pair is fixed when the user has played, before anything of hers is released: so the cost is the
    largest sum over one pair, not the sum of the largest (spec linear_jdp, section 4, joint
    calibration). ``separate`` is that simpler sum, for any features of norm at most 1.

    Attributes:
        gram: squared Frobenius distances, by pair.
        target: squared distances of an answer of range 1, by pair.
        weight: the largest weight w.
        rounding: what rounding to the grid can add to either distance.
    """

    gram: Array
    target: Array
    weight: float
    rounding: float = 0.0

    @classmethod
    def joint(cls, pairs: FeaturePairs, weight: float, rounding: float = 0.0) -> Price:
        """For centred answers; only pairs that can be worst for some load are kept."""
        slack = 1e-5 if pairs.bounded_only else 1e-12
        gram, target = pairs.gram * (1 + slack), pairs.target * (1 + slack)
        kept = _frontier(gram, target)
        return cls(gram[kept], target[kept], weight, rounding)

    @classmethod
    def separate(cls, weight: float, *, centred: bool, rounding: float = 0.0) -> Price:
        """Gram sqrt2 w, answers 2 w R or, centred, w R; added up."""
        return cls(np.array([2.0]), np.array([1.0 if centred else 4.0]), weight, rounding)

    def stage(self, gram_load: float, target_load: float) -> float:
        """mu^2 of one stage.

        Args:
            gram_load: 1 / std^2 of the Gram noise, times what the counter multiplies.
            target_load: sum of (R / std)^2 over the answers.
        """
        gram, target = self._moved
        return float((gram_load * gram + target_load * target).max())

    @cached_property
    def _moved(self) -> tuple[Array, Array]:
        """Squared distances, weighted and rounded."""
        gram = (self.weight * np.sqrt(self.gram) + self.rounding) ** 2
        target = (self.weight * np.sqrt(self.target) + self.rounding) ** 2
        return gram, target


def _frontier(gram: Array, target: Array) -> IntArray:
    """Indices of the pairs that no other pair beats in both."""
    order = np.lexsort((-target, -gram))
    best = np.maximum.accumulate(target[order])
    first = np.concatenate([[True], target[order][1:] > best[:-1]])
    chosen: IntArray = order[first]
    return chosen
