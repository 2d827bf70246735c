import math

import pytest

import tacit
from tacit.forecast import bind, forecast

PROBLEM = tacit.problem("river-swim")


def test_the_forecast_is_the_law_of_the_noise() -> None:
    bound = bind(tacit.agent("ldp-obi", epsilon=1.0), PROBLEM, 100_000)
    expected = forecast(bound)
    assert expected.users == 100_000
    assert expected.noise_std["visits"] == pytest.approx(118 * math.sqrt(2 / 100_000))
    needed = expected.users_needed["0.1"]["visits"]
    assert 118 * math.sqrt(2 / needed) <= 0.1 < 118 * math.sqrt(2 / (needed - 1))


def test_without_noise_one_user_is_enough() -> None:
    expected = forecast(bind(tacit.agent("psrl"), PROBLEM, 10))
    assert set(expected.noise_std.values()) == {0.0}
    assert {n for row in expected.users_needed.values() for n in row.values()} == {1}


def test_collecting_nothing_forecasts_nothing() -> None:
    assert forecast(bind(tacit.agent("uniform"), PROBLEM, 10)).noise_std == {}
