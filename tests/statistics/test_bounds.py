import numpy as np
import pytest

from tacit.errors import InvalidInput
from tacit.statistics.bounds import entries_outside, require_within
from tacit.task import Task
from tacit.trajectory import Trajectory

TASK = Task("tabular", 2, {"states": 3, "actions": 2}, True, 10)


def trajectory(states, actions, rewards) -> Trajectory:
    return Trajectory(np.array(states), np.array(actions), np.array(rewards, dtype=float))


def test_what_fits_passes() -> None:
    good = trajectory([0, 2, 1], [0, 1], [0.0, 1.0])
    assert entries_outside(good, TASK) == 0
    require_within(good, TASK)


@pytest.mark.parametrize(
    ("bad", "count"),
    [
        (trajectory([3, -1, 0], [0, 1], [0.5, 0.5]), 2),
        (trajectory([0, 0, 0], [2, -5], [0.5, 0.5]), 2),
        (trajectory([0, 0, 0], [0, 0], [np.nan, np.inf]), 2),
        (trajectory([0, 0, 0], [0, 0], [-0.1, 1.1]), 2),
        (trajectory([0, 0, 0, 0], [0, 0, 0], [0.0, 0.0, 0.0]), 1),
    ],
)
def test_what_does_not_is_counted_and_refused_where_asked(bad: Trajectory, count: int) -> None:
    assert entries_outside(bad, TASK) == count
    with pytest.raises(InvalidInput, match=f"{count} entries of the trajectory"):
        require_within(bad, TASK)
