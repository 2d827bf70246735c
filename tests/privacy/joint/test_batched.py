"""Sums of separate batches: contract, law of the noise, and that too little noise is caught."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest

from contracts.composition import counts_l2, gaussian_delta, one_draw
from contracts.privatizer import TASK, PrivatizerContract, taking_part
from tacit.errors import InvalidInput
from tacit.privacy import Noise, Privatizer, Query, SimulatedNoise
from tacit.privacy.accounting import gaussian_epsilon, gaussian_mu
from tacit.privacy.joint.batched import BatchSums
from tacit.statistics import Relation, Statistic
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


def batched(statistic: Statistic, factor: float = 1.0, task: Task = TASK) -> BatchSums:
    least = BatchSums(statistic, task, requested=(1.0, 1e-5))
    std = factor * least.noise_std
    return BatchSums(statistic, task, std, requested=(1.0, 1e-5))


class TestBatchSums(PrivatizerContract):
    subject: ClassVar[type] = BatchSums

    def make(self, statistic: Statistic) -> Privatizer:
        return batched(statistic)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(8))

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        return [("gaussian", np.full(self.statistic().layout.size, guarantee.noise["batch std"]))]

    def together(self, privatizer: BatchSums, variances: np.ndarray) -> np.ndarray:
        """No two batches share any noise."""
        return np.diag(variances)

    raised: ClassVar[float] = 5e-9

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """All contributions of a person may be in one batch: distances add up."""
        privatizer = batched(self.statistic(), task=taking_part(times))
        return privatizer, one_draw(counts_l2(3) / privatizer.noise_std, times, 1e-5)

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        privatizer = BatchSums(self.statistic(), taking_part(times), 30.0, requested=(0.5, 1e-5))
        return privatizer, gaussian_delta(times * counts_l2(3) / 30.0, 0.5)


def test_the_noise_is_the_least_that_suffices() -> None:
    statistic = VisitCounts(TASK)
    exact = batched(statistic)
    moved = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert exact.noise_std == pytest.approx(moved / gaussian_mu(1.0, 1e-5), rel=1e-9)
    assert 0.9999 < exact.guarantee.epsilon <= 1.0 and exact.guarantee.model == "joint"


def test_halved_noise_is_said_to_be_weaker() -> None:
    weak = batched(VisitCounts(TASK), 0.5).guarantee
    mu = 2 * gaussian_mu(1.0, 1e-5)
    assert weak.epsilon == pytest.approx(gaussian_epsilon(mu, 1e-5), rel=1e-6) and weak.epsilon > 2
    assert weak.delta_at_requested_epsilon > 1e-5


def draws(privatizer: BatchSums, releases: int) -> np.ndarray:
    noise, secret = SimulatedNoise(np.random.default_rng(4)), privatizer.init()
    found = []
    for k in range(releases):
        nobody = np.zeros(privatizer.layout.size, dtype=np.int64)
        privatizer.absorb(secret, privatizer.encode(nobody, None, noise), k)
        blocks = privatizer.release(secret, Query(k + 1), noise).blocks
        found.append(np.concatenate([block.ravel() for block in blocks.values()]))
    return np.array(found)


def test_every_release_has_fresh_noise_of_the_declared_size() -> None:
    """4800 draws: the std is within 5% (5 standard errors); half or double of it is not."""
    privatizer = batched(VisitCounts(TASK))
    found = draws(privatizer, 300)
    declared = privatizer.law(1).scale("visits")
    assert found.std() == pytest.approx(declared, rel=0.05)
    assert np.abs(np.corrcoef(found[:-1].ravel(), found[1:].ravel())[0, 1]) < 0.08
    assert draws(batched(VisitCounts(TASK), 0.5), 300).std() < 0.6 * declared


def test_a_user_is_in_one_release_only() -> None:
    statistic = VisitCounts(TASK)
    privatizer, noise = batched(statistic, 1e-3), SimulatedNoise(np.random.default_rng(1))
    secret = privatizer.init()
    one = np.ones(statistic.layout.size, dtype=np.int64)
    privatizer.absorb(secret, privatizer.encode(one, None, noise), 0)
    first = privatizer.release(secret, Query(1), noise)
    assert first.users == 1 and np.allclose(first.blocks["visits"], 1.0, atol=0.2)
    privatizer.absorb_sums(secret, 2 * one, 2, None, noise)
    second = privatizer.release(secret, Query(2), noise)
    assert second.users == 2 and np.allclose(second.blocks["visits"], 2.0, atol=0.2)
    empty = privatizer.release(secret, Query(3), noise)
    assert empty.users == 0 and not empty.blocks["visits"].any()
    assert empty.law.variance("visits") == 0.0, "and its law says so"
    with pytest.raises(InvalidInput, match="made once, in order"):
        privatizer.release(secret, Query(2), noise)


def test_noise_that_the_grid_cannot_carry_and_sums_that_overflow_are_refused() -> None:
    statistic = VisitCounts(TASK)
    with pytest.raises(InvalidInput, match="too small for the grid"):
        BatchSums(statistic, TASK, 1e-9, requested=(1.0, 1e-5))
    crowded = dataclasses.replace(TASK, users=2**50)
    with pytest.raises(InvalidInput, match="leave the 64-bit integers"):
        BatchSums(VisitCounts(crowded), crowded, requested=(1.0, 1e-5))
