"""Returns behind a shuffler: crowds of one direction, and nothing else is counted on."""

import dataclasses
import itertools
import math
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from scipy import optimize, stats

import tacit
from contracts.privatizer import PrivatizerContract, Question
from contracts.replay import ReplayNoise
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.learner import Learner
from tacit.policies.parametric import ParametricPolicy, scoring
from tacit.privacy import Privatizer, SimulatedNoise
from tacit.privacy.finite.sliding import Sliding
from tacit.privacy.shuffle.directions import ShuffledReturns
from tacit.problems.classic_control import cart_pole
from tacit.publication import Publication
from tacit.statistics.search import SharedReturn
from tacit.streams import planner_streams
from tacit.task.task import Task

D = 4


def task(users: int = 4000):
    return cart_pole().task(users=users)


def made(crowd: int, epsilon0: float, epsilon: float = 1.0, delta: float = 1e-5):
    return ShuffledReturns(
        SharedReturn(task()),
        task(),
        crowd=crowd,
        requested=(epsilon, delta),
        randomizer=Sliding.calibrate(epsilon0, 3, 1),
    )


@pytest.fixture
def published():
    bound = tacit.agent("tacit-search", epsilon=2.0, model="shuffle").bind(task())
    return Learner(bound, SimulatedNoise(np.random.default_rng(0))).publish(planner_streams(0, 0))


def exact_delta(report: Sliding, crowd: int, epsilon: float) -> float:
    """Largest over what the others are, by all ways that a crowd can report."""
    worst = 0.0
    places = range(report.largest + 1)
    for others in itertools.combinations_with_replacement(places, crowd - 1):
        laws = []
        for own in places:
            law: Counter[tuple[int, ...]] = Counter()
            for outputs in itertools.product(range(report.outputs), repeat=crowd):
                chance = math.prod(
                    report.chances[s, j] for s, j in zip((own, *others), outputs, strict=True)
                )
                law[tuple(sorted(outputs))] += chance
            laws.append(law)
        for one, other in itertools.permutations(laws, 2):
            above = sum(max(one[k] - math.exp(epsilon) * other[k], 0.0) for k in one)
            worst = max(worst, above)
    return worst


class OneDirection(SharedReturn):
    """Everybody plays the same one."""

    def __init__(self, facts: Task) -> None:
        super().__init__(facts)
        self.directions = 1


def crowded_delta(report: Sliding, crowd: int, at: float) -> float:
    """The blanket's bound, summed over how many of the crowd say which word in its place.

    A report is a fair draw of a word with chance 3 q, whatever the person's own is; see
    proofs/search.md. A report alone is never worse off.
    """
    p, q, growth = report.p, report.q, math.exp(at)
    says = np.array([row for row in np.ndindex(*[crowd + 1] * 3) if sum(row) <= crowd])
    chances = stats.multinomial.pmf(
        np.column_stack([says, crowd - says.sum(axis=1)]), crowd, [q, q, q, 1 - 3 * q]
    )
    values = 3 * np.array([p - growth * q, q - growth * p, q - growth * q])
    return min(
        float(chances @ np.maximum(says @ values, 0.0)) / (crowd * 3 * q), max(p - growth * q, 0.0)
    )


class TestShuffledReturns(PrivatizerContract):
    """One direction, a crowd of one: every report opens a batch, so the contract's counts hold."""

    stored: ClassVar[bool] = False
    subject: ClassVar[type] = ShuffledReturns
    exactness: ClassVar[float] = 1e-6

    def statistic(self) -> SharedReturn:
        return OneDirection(task())

    def make(self, statistic: SharedReturn) -> Privatizer:
        return self.crowded(1)

    def crowded(
        self, crowd: int, times: int = 1, epsilon: float = 1.0, randomizer: Sliding | None = None
    ) -> ShuffledReturns:
        facts = dataclasses.replace(task(), participations=times)
        return ShuffledReturns(
            OneDirection(facts),
            facts,
            crowd=crowd,
            requested=(epsilon, 1e-3),
            randomizer=randomizer,
        )

    def noise(self) -> SimulatedNoise:
        return SimulatedNoise(np.random.default_rng(3))

    def publication(self) -> Publication:
        facts = task()
        form = scoring(facts.sizes, facts.known)
        policy = ParametricPolicy(form, np.zeros(D), facts.horizon, sigma=1.0, key=77, shared=1)
        return Publication(0, policy, {"window": np.array([100.0, 100.0])})

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        """The only direction, and x."""
        return [np.array([0, (k - 2) * STEPS // 3]) for k in range(count)]

    def questions(self) -> list[Question]:
        """The report on its way to the shuffler, the coin that rounds it being private too."""
        (view,) = self.small().guarantee.also
        sent = [np.array([0, x]) for x in (-STEPS, -STEPS // 3, 0, 1, STEPS)]
        return [Question(self.publication(), 0, sent, view.epsilon)]

    closeness: ClassVar[float] = 1e-4  # a bound that is rounded up, and a search on it

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """All reports may sit in one crowd: people are replaced one report after the other."""
        privatizer = self.crowded(30, times)
        report = privatizer.randomizer
        (view,) = privatizer.guarantee.also
        alone = math.log(report.likely) - math.log(report.unlikely)
        assert view.epsilon == pytest.approx(times * alone) and view.participations == times

        def excess(each: float) -> float:
            return grouped(times, each) * crowded_delta(report, 30, each) / 1e-3 - 1.0

        return privatizer, times * optimize.brentq(excess, 1e-3, 2.0 / times, xtol=1e-9)

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        """At 0.5 / times for each report, along the same chain."""
        report = Sliding.calibrate(2.0, 3, 1)
        each = 0.5 / times
        true = grouped(times, each) * crowded_delta(report, 30, each)
        return self.crowded(30, times, 0.5, report), true

    def without_chance(self, contributions: list[np.ndarray]) -> ReplayNoise:
        """The coin that rounds and a recorded word for each."""
        draws = [(np.array(0), np.array([k % 3])) for k in range(len(contributions))]
        return ReplayNoise([draw for two in draws for draw in two])

    def expected(self, contributions: list[np.ndarray]) -> dict[str, np.ndarray]:
        """sum v z, sum v and sum b (y - 1/2) from values and the one direction."""
        report, words = self.make(self.statistic()).randomizer, np.arange(len(contributions)) % 3
        (z,) = self.publication().policy.directions(np.array([0]))
        v, y = report.values[words], report.square_of(words, np.zeros(len(words)))
        return {
            "gradient": v.sum() * z / STEPS,
            "mean": np.asarray(v.sum()),
            "square": np.asarray(math.sqrt(2 * (D + 1)) * (y - 0.5).sum()),
        }


def grouped(times: int, each: float) -> float:
    return sum(math.exp(k * each) for k in range(times))


@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
@pytest.mark.parametrize("crowd", [1, 2, 4])
def test_the_stated_delta_is_never_below_the_exact_one(crowd: int, epsilon0: float) -> None:
    shuffled = made(crowd, epsilon0)
    for epsilon in (0.0, 0.2 * epsilon0, 0.7 * epsilon0):
        exact = exact_delta(shuffled.randomizer, crowd, epsilon)
        assert shuffled.event.delta(epsilon) >= exact * (1 - 1e-9)
    assert shuffled.event.delta(epsilon0) == pytest.approx(0.0, abs=1e-9)


def test_a_larger_crowd_allows_less_noise_and_a_crowd_of_few_none() -> None:
    """Amplification is counted among people of one direction: 2 d times fewer than the batch."""
    local = {}
    for crowd in (5, 50, 500):
        shuffled = ShuffledReturns(SharedReturn(task()), task(), crowd=crowd, requested=(1.0, 1e-5))
        local[crowd] = shuffled.randomizer.epsilon
        assert shuffled.guarantee.epsilon <= 1.0 and shuffled.guarantee.model == "shuffle"
        assert shuffled.batch == crowd * 2 * D
        (view,) = shuffled.guarantee.also
        assert view.model == "local" and view.epsilon >= local[crowd]
    assert 1.0 - 1e-6 <= local[5] < 1.02 and local[50] > 1.3 and local[500] > 2.0


def test_reports_are_unbiased(published) -> None:
    shuffled, noise = made(10, 3.0), SimulatedNoise(np.random.default_rng(4))
    z = published.policy.directions(np.array([3]))[0] / STEPS
    for x in (-0.7, 0.25, 1.0):
        contribution = np.array([3, int(x * STEPS)])
        sums = sum(shuffled.encode(contribution, published, noise).values for _ in range(4000))
        secret = shuffled.init()
        secret.sums[:], secret.users = sums, 4000
        release = shuffled.release(secret, None, noise)
        sd = float(shuffled.randomizer.values[-1]) / math.sqrt(4000)
        assert float(release.blocks["mean"]) / 4000 == pytest.approx(x, abs=5 * sd)
        assert release.blocks["gradient"] / 4000 == pytest.approx(x * z, abs=10 * sd)


def test_nothing_is_released_before_a_batch_is_full(published) -> None:
    shuffled, noise = made(2, 1.0), SimulatedNoise(np.random.default_rng(1))
    secret, person = shuffled.init(), 0
    for person in range(2 * 2 * D - 1):
        report = shuffled.encode(np.array([person % (2 * D), 0]), published, noise)
        secret = shuffled.absorb(secret, report, 0)
    assert secret.users == 0 and not secret.sums.any()
    other = shuffled.encode(np.array([2 * D - 1, 0]), published, noise)
    with pytest.raises(InvalidInput, match="under one policy"):
        shuffled.absorb(secret, other, 1)
    again = shuffled.encode(np.array([0, 0]), published, noise)
    with pytest.raises(InvalidInput, match="in turn"):
        shuffled.absorb(secret, again, 0)
    secret = shuffled.absorb(secret, other, 0)
    assert secret.users == shuffled.batch and len(secret.opened.reports) == shuffled.batch


def test_people_of_one_direction_act_alike_and_batches_differ(published) -> None:
    policy = published.policy
    assert policy.shared == 2 * D
    assert policy.for_user(3) == policy.for_user(3 + 2 * D) != policy.for_user(4)
    with pytest.raises(InvalidInput, match="8 shared directions"):
        plain = cart_pole().uniform()
        made(2, 1.0).encode(
            np.array([0, 0]), type(published)(0, plain), SimulatedNoise(np.random.default_rng(0))
        )


def test_a_search_learns_behind_a_shuffler() -> None:
    agent = tacit.agent("tacit-search", epsilon=4.0, model="shuffle")
    result = tacit.simulate(tacit.environment("gym:CartPole-v1"), agent, episodes=1500, seed=1)
    assert result.tests["policy"]["mean"] > 200.0
    assert result.policies[0].policy.sigma == 0.0
