"""Bounded noise as a local randomizer: true guarantee, law of the reports, no secure path."""

import math
from typing import ClassVar

import numpy as np
import pytest
from scipy import integrate, stats

from contracts.privatizer import TASK, PrivatizerContract, taking_part
from tacit.errors import InvalidInput
from tacit.grid import GRID
from tacit.privacy import Noise, Privatizer, Query, SecureNoise, SimulatedNoise
from tacit.privacy.bounded import bounded_delta, bounded_epsilon, paper_radius, tabular_delta
from tacit.privacy.local.additive import LocalAdditive, least_scales, proportional_radii
from tacit.statistics import Statistic
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


def task(horizon: int, participations: int = 1) -> Task:
    return Task("tabular", horizon, {"states": 2, "actions": 2}, True, 100, {}, participations)


def mechanism(scales, epsilon: float, delta: float, of: Task) -> LocalAdditive:
    return LocalAdditive(VisitCounts(of), of, "bounded", scales, requested=(epsilon, delta))


class TestBounded(PrivatizerContract):
    subject: ClassVar[type] = LocalAdditive

    def make(self, statistic: Statistic) -> Privatizer:
        assert isinstance(statistic, VisitCounts)
        return mechanism(least_scales(statistic, "bounded", 2.0, 0.1), 2.0, 0.1, TASK)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(5))

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        blocks = VisitCounts(TASK).layout.blocks
        radii = [np.full(b.size, guarantee.noise[f"{b.name} radius"]) for b in blocks]
        return [("bounded", np.concatenate(radii))] * 3

    raised: ClassVar[float] = -1e-4  # a search stops a little off

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Fresh reports: all cells that move, H = 3 or H - 1 each way, move that many times."""
        scales = least_scales(VisitCounts(TASK), "bounded", 1.0, 0.1, times)
        moved = [(scales["visits"], 3.0)] * 4 + [(scales["transitions"], 2.0)] * 2
        radii, shifts = zip(*(moved * times), strict=True)
        privatizer = mechanism(scales, 1.0, 0.1, taking_part(times))
        return privatizer, bounded_epsilon(radii, shifts, 0.1)

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        scales = least_scales(VisitCounts(TASK), "bounded", 1.0, 0.1)
        moved = [(scales["visits"], 3.0)] * 4 + [(scales["transitions"], 2.0)] * 2
        radii, shifts = map(np.array, zip(*(moved * times), strict=True))
        return mechanism(scales, 0.5, 0.1, taking_part(times)), bounded_delta(radii, shifts, 0.5)


class TestBoundedWithoutPrivacy(TestBounded):
    """C = 1 at epsilon 20: a radius below one count; said loudly, by every check."""

    def make(self, statistic: Statistic) -> Privatizer:
        assert isinstance(statistic, VisitCounts)
        return mechanism(proportional_radii(statistic, 0.9), 20.0, 0.1, TASK)


@pytest.mark.parametrize(
    ("epsilon", "budget", "true"),
    [  # C = 1; the coarser deltas of docs/papers/tabular_ldp.md#bounded-noise
        (0.2, 0.2 / 6, 0.0167),
        (2.0, 2.0 / 6, 0.276),
        (20.0, 20.0 / 6, 1.0),
        (0.2, 0.2, 0.324),
        (2.0, 2.0, 1.0),
    ],
)
def test_published_radii_get_their_true_delta(epsilon, budget, true) -> None:
    of = task(2)
    scales = proportional_radii(VisitCounts(of), paper_radius(budget, 0.1, 2, 2))
    said = mechanism(scales, epsilon, 0.1, of).guarantee
    assert true / 1.17 <= said.delta_at_requested_epsilon <= true * 1.001
    assert ("WEAKER than asked" in str(said)) == (true > 0.1)
    assert said.noise["transitions radius"] == pytest.approx(
        math.sqrt(2) * said.noise["visits radius"]
    )


def test_no_finite_epsilon_is_no_privacy() -> None:
    of = task(2)
    scales = proportional_radii(VisitCounts(of), paper_radius(20 / 6, 0.1, 2, 2))
    said = mechanism(scales, 20.0, 0.1, of).guarantee
    assert said.model == "none" and said.to_json()["epsilon"] is None
    assert said.delta_at_requested_epsilon == 1.0 and said.noise
    assert "NO PRIVACY" in str(said) and "the true delta is 1" in str(said)
    assert "No noise was added" not in str(said)


@pytest.mark.parametrize("epsilon", [0.2, 2.0, 20.0])
def test_tight_radii_are_private_and_not_wasteful(epsilon: float) -> None:
    of = task(2)
    statistic = VisitCounts(of)
    scales = least_scales(statistic, "bounded", epsilon, 0.1)
    said = mechanism(scales, epsilon, 0.1, of).guarantee
    assert epsilon * (1 - 1e-4) < said.epsilon <= epsilon
    assert 0.0999 < said.delta_at_requested_epsilon <= 0.1
    assert said.delta_at_requested_epsilon == pytest.approx(
        tabular_delta(scales["visits"], math.sqrt(2), 2, epsilon), rel=1e-9
    )
    halved = {name: radius / 2 for name, radius in scales.items()}
    assert mechanism(halved, epsilon, 0.1, of).guarantee.delta_at_requested_epsilon > 0.15


def test_participations_are_paid_for() -> None:
    once, twice = task(2), task(2, participations=2)
    statistic = VisitCounts(twice)
    one, two = (least_scales(statistic, "bounded", 2.0, 0.1, times)["visits"] for times in (1, 2))
    assert 1.3 * one < two < 2 * one
    paid = mechanism(proportional_radii(statistic, two), 2.0, 0.1, twice).guarantee
    assert 0.0999 < paid.delta_at_requested_epsilon <= 0.1 and paid.participations == 2
    unpaid = mechanism(proportional_radii(statistic, one), 2.0, 0.1, twice).guarantee
    assert unpaid.delta_at_requested_epsilon > 0.2
    assert mechanism(proportional_radii(statistic, one), 2.0, 0.1, once).guarantee.epsilon <= 2.0


def raw(y: float) -> float:
    return math.exp(-math.exp(1 / (1 - y * y))) if abs(y) < 0.999 else 0.0


def test_the_noise_in_a_report_has_the_declared_law() -> None:
    """KS at 1e-6: the right radius passes, half of it and 3/2 of it are rejected."""
    of = task(3)
    statistic = VisitCounts(of)
    privatizer = mechanism(least_scales(statistic, "bounded", 2.0, 0.1), 2.0, 0.1, of)
    noise, zero = SimulatedNoise(np.random.default_rng(2)), np.zeros(16, dtype=np.int64)
    reports = np.array([privatizer.encode(zero, None, noise).values for _ in range(500)]) * GRID
    grid = np.linspace(-1, 1, 4001)
    cdf = integrate.cumulative_simpson([raw(y) for y in grid], x=grid, initial=0)
    cdf /= cdf[-1]

    def fit(sample, radius: float) -> float:
        return stats.kstest(sample, lambda x: np.interp(x / radius, grid, cdf)).pvalue

    for block, cells in (("visits", slice(0, 8)), ("transitions", slice(8, 16))):
        radius, sample = privatizer.scales[block], reports[:, cells].ravel()
        assert np.abs(sample).max() < radius
        assert fit(sample, radius) > 1e-6 > max(fit(sample, radius / 2), fit(sample, radius * 1.5))
        variance = float(privatizer.law(1).variance(block))
        assert np.mean(sample**2) == pytest.approx(variance, rel=6 * math.sqrt(2 / sample.size))


def test_sums_reach_the_release_without_bias() -> None:
    of = task(3)
    statistic = VisitCounts(of)
    privatizer = mechanism(least_scales(statistic, "bounded", 2.0, 0.1), 2.0, 0.1, of)
    noise, counts = SimulatedNoise(np.random.default_rng(1)), np.zeros(16, dtype=np.int64)
    statistic.layout.views(counts)["visits"][:] = 1
    secret, users = privatizer.init(), 1000
    for _ in range(users):
        secret = privatizer.absorb(secret, privatizer.encode(counts, None, noise), 0)
    release = privatizer.release(secret, Query(0), noise)
    for name, mean in (("visits", 1.0), ("reward", 0.0), ("transitions", 0.0)):
        std = math.sqrt(release.law.variance(name))
        assert np.abs(release.blocks[name] - mean * users).max() < 6 * std


def test_there_is_no_secure_path() -> None:
    of = task(2)
    privatizer = mechanism(proportional_radii(VisitCounts(of), 20.0), 2.0, 0.1, of)
    with pytest.raises(InvalidInput, match="no exact sampler for bounded noise"):
        privatizer.encode(np.zeros(16, dtype=np.int64), None, SecureNoise())


def test_the_least_epsilon_is_checked_from_both_sides() -> None:
    radii, shifts = (14.0,) * 4 + (20.0,) * 2, (2.0,) * 4 + (1.0,) * 2
    epsilon = bounded_epsilon(radii, shifts, 0.1)
    from tacit.privacy.bounded import bounded_delta

    assert bounded_delta(np.array(radii), np.array(shifts), epsilon) <= 0.1
    assert bounded_delta(np.array(radii), np.array(shifts), epsilon * (1 - 1e-4)) > 0.1
    assert bounded_epsilon(radii, shifts, 0.9) == 0.0
    assert bounded_epsilon((0.5,), (2.0,), 0.9) == math.inf


def test_other_statistics_and_a_missing_delta_are_refused() -> None:
    of = task(2)

    class Other:
        layout = VisitCounts(of).layout
        sensitivity = VisitCounts(of).sensitivity

    scales = proportional_radii(VisitCounts(of), 20.0)
    with pytest.raises(InvalidInput, match="visit counts only"):
        LocalAdditive(Other(), of, "bounded", scales, requested=(1.0, 0.1))
    with pytest.raises(InvalidInput, match="requested_delta = 0"):
        mechanism(scales, 1.0, 0.0, of)
