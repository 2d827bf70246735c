"""Noise in proportion to public weights."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import pytest

import tacit
from contracts.composition import counts_l2, fresh_noise, gaussian_delta
from contracts.privatizer import TASK, PrivatizerContract, taking_part
from contracts.replay import ReplayNoise
from tacit.errors import InvalidInput
from tacit.policies.tabular import TabularPolicy
from tacit.privacy import Noise, Query, SimulatedNoise, accounting
from tacit.privacy.local.weighted import LocalWeighted
from tacit.publication import Publication
from tacit.statistics import Statistic
from tacit.statistics.base import Relation
from tacit.statistics.counts import PolicyTransitions, VisitCounts
from tacit.trajectory import Trajectory

RIVER = tacit.problem("river-swim", states=3, horizon=4).task(users=4000, reveal=["reward"])
POLICY = Publication(0, TabularPolicy(np.zeros((4, 3), dtype=np.int64)))


def made(statistic: Statistic, task=TASK, epsilon: float = 1.0) -> LocalWeighted:
    return LocalWeighted(statistic, task, requested=(epsilon, 1e-5))


class TestLocalShaped(PrivatizerContract):
    subject: ClassVar[type] = LocalWeighted

    def make(self, statistic: Statistic) -> LocalWeighted:
        return made(statistic)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(3))

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        std = guarantee.noise["std at weight 1"]
        return [("gaussian", np.full(self.statistic().layout.size, std))] * 3

    raised: ClassVar[float] = 5e-9

    def coming_back(self, times: int) -> tuple[LocalWeighted, float]:
        """Fresh reports: the squares of mu add up."""
        privatizer = made(self.statistic(), taking_part(times))
        return privatizer, fresh_noise(counts_l2(3) / privatizer.noise_std, times, 1e-5)

    def too_little(self, times: int) -> tuple[LocalWeighted, float]:
        privatizer = LocalWeighted(
            VisitCounts(TASK), taking_part(times), 30.0, requested=(0.5, 1e-5)
        )
        return privatizer, gaussian_delta(math.sqrt(times) * counts_l2(3) / 30.0, 0.5)


class TestWeighted(TestLocalShaped):
    """Cells of weight 0 are not sent, the others carry all the noise."""

    def statistic(self) -> Statistic:
        return PolicyTransitions(RIVER)

    def make(self, statistic: Statistic) -> LocalWeighted:
        return made(statistic, RIVER)

    def publication(self) -> Publication:
        return POLICY

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        rng, out = np.random.default_rng(1), []
        for _ in range(count):
            states = rng.integers(3, size=5)
            user = Trajectory(states, np.zeros(4, dtype=np.int64), np.zeros(4))
            out.append(np.zeros(self.statistic().layout.size, dtype=np.int64))
            self.statistic().contribute(user, POLICY, 0, out[-1])
        return out

    def without_chance(self, contributions: list[np.ndarray]) -> ReplayNoise:
        live = np.count_nonzero(self.statistic().weights(POLICY))
        return ReplayNoise([np.zeros(live, dtype=np.int64)] * 20)

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        weights = self.statistic().weights(POLICY)
        std = guarantee.noise["std at weight 1"]
        return [("gaussian", std * weights[weights > 0])] * 3

    def noisy_cells(self) -> np.ndarray:
        return np.flatnonzero(self.statistic().weights(POLICY))

    def coming_back(self, times: int) -> tuple[LocalWeighted, float]:
        """At each of H - 1 stages one transition may become another: 2 per stage, squared."""
        statistic = PolicyTransitions(RIVER)
        privatizer = made(statistic, dataclasses.replace(RIVER, participations=times))
        mu = math.sqrt(2.0 * 3) / privatizer.noise_std
        return privatizer, fresh_noise(mu, times, 1e-5)


def messages(privatizer: LocalWeighted, count: int) -> np.ndarray:
    noise = SimulatedNoise(np.random.default_rng(0))
    zero = np.zeros(privatizer.layout.size, dtype=np.int64)
    return np.array([privatizer.encode(zero, POLICY, noise).values for _ in range(count)])


def test_noise_is_where_the_weights_are_and_as_large_as_declared() -> None:
    """4000 draws of 27 live cells: the std is within 1% with probability over 1 - 1e-9."""
    statistic = PolicyTransitions(RIVER)
    privatizer = made(statistic, RIVER)
    sent = messages(privatizer, 4000) * 2.0**-24
    live = statistic.weights(POLICY) > 0
    assert (sent[:, ~live] == 0).all()
    declared = privatizer.noise_std
    assert sent[:, live].std() == pytest.approx(declared, rel=0.01)
    assert sent[:, live].std() != pytest.approx(declared / 2, rel=0.01)
    mu = statistic.sensitivity("l2", Relation.REPLACE_ONE) / sent[:, live].std()
    assert accounting.gaussian_epsilon(mu, 1e-5) == pytest.approx(1.0, rel=0.02)
    halved = accounting.gaussian_epsilon(2 * mu, 1e-5)
    assert halved > 1.8


def test_what_a_user_writes_into_a_silent_cell_is_dropped() -> None:
    privatizer = made(PolicyTransitions(RIVER), RIVER)
    noise = SimulatedNoise(np.random.default_rng(0))
    wild = np.full(privatizer.layout.size, 77, dtype=np.int64)
    report = privatizer.encode(wild, POLICY, noise)
    silent = privatizer.weights(POLICY) == 0
    assert silent.any() and (report.values[silent] == 0).all()


def test_the_law_of_a_release_is_exact_cell_by_cell() -> None:
    statistic = PolicyTransitions(RIVER)
    privatizer = made(statistic, RIVER)
    noise = SimulatedNoise(np.random.default_rng(0))
    other = Publication(1, TabularPolicy(np.ones((4, 3), dtype=np.int64)))
    secret, out = privatizer.init(), np.zeros(statistic.layout.size, dtype=np.int64)
    user = Trajectory(np.zeros(5, dtype=np.int64), np.zeros(4, dtype=np.int64), np.zeros(4))
    for publication in (POLICY, POLICY, other):
        statistic.contribute(user, publication, 0, out)
        report = privatizer.encode(out, publication, noise)
        secret = privatizer.absorb(secret, report, publication.version)
    release = privatizer.release(secret, Query(0), noise)
    variance = release.law.variance("transitions") / privatizer.noise_std**2
    assert np.allclose(variance[:, :, 0], 2) and np.allclose(variance[:, :, 1], 1)


def test_the_guarantee_follows_the_noise_not_the_request() -> None:
    statistic = PolicyTransitions(RIVER)
    std = made(statistic, RIVER).noise_std
    weak = LocalWeighted(statistic, RIVER, std / 2, requested=(1.0, 1e-5))
    assert weak.guarantee.epsilon > 2.0 and "WEAKER" in str(weak.guarantee)
    assert made(statistic, RIVER).guarantee.epsilon <= 1.0


def test_too_little_noise_for_the_grid_is_refused() -> None:
    statistic = PolicyTransitions(RIVER)
    with pytest.raises(InvalidInput, match="too small for the grid"):
        LocalWeighted(statistic, RIVER, 1e-4, requested=(1.0, 1e-5))


def test_small_weights_are_raised_to_what_the_grid_resolves() -> None:
    class Faint(PolicyTransitions):
        def weights(self, publication: Publication) -> np.ndarray:
            return 1e-3 * super().weights(publication)

    loud = LocalWeighted(Faint(RIVER), RIVER, 1.0, requested=(1.0, 1e-5))
    weights = loud.weights(POLICY)
    assert set(np.unique(weights)) == {0.0, 2.0**-8}
    assert messages(loud, 500).std(axis=0).max() == pytest.approx(2.0**16, rel=0.2)


def test_one_report_reaches_as_far_as_a_cell_of_full_weight() -> None:
    """The largest contribution and twelve standard deviations."""
    privatizer = made(VisitCounts(TASK))
    assert privatizer.max_increment == privatizer.message_bounds(None).max()
    assert privatizer.max_increment * 2.0**-24 > 12.0 * privatizer.noise_std


def test_sums_that_could_overflow_are_refused() -> None:
    many = dataclasses.replace(TASK, users=10**12)
    with pytest.raises(InvalidInput, match="64-bit"):
        made(VisitCounts(many), many)
    made(VisitCounts(TASK), dataclasses.replace(TASK, users=10**6))
