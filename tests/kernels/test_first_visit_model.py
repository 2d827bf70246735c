"""Which next states a pair has: believed ones, and ones that exploring plans allow for."""

import numpy as np
import pytest

from tacit.kernels.public.first_visit_model import draw_next_states, find_next

STD = 10.0
# One state with two actions. The second was hardly seen, and its next state 1 is lost in noise.
CELLS = np.array([[400.0, 300.0, -8.0, 12.0], [25.0, 7.0, 35.0, -6.0]])


def listed(low: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Next states above 25, and above ``low`` where the other action has them."""
    ptr, succ, count = np.zeros(3, dtype=np.int64), np.zeros(8, dtype=np.int64), np.zeros(8)
    used = find_next(np.array([0, 2]), CELLS, 24.0, low, ptr, succ, count)
    return ptr, succ[:used], count[:used]


def test_the_other_actions_next_states_are_listed_from_a_lower_count_on() -> None:
    assert [list(x) for x in listed(15.0)[:2]] == [[0, 2, 4], [0, 1, 0, 2]]
    assert [list(x) for x in listed(0.0)[:2]] == [[0, 2, 5], [0, 1, 0, 1, 2]]


def test_a_weak_next_state_is_drawn_when_exploring_and_not_in_the_mean() -> None:
    ptr, _, count = listed(0.0)
    sure, known = (count > 15.0).astype(np.int64), np.ones(2, dtype=np.int64)
    rng, prob = np.random.default_rng(3), np.zeros(len(count))
    draw_next_states(ptr, count, sure, known, -1.0, False, rng, prob)
    assert prob == pytest.approx([4 / 7, 3 / 7, 25 / 60, 0.0, 35 / 60])
    draws = np.zeros((2000, len(count)))
    for row in draws:
        draw_next_states(ptr, count, sure, known, 0.3 * STD, True, rng, row)
    assert draws[:, :2].sum(axis=1) == pytest.approx(1.0)
    assert draws[:, 2:].sum(axis=1) == pytest.approx(1.0)
    assert draws[:, 3].mean() == pytest.approx(7 / 67, abs=0.01)
    draw_next_states(ptr, count, sure, known, 0.3 * STD, False, rng, prob)
    assert prob[3] == 0.0 < prob[2] < 1.0
