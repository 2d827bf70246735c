"""The published bit protocol: its true guarantee, its bias, and what its shuffler shows."""

import math
from typing import ClassVar

import numpy as np
import pytest

import tacit
from contracts.composition import bits_delta
from contracts.privatizer import TASK, PrivatizerContract, Question, taking_part
from contracts.replay import ReplayNoise
from tacit.agents import ShuffleOBI, paper_constants
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.privacy import Query, SimulatedNoise
from tacit.privacy.finite.bits import BinaryResponse
from tacit.privacy.shuffle.reshuffled import ReshuffledBits
from tacit.privacy.shuffle.shuffled import open_batch
from tacit.statistics import Statistic
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task
from tacit.trajectory import Trajectory

PROBLEM = tacit.problem("random-mdp", seed=21)
ONE = Task("tabular", 1, {"states": 1, "actions": 2}, True, 100)


def reshuffled(epsilon: float = 0.5, of: Task = TASK, reward_bits: int = 1) -> ReshuffledBits:
    return ReshuffledBits(
        VisitCounts(of),
        of,
        requested=(epsilon, 1e-6),
        reward_bits=reward_bits,
    )


class TestReshuffledBits(PrivatizerContract):
    subject: ClassVar[type] = ReshuffledBits

    def make(self, statistic: Statistic) -> ReshuffledBits:
        return reshuffled(reward_bits=2)

    def noise(self) -> SimulatedNoise:
        return SimulatedNoise(np.random.default_rng(5))

    def small(self) -> ReshuffledBits:
        return reshuffled(of=ONE, reward_bits=2)

    def questions(self) -> list[Question]:
        """One step: two bits for a reward, one for a visit, of two actions."""
        statistic, sent = VisitCounts(ONE), []
        for action, reward in ((0, 0.0), (0, 1.0), (1, 1.0), (1, 0.375)):
            out = np.zeros(statistic.layout.size, dtype=np.int64)
            life = Trajectory(np.zeros(2, dtype=int), np.array([action]), np.array([reward]))
            statistic.contribute(life, self.publication(), 0, out)
            sent.append(out)
        return [Question(self.publication(), 0, sent, self.small().guarantee.epsilon)]

    tight: ClassVar[bool] = False  # what is printed is weaker than what it asks for

    def coming_back(self, times: int) -> tuple[ReshuffledBits, float]:
        """Fresh rows, of which 2 H (m + 2) - 2 bits can differ: log ratios add up."""
        privatizer = reshuffled(of=taking_part(times), reward_bits=2)
        truth = privatizer.randomizer.bits.truth
        return privatizer, times * 22 * (math.log(truth) - math.log(2**64 - truth))

    def too_little(self, times: int) -> tuple[ReshuffledBits, float]:
        return reshuffled(of=taking_part(times), reward_bits=2), bits_delta(22 * times, 0.5, 0.5)

    def test_all_noise_comes_from_the_given_source(self) -> None:
        """Recorded reports instead of fresh ones: the release is their debiased sum, exactly."""
        privatizer, rng = self.make(self.statistic()), np.random.default_rng(3)
        recorded = [rng.integers(0, 3, size=privatizer.layout.size) for _ in range(3)]
        replay, secret = ReplayNoise(recorded), privatizer.init()
        for c in self.contributions(3):
            secret = privatizer.absorb(secret, privatizer.encode(c, self.publication(), replay), 0)
        release = privatizer.release(secret, Query(1), replay)
        p, q = privatizer.randomizer.bits.p, privatizer.randomizer.bits.q
        views = privatizer.layout.views(sum(recorded))
        for name, trials, bits in (("reward", 6, 2), ("visits", 3, 1), ("transitions", 2, 1)):
            exact = (views[name] - 3 * trials * q) / (p - q) / bits
            assert np.allclose(release.blocks[name], exact, rtol=1e-12)


@pytest.mark.parametrize(
    ("horizon", "m", "level"), [(2, 1, 10), (20, 1, 118), (2, 4, 22), (1, 2, 6)]
)
def test_the_local_level_is_that_of_all_bits_together(horizon: int, m: int, level: int) -> None:
    """(2H(m + 2) - 2) epsilon, not about H epsilon: docs/papers/tabular_ldp.md#e12."""
    of = Task("tabular", horizon, {"states": 2, "actions": 2}, True, 100)
    said = reshuffled(0.3, of, m).guarantee
    assert said.model == "local" and said.delta == 0.0 and said.also == ()
    assert said.epsilon == pytest.approx(level * 0.3) and said.epsilon <= level * 0.3
    assert said.requested_epsilon == 0.3 and "WEAKER than asked" in str(said)
    assert "no amplification" in str(said)


def test_bits_are_the_printed_ones() -> None:
    """1 - p / 2 is the chance of a true bit, with p = 2 / (e^eps + 1)."""
    p = 2 / (math.exp(0.7) + 1)
    assert reshuffled(0.7).randomizer.bits.p == pytest.approx(1 - p / 2, rel=1e-9)


def test_the_level_is_attained_by_the_worst_pair() -> None:
    """As many bits differ between the worst trajectories as the accounting says."""
    privatizer, statistic = reshuffled(reward_bits=4), VisitCounts(TASK)
    rows = []
    for trajectory in statistic.worst_pair():
        out = np.zeros(statistic.layout.size, dtype=np.int64)
        statistic.contribute(trajectory, None, 0, out)
        rows.append(out // privatizer.randomizer.steps)
    bits = privatizer.randomizer.bits
    assert np.abs(rows[0] - rows[1]).sum() == bits.differing == 2 * 3 * (4 + 2) - 2
    assert all((row <= privatizer.randomizer.trials).all() for row in rows)


def test_estimates_have_no_bias_and_the_stated_variance() -> None:
    """20,000 reports about one row, rewards that need rounding; 5 standard errors allowed.

    With the printed sum over H steps every transition cell would be off by p / (2 (1 - p)) = 1.1.
    """
    privatizer, noise = reshuffled(1.0, reward_bits=2), SimulatedNoise(np.random.default_rng(8))
    row = np.zeros(privatizer.layout.size, dtype=np.int64)
    views = privatizer.layout.views(row)
    views["reward"][0, 0, 1] = int(1.7 * STEPS)
    views["visits"][0, 0, 1], views["transitions"][0, 0, 1, 0] = 3, 2
    trials = 20_000
    reports = [privatizer.encode(row, None, noise).values for _ in range(trials)]
    secret = privatizer.init()
    secret.sums[:], secret.users = np.sum(reports, axis=0), trials
    release = privatizer.release(secret, Query(0), noise)
    law = privatizer.law(trials)
    for name, cell, truth in (
        ("reward", (0, 0, 1), 1.7),
        ("reward", (0, 1, 0), 0.0),
        ("visits", (0, 0, 1), 3.0),
        ("transitions", (0, 0, 1, 0), 2.0),
        ("transitions", (0, 1, 1, 1), 0.0),
    ):
        error = release.blocks[name][cell] / trials - truth
        assert abs(error) < 5 * math.sqrt(float(law.variance(name))) / trials * 1.05
    bits = privatizer.randomizer.bits
    single = np.array([privatizer.layout.views(r)["visits"][0, 0, 1] for r in reports])
    spread = single.var() / (bits.p - bits.q) ** 2 * trials
    assert spread == pytest.approx(float(law.variance("visits")), rel=0.06)
    empty = np.array([privatizer.layout.views(r)["reward"][0, 1, 0] for r in reports])
    spread = empty.var() / (2 * (bits.p - bits.q)) ** 2 * trials  # two bits for a reward of 1
    assert spread == pytest.approx(float(law.variance("reward")), rel=0.06)


def test_its_shuffler_shows_every_report_by_difference() -> None:
    """Two lists differ by the newest report, exactly: docs/papers/tabular_ldp.md#e13."""
    privatizer, rng = reshuffled(), np.random.default_rng(1)
    noise = SimulatedNoise(rng)
    rows = [rng.integers(0, 2, privatizer.layout.size) for _ in range(6)]
    sent = [privatizer.encode(row, None, noise).values for row in rows]
    for k in range(1, 6):
        before, after = (open_batch(0, sent[:n]).reports for n in (k, k + 1))
        assert np.array_equal(after.sum(axis=0) - before.sum(axis=0), sent[k])


def test_half_the_noise_is_refuted() -> None:
    """The exact delta of a row with twice the epsilon per bit exceeds the claim's."""
    said = reshuffled(0.3).guarantee
    bits = reshuffled(0.3).randomizer.bits
    assert bits.channel().delta(said.epsilon) < 1e-12
    loud = BinaryResponse.calibrate(2 * bits.epsilon, bits.domain, bits.differing)
    assert loud.channel().delta(said.epsilon) > 1e-3


def test_the_agent_runs_it_and_says_what_the_paper_claims() -> None:
    agent = ShuffleOBI(0.5, 1e-6, calibration="paper", reward_bits=2)
    result = tacit.simulate(PROBLEM, agent, 300, runs=1)
    assert np.isfinite(result.regret).all() and result.guarantee.model == "local"
    assert result.guarantee.epsilon == pytest.approx(14 * 0.5)
    notes = " ".join(result.agent["notes"])
    claim = paper_constants.shuffle_claim(2, 300, 0.5, 1e-6)
    assert "(111) leaves out step 2" in notes and f"central epsilon of {claim:.3g}" in notes
    assert result.agent["parameters"]["width"] == "paper"
    assert paper_constants.shuffle_claim(2, 10, 0.5, 1e-6) == math.inf


def test_the_claim_of_the_paper_is_evaluated_as_printed() -> None:
    n, delta = 2 * 10_000, 1e-6
    p = 2 / (math.e + 1)
    rest = p - math.sqrt(2 * p * math.log(2 / delta) / n)
    printed = 32 * math.log(4 / delta) / math.sqrt(n) / math.sqrt(rest) * (1 - rest)
    assert paper_constants.shuffle_claim(2, 10_000, 1.0, delta) == pytest.approx(printed)


def test_reward_bits_are_powers_of_two() -> None:
    with pytest.raises(InvalidInput, match="power of two"):
        reshuffled(reward_bits=3)
    with pytest.raises(InvalidInput, match="reward_bits = 0"):
        ShuffleOBI(1.0, reward_bits=0)
