import math
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from contracts.composition import counts_l1, counts_l2, fresh_noise, pure_delta
from contracts.composition import gaussian_delta as normal_delta
from contracts.privatizer import TASK, PrivatizerContract, taking_part
from contracts.replay import ReplayNoise
from tacit.errors import InvalidInput
from tacit.grid import FINE, GRID
from tacit.privacy import (
    Exact,
    GridLaw,
    Noise,
    Privatizer,
    Query,
    SecureNoise,
    SimulatedNoise,
)
from tacit.privacy.accounting import gaussian_delta
from tacit.privacy.local.additive import LocalAdditive, least_scales
from tacit.statistics import Relation, Statistic
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


def task(horizon: int, participations: int = 1) -> Task:
    return Task("tabular", horizon, {"states": 2, "actions": 2}, True, 100, {}, participations)


def laplace(statistic: Statistic, epsilon: float, scales=None, of: Task = TASK) -> LocalAdditive:
    scales = scales or least_scales(statistic, "laplace", epsilon)
    return LocalAdditive(statistic, of, "laplace", scales, requested=(epsilon, 0.0))


def gaussian(statistic, epsilon, delta, scales=None, of: Task = TASK) -> LocalAdditive:
    scales = scales or least_scales(statistic, "gaussian", epsilon, delta)
    return LocalAdditive(statistic, of, "gaussian", scales, requested=(epsilon, delta))


class TestLaplace(PrivatizerContract):
    subject: ClassVar[type] = LocalAdditive

    def make(self, statistic: Statistic) -> Privatizer:
        return laplace(statistic, 1.0)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(5))

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        return stated_noise(guarantee, "laplace", "scale")

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Fresh reports: pure epsilons add up."""
        scales = least_scales(self.statistic(), "laplace", 1.0, 0.0, times)
        privatizer = laplace(self.statistic(), 1.0, scales, of=taking_part(times))
        return privatizer, times * counts_l1(3) / scales["visits"]

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        scales = least_scales(self.statistic(), "laplace", 1.0)
        privatizer = laplace(self.statistic(), 0.5, scales, of=taking_part(times))
        return privatizer, pure_delta(times * counts_l1(3) / scales["visits"], 0.5)


def stated_noise(guarantee, kind: str, word: str) -> list[tuple[str, np.ndarray]]:
    """One draw for each of three reports, in every cell, as the guarantee states it."""
    blocks = VisitCounts(TASK).layout.blocks
    scales = [np.full(b.size, guarantee.noise[f"{b.name} {word}"]) for b in blocks]
    return [(kind, np.concatenate(scales))] * 3


class TestGaussian(TestLaplace):
    def make(self, statistic: Statistic) -> Privatizer:
        return gaussian(statistic, 1.0, 1e-5)

    def drawn(self, guarantee) -> list[tuple[str, np.ndarray]]:
        return stated_noise(guarantee, "gaussian", "std")

    raised: ClassVar[float] = 5e-9

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Fresh reports: the squares of mu add up."""
        scales = least_scales(self.statistic(), "gaussian", 1.0, 1e-5, times)
        privatizer = gaussian(self.statistic(), 1.0, 1e-5, scales, of=taking_part(times))
        return privatizer, fresh_noise(counts_l2(3) / scales["visits"], times, 1e-5)

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        scales = least_scales(self.statistic(), "gaussian", 1.0, 1e-5)
        privatizer = gaussian(self.statistic(), 0.5, 1e-5, scales, of=taking_part(times))
        return privatizer, normal_delta(math.sqrt(times) * counts_l2(3) / scales["visits"], 0.5)


class TestSecureLaplace(TestLaplace):
    """The same with OpenDP; OS entropy has no seed, so only order is replayed."""

    def noise(self) -> Noise:
        secure, law = SecureNoise(), laplace(self.statistic(), 1.0).noise_law
        if not hasattr(self, "recorded"):
            self.recorded = []
            for _ in range(8):
                draw = np.empty(len(law.scales), dtype=np.int64)
                secure.fill(law, draw)
                self.recorded.append(draw)
        return ReplayNoise(self.recorded)


@pytest.mark.parametrize("horizon", [1, 2, 20])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 20.0])
def test_tight_laplace_is_l1_over_epsilon_and_exactly_epsilon(horizon, epsilon) -> None:
    statistic = VisitCounts(task(horizon))
    mechanism = laplace(statistic, epsilon, of=task(horizon))
    assert mechanism.scales["visits"] == pytest.approx((6 * horizon - 2) / epsilon)
    assert epsilon * (1 - 1e-12) < mechanism.guarantee.epsilon <= epsilon
    assert mechanism.guarantee.delta == 0.0


def test_the_guarantee_follows_the_noise_not_the_request() -> None:
    statistic = VisitCounts(task(3))
    halved = {name: scale / 2 for name, scale in least_scales(statistic, "laplace", 1.0).items()}
    said = laplace(statistic, 1.0, halved, of=task(3)).guarantee
    assert said.epsilon == pytest.approx(2.0) and said.requested_epsilon == 1.0
    assert said.delta_at_requested_epsilon > 0.3
    halved = {n: s / 2 for n, s in least_scales(statistic, "gaussian", 1.0, 1e-5).items()}
    said = gaussian(statistic, 1.0, 1e-5, halved, of=task(3)).guarantee
    assert said.epsilon > 1.9 and said.delta_at_requested_epsilon > 100e-5
    doubled = {n: 4 * s for n, s in halved.items()}
    assert gaussian(statistic, 1.0, 1e-5, doubled, of=task(3)).guarantee.epsilon < 0.6


@pytest.mark.parametrize(
    ("horizon", "epsilon", "delta", "std"),
    [  # docs/papers/tabular_ldp.md#noise-scales, Gauss, column "tight"
        (2, 0.2, 0.1, 9.754),
        (2, 2.0, 0.1, 3.105),
        (2, 20.0, 0.1, 0.7993),
        (20, 1.0, 1e-5, 179.8),
    ],
)
def test_tight_gaussian_matches_the_specification(horizon, epsilon, delta, std) -> None:
    statistic = VisitCounts(task(horizon))
    mechanism = gaussian(statistic, epsilon, delta, of=task(horizon))
    assert mechanism.scales["transitions"] == pytest.approx(std, rel=1e-3)
    assert mechanism.guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert mechanism.guarantee.delta_at_requested_epsilon <= delta


@pytest.mark.parametrize(
    ("horizon", "epsilon", "delta0", "true_delta"),
    [  # docs/papers/tabular_ldp.md#e2 and e3: sigma = c H / eps, c^2 = 4 ln(24 / delta0)
        (2, 0.2, 0.1, 4.8e-4),
        (2, 2.0, 0.1, 0.0109),
        (2, 20.0, 0.1, 0.986),
        (2, 1.0, 1e-5, 1.673e-5),
        (20, 1.0, 1e-5, 1.02e-4),
    ],
)
def test_the_published_gaussian_gets_its_true_delta(horizon, epsilon, delta0, true_delta) -> None:
    statistic = VisitCounts(task(horizon))
    sigma = math.sqrt(4 * math.log(24 / delta0)) * horizon / epsilon
    scales = {block.name: sigma for block in statistic.layout.blocks}
    said = gaussian(statistic, epsilon, delta0, scales, of=task(horizon)).guarantee
    assert said.delta_at_requested_epsilon == pytest.approx(true_delta, rel=0.02)


@settings(max_examples=150)
@given(st.floats(1e-3, 30.0), st.integers(1, 9), st.integers(1, 20))
def test_no_request_is_exceeded_by_a_rounding_error(epsilon, times, horizon) -> None:
    of = task(horizon, participations=times)
    scales = least_scales(VisitCounts(of), "laplace", epsilon, 0.0, times)
    said = laplace(VisitCounts(of), epsilon, scales, of=of).guarantee
    assert said.epsilon <= epsilon and said.delta_at_requested_epsilon == 0.0


def test_participations_compose() -> None:
    statistic = VisitCounts(task(2, participations=4))
    scales = least_scales(statistic, "laplace", 1.0)
    assert laplace(statistic, 1.0, scales, of=task(2, 4)).guarantee.epsilon == pytest.approx(4.0)
    scales = least_scales(statistic, "gaussian", 1.0, 1e-5)
    four = gaussian(statistic, 1.0, 1e-5, scales, of=task(2, 4)).guarantee
    mu = 2 * statistic.sensitivity("l2", Relation.REPLACE_ONE) / scales["visits"]
    assert four.delta_at_requested_epsilon == pytest.approx(gaussian_delta(mu, 1.0))


@pytest.mark.parametrize("source", ["simulated", "secure"])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_noise_in_a_report_has_the_declared_law(kind: str, source: str) -> None:
    """KS at 1e-6: the right scale passes, 2/3 and 3/2 of it are rejected, for both sources."""
    statistic = VisitCounts(task(3))
    mechanism = laplace(statistic, 1.0) if kind == "laplace" else gaussian(statistic, 1.0, 1e-5)
    noise = SecureNoise() if source == "secure" else SimulatedNoise(np.random.default_rng(2))
    zero = np.zeros(statistic.layout.size, dtype=np.int64)
    reports = [mechanism.encode(zero, None, noise).values for _ in range(300)]
    sample = np.concatenate(reports) * GRID
    law = stats.laplace if kind == "laplace" else stats.norm
    scale = mechanism.scales["visits"]
    assert stats.kstest(sample, law(scale=scale).cdf).pvalue > 1e-6
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(sample, law(scale=wrong * scale).cdf).pvalue < 1e-6


def test_noise_is_independent_across_cells_and_reports() -> None:
    """No two cells or reports share a draw; correlations stay within 6 standard errors."""
    statistic = VisitCounts(task(3))
    mechanism, noise = laplace(statistic, 1.0), SimulatedNoise(np.random.default_rng(0))
    zero = np.zeros(statistic.layout.size, dtype=np.int64)
    reports = np.array([mechanism.encode(zero, None, noise).values for _ in range(4000)])
    assert len(np.unique(reports)) > 0.99 * reports.size
    cells = np.corrcoef(reports.T)[np.triu_indices(reports.shape[1], 1)]
    assert np.abs(cells).max() < 6 / math.sqrt(4000)


def test_sums_and_their_variance_reach_the_release() -> None:
    statistic = VisitCounts(task(3))
    mechanism, noise = gaussian(statistic, 2.0, 1e-5), SimulatedNoise(np.random.default_rng(1))
    contribution = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.layout.views(contribution)["visits"][:] = 1
    statistic.layout.views(contribution)["reward"][:] = 2**23
    users, secret = 2000, mechanism.init()
    for _ in range(users):
        secret = mechanism.absorb(secret, mechanism.encode(contribution, None, noise), 0)
    release = mechanism.release(secret, Query(0), noise)
    assert release.source == "simulated" and release.users == users
    for name, per_user in (("visits", 1.0), ("reward", 0.5), ("transitions", 0.0)):
        std = math.sqrt(release.law.variance(name))
        assert std == pytest.approx(mechanism.scales[name] * math.sqrt(users))
        assert np.abs(release.blocks[name] - per_user * users).max() < 6 * std


def test_replayed_noise_is_never_handed_out_twice() -> None:
    law, out = GridLaw("laplace", np.full(2, 5000.0)), np.zeros(2, dtype=np.int64)
    noise = ReplayNoise([np.array([1, 2])])
    noise.fill(law, out)
    assert out.tolist() == [1, 2]
    with pytest.raises(InvalidInput, match="nothing is ever drawn twice"):
        noise.fill(law, out)


def test_secure_draws_differ_every_time() -> None:
    law = GridLaw("gaussian", np.full(50, 1e6))
    draws = np.zeros((2, 50), dtype=np.int64)
    for draw in draws:
        SecureNoise().fill(law, draw)
    assert not np.array_equal(draws[0], draws[1])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_requests_are_refused(bad: float) -> None:
    statistic = VisitCounts(task(2))
    with pytest.raises(InvalidInput, match="epsilon = "):
        least_scales(statistic, "laplace", bad)
    with pytest.raises(InvalidInput, match="epsilon = "):
        least_scales(statistic, "gaussian", bad, 1e-5)


def test_scales_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match="too small for the grid"):
        laplace(VisitCounts(task(2)), 1e7)
    with pytest.raises(InvalidInput, match="positive number per cell"):
        GridLaw("laplace", np.array([1.0, 0.0]))
    with pytest.raises(InvalidInput, match="kind = 'cauchy'"):
        GridLaw("cauchy", np.ones(2))


@pytest.mark.parametrize(("mu", "epsilon"), [(0.268, 1.0), (1.0, 1.0), (2.0, 10.0)])
def test_a_discrete_gaussian_is_gaussian_at_the_required_fineness(mu, epsilon) -> None:
    """Its exact hockey-stick sum, at 1/16 of the required steps, is off by less than 256e-9."""
    steps = FINE["gaussian"] // 16
    shift = round(mu * steps)
    k = np.arange(-12 * steps, 12 * steps + shift)
    p = np.exp(-(k**2) / (2 * steps**2))
    q = np.exp(-((k - shift) ** 2) / (2 * steps**2))
    delta = np.maximum(q - math.exp(epsilon) * p, 0).sum() / p.sum()
    assert delta == pytest.approx(gaussian_delta(shift / steps, epsilon), rel=256e-9)


def test_sums_that_could_overflow_are_refused_before_anything_is_collected() -> None:
    many = Task("tabular", 20, {"states": 2, "actions": 2}, True, 10**8)
    with pytest.raises(InvalidInput, match="64-bit"):
        laplace(VisitCounts(many), 1e-6, of=many)
    laplace(VisitCounts(many), 0.1, of=many)
    endless = Task("tabular", 20, {"states": 2, "actions": 2}, True, 10**12)
    with pytest.raises(InvalidInput, match="64-bit"):
        Exact(VisitCounts(endless), endless)


def test_one_simulated_report_marks_the_release() -> None:
    statistic = VisitCounts(task(2))
    mechanism, secret = laplace(statistic, 1.0), None
    secret = mechanism.init()
    zero = np.zeros(statistic.layout.size, dtype=np.int64)
    for noise in (SecureNoise(), SimulatedNoise(np.random.default_rng(0)), SecureNoise()):
        secret = mechanism.absorb(secret, mechanism.encode(zero, None, noise), 0)
    assert mechanism.release(secret, Query(1), SecureNoise()).source == "simulated"


def test_calibration_pays_for_every_participation() -> None:
    many = task(2, participations=3)
    statistic = VisitCounts(many)
    said = laplace(
        statistic, 1.0, least_scales(statistic, "laplace", 1.0, 0.0, 3), of=many
    ).guarantee
    assert 1 - 1e-9 < said.epsilon <= 1.0
    scales = least_scales(statistic, "gaussian", 1.0, 1e-5, 3)
    said = gaussian(statistic, 1.0, 1e-5, scales, of=many).guarantee
    assert 1 - 1e-6 < said.epsilon <= 1.0 and said.delta_at_requested_epsilon <= 1e-5


def test_draws_that_would_be_cut_off_are_refused() -> None:
    with pytest.raises(InvalidInput, match="would leave the 64-bit integers"):
        GridLaw("gaussian", np.array([2.0**60]))
    with pytest.raises(InvalidInput, match="64-bit"):
        laplace(VisitCounts(task(2)), 1e-12)


def test_gaussian_noise_has_no_guarantee_at_delta_zero() -> None:
    statistic = VisitCounts(task(2))
    scales = least_scales(statistic, "gaussian", 1.0, 1e-5)
    with pytest.raises(InvalidInput, match="requested_delta = 0"):
        gaussian(statistic, 1.0, 0.0, scales)
    with pytest.raises(InvalidInput, match="requested_epsilon = -1"):
        LocalAdditive(statistic, TASK, "laplace", scales, requested=(-1.0, 0.0))


def test_one_report_reaches_as_far_as_its_noisiest_cell() -> None:
    """Room for sums is made for that one."""
    scales = {block.name: 30.0 for block in VisitCounts(TASK).layout.blocks}
    scales["transitions"] = 300.0
    privatizer = laplace(VisitCounts(TASK), 1.0, scales)
    reach = privatizer.message_bounds(None)
    assert privatizer.max_increment == reach.max() > 5 * reach.min()
    transitions = VisitCounts(TASK).layout.views(reach)["transitions"]
    assert (transitions == reach.max()).all()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("times", [1, 3])
def test_by_default_the_noise_is_the_least_for_all_participations(kind: Any, times: int) -> None:
    delta = 0.0 if kind == "laplace" else 1e-5
    made = LocalAdditive(VisitCounts(TASK), taking_part(times), kind, requested=(1.0, delta))
    assert 0.9999 < made.guarantee.epsilon <= 1.0 and made.guarantee.delta == delta
