"""The sliding randomizer: exactly the law it declares, pure epsilon, and without bias."""

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from contracts.entropy import Law
from contracts.randomizer import KnownEpsilonContract
from tacit.errors import InvalidInput
from tacit.privacy.finite.channel import Channel
from tacit.privacy.finite.sliding import MOST_OUTPUTS, UNLIKELY, Sliding, best_sliding

EPSILONS = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)


class TestSliding(KnownEpsilonContract):
    subject: ClassVar[type] = Sliding

    def cases(self) -> list[Sliding]:
        odd = Sliding(5, 4, 2 * UNLIKELY + 1)
        return [*(best_sliding(epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0)), odd]

    def inputs(self, randomizer: Sliding) -> list[int]:
        return list(range(randomizer.largest + 1))

    def declared(self, randomizer: Sliding, value: int) -> Law:
        """Weights over their sum: a run from the place on, and all others."""
        likely, unlikely = randomizer.likely, randomizer.unlikely
        weights = [
            likely if value <= j < value + randomizer.run else unlikely
            for j in range(randomizer.outputs)
        ]
        return {(j,): Fraction(w, sum(weights)) for j, w in enumerate(weights)}


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_is_kept_and_used_up(epsilon: float) -> None:
    chosen = best_sliding(epsilon)
    assert epsilon * (1 - 1e-10) - 1e-11 <= chosen.epsilon <= epsilon
    assert Channel(chosen.chances).epsilon == pytest.approx(chosen.epsilon, abs=1e-12)
    assert chosen.outputs <= MOST_OUTPUTS


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_values_have_the_mean_of_what_was_randomized(epsilon: float) -> None:
    for case in (best_sliding(epsilon), Sliding.calibrate(epsilon, 9, 3)):
        places = 2 * np.arange(case.largest + 1) / case.largest - 1
        assert case.chances @ case.values == pytest.approx(places, abs=1e-10 / min(epsilon, 1))
        outputs = np.arange(case.outputs)
        if case.largest > 1:
            squares = case.square_of(outputs, np.zeros(case.outputs))
            assert case.chances @ squares == pytest.approx(places**2, abs=1e-6)


def test_one_bit_tells_the_square_through_its_public_coin() -> None:
    """The mean over a fine grid of coins; the bit is rounded by the same coin."""
    case, coins = best_sliding(0.5), (np.arange(20000) + 0.5) / 20000
    assert (case.outputs, case.run) == (2, 1)
    for x in (-1.0, -0.3, 0.0, 0.6, 1.0):
        places = np.minimum(np.floor((x + 1) / 2 + coins), 1).astype(int)
        both = [case.square_of(np.full(len(coins), j), coins) for j in (0, 1)]
        mean = sum(case.chances[places, j] * both[j] for j in (0, 1)).mean()
        assert mean == pytest.approx(x * x, abs=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "outputs", "run", "second"),
    [
        (0.2, 2, 1, 100.7),
        (0.5, 2, 1, 16.7),
        (1.0, 3, 1, 3.20),
        (2.0, 3, 1, 0.46),
        (4.0, 7, 1, 0.066),
    ],
)
def test_the_least_variance_is_chosen(epsilon, outputs, run, second) -> None:
    chosen = best_sliding(epsilon)
    assert (chosen.outputs, chosen.run) == (outputs, run)
    assert chosen.moments(0.0)[0] == pytest.approx(second, rel=0.01)
    response = Sliding.calibrate(epsilon, 2, 1)
    assert chosen.moments(0.0)[0] <= response.moments(0.0)[0] * (1 + 1e-9)
    assert response.moments(0.0)[0] == pytest.approx(1 / math.tanh(epsilon / 2) ** 2, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("x", [-1.0, -0.3, 0.6])
def test_moments_are_those_of_the_reports(epsilon: float, x: float) -> None:
    """20,000 coins and every output by its chance: what is rounded is off by 1e-4 at most."""
    case, coins = best_sliding(epsilon), (np.arange(20_000) + 0.5) / 20_000
    places = np.minimum(np.floor((x + 1) / 2 * case.largest + coins), case.largest).astype(int)
    outputs, chances = np.arange(case.outputs), case.chances[places]
    squares = np.array([case.square_of(np.full(len(coins), j), coins) for j in outputs]).T
    second = (chances * case.values**2).sum(axis=1).mean()
    spread = (chances * squares**2).sum(axis=1).mean()
    spread -= (chances * squares).sum(axis=1).mean() ** 2
    assert case.moments(x) == (pytest.approx(second, rel=1e-3), pytest.approx(spread, rel=1e-3))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_many_reports_take_the_draws_of_each(epsilon: float) -> None:
    case, places = best_sliding(epsilon), np.arange(200) % (best_sliding(epsilon).largest + 1)
    one, many = (np.random.default_rng(3) for _ in range(2))
    alone = [int(case.encode(int(place), one)[0]) for place in places]
    assert case.encode_many(places, many).tolist() == alone and one.random() == many.random()


def test_what_is_no_randomizer_is_refused() -> None:
    for wrong in ((1, 1, UNLIKELY * 2), (4, 4, UNLIKELY * 2), (4, 1, UNLIKELY), (64, 1, 2**50)):
        with pytest.raises(InvalidInput):
            Sliding(*wrong)
    with pytest.raises(InvalidInput, match="place"):
        best_sliding(1.0).encode_secure(3)


def test_a_request_above_what_whole_units_can_give_gets_what_they_can() -> None:
    assert 60.0 < best_sliding(1000.0).epsilon < 1000.0
