"""OneNumber: the contract of a privatizer, exact reports, and what it refuses."""

import dataclasses
import itertools
import math
from typing import ClassVar

import numpy as np
import pytest

from contracts.privatizer import PrivatizerContract, Question
from contracts.replay import ReplayNoise
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.public.scores import search_coins, search_directions
from tacit.policies.parametric import ParametricPolicy, scoring, scoring_of
from tacit.policies.tabular import uniform_policy
from tacit.privacy import Noise, Privatizer, Query, SimulatedNoise
from tacit.privacy.finite.sliding import Sliding, best_sliding
from tacit.privacy.local.one_number import OneNumber
from tacit.publication import Publication
from tacit.statistics.search import RoundedReturn
from tacit.task.task import Task

KNOWN = {**scoring_of([1.0, 2.0, 0.5]), "returns": np.array([0.0, 10.0])}
TASK = Task("episodic", 5, {"states": 3, "actions": 2}, homogeneous=False, users=20, known=KNOWN)
FORM = scoring(TASK.sizes, TASK.known)
PUBLIC = Publication(
    0, ParametricPolicy(FORM, np.zeros(3), 5, sigma=1.0, key=77), {"window": np.array([5.0, 5.0])}
)


def coming(times: int) -> Task:
    return dataclasses.replace(TASK, participations=times)


def loss(randomizer: Sliding) -> float:
    """From the whole weights."""
    return math.log(randomizer.likely) - math.log(randomizer.unlikely)


def composed(randomizer: Sliding, times: int, at: float) -> float:
    """Delta of that many reports, the worst over all pairs of places, by all their outputs."""
    worst = 0.0
    for first, second in itertools.permutations(randomizer.chances, 2):
        one, two = np.ones(1), np.ones(1)
        for _ in range(times):
            one, two = np.outer(one, first).ravel(), np.outer(two, second).ravel()
        worst = max(worst, float(np.maximum(one - math.exp(at) * two, 0.0).sum()))
    return worst


class TestOneNumber(PrivatizerContract):
    subject: ClassVar[type] = OneNumber
    epsilon: ClassVar[float] = 1.0

    def statistic(self) -> RoundedReturn:
        return RoundedReturn(TASK, best_sliding(self.epsilon).largest)

    def make(self, statistic: RoundedReturn) -> Privatizer:
        return OneNumber(statistic, TASK, requested_epsilon=self.epsilon)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(5))

    def publication(self) -> Publication:
        return PUBLIC

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        """The number of a person, and a place."""
        places = best_sliding(self.epsilon).largest + 1
        return [np.array([k, (2 * k) % places]) for k in range(count)]

    def questions(self) -> list[Question]:
        places = best_sliding(self.epsilon).largest + 1
        everybody = [np.array([4, place]) for place in range(places)]
        return [Question(PUBLIC, 4, everybody, loss(best_sliding(self.epsilon)))]

    def coming_back(self, times: int) -> tuple[Privatizer, float]:
        """Fresh reports: pure epsilons add up."""
        task, share = coming(times), best_sliding(math.nextafter(1.0 / times, 0.0))
        privatizer = OneNumber(RoundedReturn(task, share.largest), task, requested_epsilon=1.0)
        return privatizer, times * loss(privatizer.randomizer)

    def too_little(self, times: int) -> tuple[Privatizer, float]:
        task, randomizer = coming(times), Sliding.calibrate(0.9, 5, 2)
        statistic = RoundedReturn(task, randomizer.largest)
        privatizer = OneNumber(statistic, task, randomizer, requested_epsilon=0.5)
        return privatizer, composed(randomizer, times, 0.5)

    def recorded(self, count: int) -> list[np.ndarray]:
        outputs = best_sliding(self.epsilon).outputs
        return [np.array([k % outputs]) for k in range(count)]

    def without_chance(self, contributions: list[np.ndarray]) -> ReplayNoise:
        return ReplayNoise(self.recorded(len(contributions)))

    def expected(self, contributions: list[np.ndarray]) -> dict[str, np.ndarray]:
        """sum v z, sum v and sum b (y - 1/2), from values and directions."""
        case, count = best_sliding(self.epsilon), len(contributions)
        outputs = np.concatenate(self.recorded(count))
        z, coins = np.empty((count, 3), dtype=np.int64), np.empty(count)
        search_directions(77, np.arange(count), z)
        search_coins(77, np.arange(count), coins)
        v, squares = case.values[outputs], case.square_of(outputs, coins)
        square = math.sqrt(8.0) * (squares - 0.5)
        return {
            "gradient": v @ z / STEPS,
            "mean": np.asarray(v.sum()),
            "square": np.asarray(square.sum()),
        }

    exactness: ClassVar[float] = 1e-6


class TestOneBit(TestOneNumber):
    """The same with randomized response."""

    epsilon: ClassVar[float] = 0.5

    coming_back = TestOneNumber.coming_back


def test_released_sums_estimate_without_bias() -> None:
    """30,000 people with x = 0.4: mean and square are off by less than 5 standard errors."""
    count, x = 30_000, 0.4
    for epsilon in (0.5, 1.0, 3.0):
        task = dataclasses.replace(TASK, users=count)
        randomizer = best_sliding(epsilon)
        statistic = RoundedReturn(task, randomizer.largest)
        privatizer = OneNumber(statistic, task, randomizer, requested_epsilon=epsilon)
        people, coins = np.arange(count), np.empty(count)
        search_coins(77, people, coins)
        at = (x + 1) / 2 * randomizer.largest
        places = np.minimum(np.floor(at + coins), randomizer.largest).astype(np.int64)
        outputs = randomizer.encode_many(places, np.random.default_rng(1))
        secret = privatizer.absorb_outputs(privatizer.init(), outputs, PUBLIC, people, "simulated")
        release = privatizer.release(secret, Query(1), SimulatedNoise(np.random.default_rng(0)))
        law = release.law
        assert abs(release.blocks["mean"] - count * x) < 5 * math.sqrt(law.variance("mean"))
        assert (np.abs(release.blocks["gradient"]) < 6 * np.sqrt(law.variance("gradient"))).all()
        second = release.blocks["square"] / (math.sqrt(8.0) * count) + 0.5
        sd = math.sqrt(law.variance("square")) / (math.sqrt(8.0) * count)
        grid = 1 / randomizer.largest**2 if randomizer.largest > 1 else 0.0  # rounding of s
        assert abs(second - x * x) < 5 * sd + grid


def test_what_is_no_report_is_refused() -> None:
    privatizer = TestOneNumber().make(TestOneNumber().statistic())
    for message in ([3], [-1], [0, 1], []):
        with pytest.raises(InvalidInput, match="one whole number from 0 to 2"):
            privatizer.collect(np.array(message, dtype=np.int64), PUBLIC, 0)
    other = Publication(0, uniform_policy(2, 2, 2))
    with pytest.raises(InvalidInput, match="parametric policy of 3 parameters"):
        privatizer.collect(np.array([1]), other, 0)
    with pytest.raises(InvalidInput, match="rounds to 8 places"):
        OneNumber(RoundedReturn(TASK, 7), TASK, requested_epsilon=1.0)
    heavy = dataclasses.replace(TASK, users=10**12)
    with pytest.raises(InvalidInput, match="64-bit"):
        OneNumber(RoundedReturn(heavy, 2), heavy, requested_epsilon=1.0)
    assert privatizer.max_influence == best_sliding(1.0).values[-1]


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_a_release_states_the_noise_of_those_who_have_most(epsilon: float) -> None:
    """Of the mean it is the largest over all x; of the square that of three of them."""
    randomizer = best_sliding(epsilon)
    statistic = RoundedReturn(TASK, randomizer.largest)
    law = OneNumber(statistic, TASK, randomizer, requested_epsilon=epsilon).law(7)
    second = max(randomizer.moments(x)[0] for x in np.linspace(-1.0, 1.0, 41))
    assert law.variance("mean") == pytest.approx(7 * second)
    square = max(randomizer.moments(x)[1] for x in (0.0, 0.5, 1.0))
    assert law.variance("square") == pytest.approx(7 * statistic.weight**2 * square)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_no_report_adds_more_than_is_said_to_any_sum(epsilon: float) -> None:
    """Every output, with the directions and coins of many people."""
    randomizer = best_sliding(epsilon)
    statistic = RoundedReturn(TASK, randomizer.largest)
    privatizer = OneNumber(statistic, TASK, randomizer, requested_epsilon=epsilon)
    for person in range(200):
        for output in (0, randomizer.outputs - 1):
            coin = np.array([person], dtype=np.int64)
            sums = privatizer.weighed(np.array([output]), PUBLIC, coin)
            assert np.abs(sums).max() <= privatizer.max_increment
