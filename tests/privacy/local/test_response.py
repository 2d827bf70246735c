import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from contracts.composition import bits_delta
from contracts.entropy import Law
from contracts.privatizer import TASK, PrivatizerContract, Question, taking_part
from contracts.randomizer import RandomizerContract, convolved, independent_bits
from contracts.replay import ReplayNoise
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.raw.randomizers import debias, respond, round_sums
from tacit.privacy import Noise, Privatizer, Query, SecureNoise, SimulatedNoise
from tacit.privacy.finite.bits import BinaryResponse
from tacit.privacy.local.response import (
    LocalResponse,
    PooledResponse,
    differing_bits,
    response_bits,
)
from tacit.statistics import Statistic
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task
from tacit.trajectory import Trajectory


def task(horizon: int, participations: int = 1, states: int = 2, actions: int = 2) -> Task:
    sizes = {"states": states, "actions": actions}
    return Task("tabular", horizon, sizes, True, 100, {}, participations)


def response(epsilon: float, of: Task = TASK, bits=None) -> LocalResponse:
    statistic = VisitCounts(of)
    bits = bits or response_bits(statistic, epsilon, of.participations)
    return LocalResponse(statistic, of, bits, requested_epsilon=epsilon)


def contribution(of: Task, states, actions, rewards) -> np.ndarray:
    statistic = VisitCounts(of)
    out = np.zeros(statistic.layout.size, dtype=np.int64)
    trajectory = Trajectory(np.array(states), np.array(actions), np.array(rewards, dtype=float))
    statistic.contribute(trajectory, None, 0, out)
    return out


TINY = task(1, states=1)


def one_step() -> list[np.ndarray]:
    """Everybody who can be told apart in it, some rewards between 0 and 1 included."""
    return [
        contribution(TINY, [0, 0], [action], [reward])
        for action in (0, 1)
        for reward in (0.0, 1.0, 0.25)
    ]


def bit_loss(privatizer: LocalResponse) -> float:
    truth = privatizer.randomizer.bits.truth
    return math.log(truth) - math.log(2**64 - truth)


class TestPooledResponse(RandomizerContract):
    """Two cells of two bits and of one; the sums of the first are counted in quarters."""

    subject: ClassVar[type] = PooledResponse

    def cases(self) -> list[PooledResponse]:
        bits = BinaryResponse.calibrate(2.0, 3, 3)
        return [PooledResponse(bits, np.array([2, 1]), np.array([4, 1]))]

    def inputs(self, randomizer: PooledResponse) -> list[np.ndarray]:
        return [np.array([quarters, one]) for quarters in range(9) for one in (0, 1)]

    def declared(self, randomizer: PooledResponse, value: np.ndarray) -> Law:
        """Round up as often as the rest is large, flip every bit, add up the bits of a cell."""
        truth, law = Fraction(randomizer.bits.truth, 2**64), {}
        whole, rest = divmod(int(value[0]), 4)
        for up, chance in ((0, 1 - Fraction(rest, 4)), (1, Fraction(rest, 4))):
            row = [1] * (whole + up) + [0] * (2 - whole - up)
            flipped = [truth if bit else 1 - truth for bit in [*row[:2], value[1]]]
            for (a, b, c), mass in independent_bits(flipped).items() if chance else ():
                law[a + b, c] = law.get((a + b, c), 0) + chance * mass
        return law

    def test_a_report_is_the_sum_of_its_bits(self) -> None:
        (case,) = self.cases()
        alone = convolved([self.declared(case, np.array([4, 0]))], 2)
        assert alone == self.declared(case, np.array([4, 0])) and len(alone) == 6


class TestResponse(PrivatizerContract):
    subject: ClassVar[type] = LocalResponse

    def make(self, statistic: Statistic) -> Privatizer:
        assert isinstance(statistic, VisitCounts)
        bits = response_bits(statistic, 5.0)
        return LocalResponse(statistic, TASK, bits, requested_epsilon=5.0)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(5))

    def small(self) -> Privatizer:
        return response(1.0, TINY)

    def questions(self) -> list[Question]:
        """One step: four bits, of which two for its reward and two for its action."""
        return [Question(self.publication(), 0, one_step(), self.small().guarantee.epsilon)]

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Fresh reports, of which 6 H - 2 bits can differ: log ratios add up."""
        privatizer = response(1.0, taking_part(times))
        return privatizer, times * 16 * bit_loss(privatizer)

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        privatizer = response(0.5, taking_part(times), response_bits(self.statistic(), 1.0))
        return privatizer, bits_delta(16 * times, bit_loss(privatizer), 0.5)

    def test_all_noise_comes_from_the_given_source(self) -> None:
        """Recorded reports instead of fresh ones: the release is their debiased sum, exactly."""
        privatizer = self.make(self.statistic())
        rng = np.random.default_rng(3)
        recorded = [rng.integers(0, 3, size=privatizer.layout.size) for _ in range(3)]
        replay, secret = ReplayNoise(recorded), privatizer.init()
        for c in self.contributions(3):
            secret = privatizer.absorb(secret, privatizer.encode(c, self.publication(), replay), 0)
        release = privatizer.release(secret, Query(1), replay)
        p, q = privatizer.randomizer.bits.chances
        views = privatizer.layout.views(sum(recorded))
        for name, trials in (("reward", 3), ("visits", 3), ("transitions", 2)):
            exact = (views[name] - float(3 * trials * q)) / float(p - q)
            assert np.allclose(release.blocks[name], exact, rtol=1e-12)


class TestSecureResponse(TestResponse):
    """Reports of the exact sampler, recorded once."""

    def noise(self) -> Noise:
        if not hasattr(self, "recorded"):
            privatizer = self.make(self.statistic())
            self.recorded = [
                privatizer.encode(c, self.publication(), SecureNoise()).values
                for c in self.contributions(8)
            ]
        return ReplayNoise(self.recorded)


@pytest.mark.parametrize("epsilon", [0.2, 2.0, 20.0])
@pytest.mark.parametrize("horizon", [1, 2, 20])
def test_tight_bits_spend_epsilon_over_6h_minus_2(horizon: int, epsilon: float) -> None:
    mechanism = response(epsilon, task(horizon))
    said = mechanism.guarantee
    assert epsilon * (1 - 1e-9) < said.epsilon <= epsilon and said.delta == 0.0
    assert said.noise["epsilon per bit"] == pytest.approx(epsilon / (6 * horizon - 2))
    assert mechanism.channels()[0].epsilon == pytest.approx(said.epsilon, rel=1e-12)


@pytest.mark.parametrize(
    ("horizon", "epsilon", "paper", "tight"),
    [  # docs/papers/tabular_ldp.md#noise-scales, response: std of one N_p cell
        (2, 0.2, 60.00, 50.00),
        (2, 2.0, 5.993, 4.992),
        (2, 20.0, 0.5358, 0.4255),
        (20, 1.0, 523.1, 514.3),
    ],
)
def test_standard_deviations_of_the_specification(horizon, epsilon, paper, tight) -> None:
    of = task(horizon)
    for std, total in ((tight, epsilon), (paper, epsilon * (6 * horizon - 2) / (6 * horizon))):
        law = response(total, of).law(1)
        assert math.sqrt(law.variance("transitions")) == pytest.approx(std, rel=2e-4)
        assert law.variance("visits") * (horizon - 1) == pytest.approx(
            law.variance("transitions") * horizon
        )


def test_the_guarantee_follows_the_bits_not_the_request() -> None:
    statistic = VisitCounts(TASK)
    weak = response(1.0, bits=response_bits(statistic, 2.0)).guarantee
    assert weak.epsilon == pytest.approx(2.0) and weak.requested_epsilon == 1.0
    exact = response(2.0).channels()[0].delta(1.0)
    assert weak.delta_at_requested_epsilon == pytest.approx(exact, rel=1e-9) and exact > 4e-3
    assert "WEAKER than asked" in str(weak)


def test_participations_are_paid_for() -> None:
    many = task(2, participations=3)
    assert 1 - 1e-9 < response(1.0, many).guarantee.epsilon <= 1.0
    once = response_bits(VisitCounts(many), 1.0)
    assert response(1.0, many, once).guarantee.epsilon == pytest.approx(3.0)


@pytest.mark.parametrize("reward_bits", [1, 2, 4])
def test_every_bit_of_a_reward_is_paid_for(reward_bits: int) -> None:
    """2 H (m + 2) - 2 bits can differ: they share what is asked for, whatever m is."""
    statistic = VisitCounts(TASK)
    mechanism = LocalResponse(statistic, TASK, requested_epsilon=1.0, reward_bits=reward_bits)
    bits, differing = mechanism.randomizer.bits, 2 * 3 * (reward_bits + 2) - 2
    assert bits.differing == differing
    law = mechanism.law(7)
    for name, mass in (("reward", 3), ("visits", 3), ("transitions", 2)):
        per_unit = reward_bits if name == "reward" else 1  # bits, so many of them for a mass of 1
        flips = 7 * mass * per_unit * bits.p * bits.q / (bits.p - bits.q) ** 2
        assert law.variance(name) == pytest.approx(flips / per_unit**2, rel=1e-9)
        assert law.scale(name) == pytest.approx(1.0 / (bits.p - bits.q), rel=1e-12)
    assert 1.0 - 1e-9 < differing * bits.epsilon_per_bit <= mechanism.guarantee.epsilon <= 1.0
    first, second = (np.zeros(statistic.layout.size, dtype=np.int64) for _ in range(2))
    for life, out in zip(statistic.worst_pair(), (first, second), strict=True):
        statistic.contribute(life, None, 0, out)
    assert mechanism.relative_shift(first, second, None) == 1.0


def test_a_randomizer_of_fewer_differing_bits_is_refused() -> None:
    """Its epsilon would not be that of a whole report."""
    statistic = VisitCounts(TASK)
    bits = response_bits(statistic, 1.0)
    with pytest.raises(InvalidInput, match="16 bits at most, but here 34 can differ"):
        LocalResponse(statistic, TASK, bits, requested_epsilon=1.0, reward_bits=4)
    with pytest.raises(InvalidInput, match="15 bits at most, but here 16 can differ"):
        fewer = BinaryResponse(bits.domain, 15, bits.truth)
        LocalResponse(statistic, TASK, fewer, requested_epsilon=1.0)
    with pytest.raises(InvalidInput, match="reward_bits = 3, but it must be a power of two"):
        LocalResponse(statistic, TASK, requested_epsilon=1.0, reward_bits=3)


def test_fewer_bits_than_could_differ() -> None:
    """One state and one action: only the H reward bits can differ, and there are 3H - 1 bits."""
    assert differing_bits(VisitCounts(task(4, states=1, actions=1))) == 11
    assert differing_bits(VisitCounts(task(4))) == 22


def test_no_two_trajectories_differ_in_more_bits() -> None:
    """All pairs at S = A = H = 2 with whole rewards: at most 6H - 2 bits, reached."""
    of, worst = task(2), 0
    rows = []
    for code in range(8**2):
        steps = [(code >> 3 * h) & 7 for h in range(2)]
        states, actions = [s & 1 for s in steps], [s >> 1 & 1 for s in steps]
        rewards = [float(s >> 2) for s in steps]
        counts = contribution(of, [*states, 0], actions, rewards)
        rows.append(counts / np.where(np.arange(counts.size) < 4, STEPS, 1))
    worst = max(np.abs(a - b).sum() for a in rows for b in rows)
    assert worst == 6 * 2 - 2 == differing_bits(VisitCounts(of))


def exact_law(own: float, trials: int, bits) -> np.ndarray:
    """Law of one cell's sum when its count is real: floor ones, one bit of chance the rest."""
    law = np.ones(1)
    for i in range(trials):
        x = min(max(own - i, 0.0), 1.0)
        p = float(bits.q + (bits.p - bits.q) * x)
        law = np.convolve(law, [1 - p, p])
    return law


@pytest.mark.parametrize("source", ["simulated", "secure"])
def test_reports_have_the_exact_law_and_no_other(source: str) -> None:
    """Chi-square per cell at 1e-6: right probabilities pass, twice the epsilon per bit fails."""
    of = task(3)
    mechanism = response(10.0, of)
    counts = contribution(of, [0, 0, 1, 0], [0, 0, 1], [0.3, 0.45, 1.0])
    noise = SecureNoise() if source == "secure" else SimulatedNoise(np.random.default_rng(2))
    reports = np.array([mechanism.encode(counts, None, noise).values for _ in range(4000)])
    halved = response_bits(VisitCounts(of), 20.0)
    cells = [(0, 0.75, 3), (3, 1.0, 3), (4, 2.0, 3), (7, 1.0, 3), (8, 1.0, 2), (9, 1.0, 2)]
    refused = 0
    for cell, own, trials in [*cells, (5, 0.0, 3), (15, 0.0, 2)]:
        seen = np.bincount(reports[:, cell], minlength=trials + 1)
        right = 4000 * exact_law(own, trials, mechanism.randomizer.bits)
        assert stats.chisquare(seen, right).pvalue > 1e-6
        wrong = 4000 * exact_law(own, trials, halved)
        refused += stats.chisquare(seen, wrong).pvalue < 1e-6
    assert refused == 8


def test_cells_are_independent() -> None:
    """Given the counts, correlations of the reported sums stay within 6 standard errors."""
    of = task(3)
    mechanism, noise = response(4.0, of), SimulatedNoise(np.random.default_rng(0))
    counts = contribution(of, [0, 0, 1, 0], [0, 0, 1], [0.3, 0.45, 1.0])
    reports = np.array([mechanism.encode(counts, None, noise).values for _ in range(4000)])
    pairs = np.corrcoef(reports.T)[np.triu_indices(reports.shape[1], 1)]
    assert np.abs(pairs).max() < 6 / math.sqrt(4000)


def test_the_release_is_unbiased_with_the_declared_variance() -> None:
    """Real rewards included: every cell within 6 standard errors, spread as declared."""
    of = task(3)
    mechanism, noise = response(10.0, of), SimulatedNoise(np.random.default_rng(4))
    counts = contribution(of, [0, 0, 1, 0], [0, 0, 1], [0.3, 0.45, 1.0])
    users, secret = 4000, mechanism.init()
    for _ in range(users):
        secret = mechanism.absorb(secret, mechanism.encode(counts, None, noise), 0)
    release = mechanism.release(secret, Query(0), noise)
    truth = mechanism.layout.views(counts * mechanism.layout.units)
    z = []
    for name, block in release.blocks.items():
        std = math.sqrt(release.law.variance(name) + (users / 4 if name == "reward" else 0))
        z.append(((block - users * truth[name]) / std).ravel())
    z = np.concatenate(z)
    assert np.abs(z).max() < 6
    assert 0.4 < np.sqrt(np.mean(z**2)) < 1.7  # 16 cells: outside with probability below 1e-5


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 5 * STEPS))
def test_rounding_is_to_a_neighbour_and_compiled_equals_plain(seed: int, total: int) -> None:
    sums, steps = np.array([total, total % 7]), np.array([STEPS, 1])
    ones, plain = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    round_sums(sums, steps, np.random.default_rng(seed), ones)
    round_sums.py_func(sums, steps, np.random.default_rng(seed), plain)
    assert np.array_equal(ones, plain) and ones[1] == total % 7
    assert total // STEPS <= ones[0] <= -(-total // STEPS)


def test_compiled_and_plain_reports_agree() -> None:
    ones, trials = np.array([0, 2, 3, 9, -4]), np.array([3, 3, 3, 3, 0])
    reports = []
    for function in (respond, respond.py_func):
        hits, rng = np.zeros(5, dtype=np.int64), np.random.default_rng(8)
        function(ones, trials, 0.8, 0.2, rng, hits)
        reports.append((hits.tolist(), rng.random()))
    assert reports[0] == reports[1] and (np.array(reports[0][0]) <= trials).all()
    out = np.zeros((2, 5))
    debias(ones, trials, 7, 0.8, 0.2, out[0])
    debias.py_func(ones, trials, 7, 0.8, 0.2, out[1])
    assert np.array_equal(out[0], out[1])
    assert out[0, 1] == pytest.approx((2 - 7 * 3 * 0.2) / 0.6)


def test_rounding_has_the_right_chance() -> None:
    """2/3 of a step is rounded up 2/3 of the time (6 standard errors)."""
    steps = np.full(30_000, STEPS)
    sums = np.full(30_000, STEPS + int(Fraction(2, 3) * STEPS))
    ones = np.zeros(30_000, dtype=np.int64)
    round_sums(sums, steps, np.random.default_rng(1), ones)
    assert set(ones) == {1, 2}
    assert abs(ones.mean() - 5 / 3) < 6 * math.sqrt(2 / 9 / 30_000)


def test_stage_dependent_counts_are_refused() -> None:
    staged = Task("tabular", 3, {"states": 2, "actions": 2}, False, 100)
    with pytest.raises(InvalidInput, match="pooled over the stages"):
        response_bits(VisitCounts(staged), 1.0)
    with pytest.raises(InvalidInput, match="requested_epsilon = 0"):
        statistic = VisitCounts(TASK)
        LocalResponse(statistic, TASK, response_bits(statistic, 1.0), requested_epsilon=0.0)


def test_one_dishonest_report_counts_as_its_worst_bit() -> None:
    """A bit that is set for sure, or not set, moves an estimate by so many people."""
    for epsilon in (0.5, 4.0):
        privatizer = response(epsilon, TINY)
        bits = privatizer.randomizer.bits
        worst = max(abs(bit - bits.q) / (bits.p - bits.q) for bit in (0, 1))
        assert privatizer.max_influence == pytest.approx(worst) and worst > 1.0


def test_no_report_adds_more_than_is_said_to_any_sum() -> None:
    """All bits of a cell reported as ones; a cell of the longest block attains it."""
    privatizer = response(1.0)
    reach = privatizer.randomizer.trials
    assert privatizer.max_increment == reach.max() > 0
