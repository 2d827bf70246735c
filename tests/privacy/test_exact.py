import math
from typing import ClassVar

import numpy as np

from contracts.privatizer import TASK, PrivatizerContract, taking_part
from tacit.privacy import Exact, Privatizer, Query, ZeroNoise
from tacit.statistics import Statistic
from tacit.statistics.counts import Nothing, VisitCounts


class TestExact(PrivatizerContract):
    subject: ClassVar[type] = Exact

    def make(self, statistic: Statistic) -> Privatizer:
        return Exact(statistic, TASK)

    tight: ClassVar[bool] = False

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Once was everything."""
        return Exact(self.statistic(), taking_part(times)), math.inf

    def too_little(self, times: int) -> tuple[Privatizer, None]:
        return Exact(self.statistic(), taking_part(times)), None


def test_it_releases_the_exact_sums_in_natural_units() -> None:
    statistic = VisitCounts(TASK)
    privatizer = Exact(statistic, TASK)
    secret = privatizer.init()
    one = np.arange(statistic.layout.size)
    for _ in range(3):
        report = privatizer.encode(one, None, ZeroNoise())
        secret = privatizer.absorb(secret, report, 0)
    release = privatizer.release(secret, Query(0), ZeroNoise())
    flat = np.concatenate([block.ravel() for block in release.blocks.values()])
    assert np.array_equal(flat, 3 * one * statistic.layout.units)
    assert release.source == "none"


def test_data_without_noise_has_infinite_epsilon_and_no_data_has_zero() -> None:
    assert Exact(VisitCounts(TASK), TASK).guarantee.epsilon == math.inf
    assert Exact(VisitCounts(TASK), TASK).guarantee.to_json()["epsilon"] is None
    nothing = Exact(Nothing(), TASK).guarantee
    assert (nothing.epsilon, nothing.delta, nothing.model) == (0.0, 0.0, "local")
