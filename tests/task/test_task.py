import math

import pytest

from tacit.errors import InvalidInput
from tacit.task.task import Task

GOOD = {
    "family": "tabular",
    "horizon": 3,
    "sizes": {"states": 2, "actions": 2},
    "homogeneous": True,
    "users": 10,
}
GOLDEN = "4a3671d19d4a4356f21545b3e1f5db6421fe05db85c6d3e816c84567fc25a1d8"
"""The digest of GOOD before tasks could have a duration."""


@pytest.mark.parametrize("name", ["horizon", "users", "participations"])
@pytest.mark.parametrize("value", [0, -3, 0.25, math.nan, None, True])
def test_counts_are_whole_and_positive(name: str, value: object) -> None:
    """A participation count below 1 would print a guarantee that is too good."""
    with pytest.raises(InvalidInput, match=f"{name} = "):
        Task(**{**GOOD, name: value})


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, 2e9, None, True, "7d"])
def test_a_duration_is_a_number_of_seconds(value: object) -> None:
    with pytest.raises(InvalidInput, match="duration = "):
        Task(**GOOD, duration=value)


def test_a_duration_is_part_of_what_the_learner_was_told() -> None:
    assert Task(**GOOD).digest() == Task(**GOOD, duration=0).digest() == GOLDEN
    week, day = Task(**GOOD, duration=604800), Task(**GOOD, duration=86400)
    assert len({GOLDEN, week.digest(), day.digest()}) == 3
    assert week == Task(**GOOD, duration=604800.0) != day


def test_sizes_are_checked_too() -> None:
    with pytest.raises(InvalidInput, match="states = 0"):
        Task(**{**GOOD, "sizes": {"states": 0, "actions": 2}})
