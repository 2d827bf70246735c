import math

import pytest

from tacit.errors import InvalidInput
from tacit.task import Task

GOOD = {
    "family": "tabular",
    "horizon": 3,
    "sizes": {"states": 2, "actions": 2},
    "homogeneous": True,
    "users": 10,
}


@pytest.mark.parametrize("name", ["horizon", "users", "participations"])
@pytest.mark.parametrize("value", [0, -3, 0.25, math.nan, None, True])
def test_counts_are_whole_and_positive(name: str, value: object) -> None:
    """A participation count below 1 would print a guarantee that is too good."""
    with pytest.raises(InvalidInput, match=f"{name} = "):
        Task(**{**GOOD, name: value})


def test_sizes_are_checked_too() -> None:
    with pytest.raises(InvalidInput, match="states = 0"):
        Task(**{**GOOD, "sizes": {"states": 0, "actions": 2}})
