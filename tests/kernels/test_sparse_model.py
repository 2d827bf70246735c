"""Draws of a large table: what a few visits, or one stray report, are taken to say."""

import numpy as np
import pytest

from tacit.kernels.public.posterior import NoisyCounts
from tacit.kernels.public.sparse_model import list_next, listed_model
from tacit.task.pairs import full_rows

# One state with two actions and five places. All three visits of the second action ended in place
# 2; the first, which was played often, leads to places 0, 1 and 2.
FIRST = np.array([0, 2])
MOVES = np.array([[[300.0, 310.0, 290.0, 1.0, -2.0], [0.2, -0.3, 3.1, 0.1, -0.2]]])


def counts(moves: np.ndarray, std: float) -> NoisyCounts:
    """Counts whose noise has that standard deviation, one visit weighing 1; rewards all seen."""
    noise, unit = np.full((1, 2), std**2), np.ones((1, 2))
    return NoisyCounts(moves, np.full((1, 2, 2), 100.0), noise, noise, unit, unit)


def model(moves: np.ndarray, std: float, mean: bool, rng: np.random.Generator) -> np.ndarray:
    """Next-state laws of the two pairs, as a table."""
    P, R, rows = np.zeros(10), np.zeros((1, 2)), full_rows(1, 2, 5)
    listed_model(counts(moves, std), FIRST, mean, rng, rows, P, R)
    begin, end, succ = rows
    laws = np.zeros((2, 5))
    for x in range(2):
        at = slice(begin[0, x], end[0, x])
        laws[x, succ[at]] = P[at]
    return laws


def test_the_mean_has_only_next_states_above_the_noise() -> None:
    laws = model(MOVES, 0.6, True, np.random.default_rng(1))
    assert laws[0, :3] == pytest.approx([1 / 3] * 3, abs=0.02)
    assert laws[1] == pytest.approx([0, 0, 1, 0, 0])


def test_a_draw_allows_for_next_states_of_another_action() -> None:
    rng = np.random.default_rng(2)
    draws = np.array([model(MOVES, 0.6, False, rng) for _ in range(2000)])
    assert draws[:, 1].sum(axis=1) == pytest.approx(1.0)
    assert np.abs(draws[:, 0, :3] - 1 / 3).max() < 0.15
    assert (draws[:, :, 3:] == 0.0).all(), "no action has been seen to lead there"
    elsewhere = draws[:, 1, :2].sum(axis=1)
    assert 0.1 < np.mean(elsewhere > 1 / 3) < 0.4, "three visits do not exclude it"
    often = MOVES * [[[1.0], [100.0]]]
    draws = np.array([model(often, 0.6, False, rng)[1, :2] for _ in range(2000)])
    assert draws.sum(axis=1).max() < 0.15, "three hundred do"


@pytest.mark.parametrize(("reports", "believed"), [(1.0, 0), (3.0, 1)])
def test_one_stray_report_makes_no_pair_known(reports: float, believed: int) -> None:
    moves = np.array([[[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, reports, 0.0, 0.0]]])
    known, rows = np.zeros((1, 2), dtype=np.int64), full_rows(1, 2, 5)
    list_next(counts(moves, 0.2), FIRST, True, rows, known)
    assert list(known[0]) == [0, believed]
    assert list(rows.end[0] - rows.begin[0]) == [5, 1 if believed else 5]


def test_where_one_action_pays_another_is_likelier_to() -> None:
    # Two states with two actions. The first of one pays a third; its other action and both of the
    # second state were seen, five times two of them, to pay nothing.
    rewards = np.array([[[200.0, 100.0], [5.0, 0.0], [300.0, 0.0], [5.0, 0.0]]])
    moves, tiny, unit = np.full((1, 4, 2), 50.0), np.full((1, 4), 0.1), np.ones((1, 4))
    seen = NoisyCounts(moves, rewards, tiny, tiny, unit, unit)
    rng, R = np.random.default_rng(4), np.zeros((2000, 1, 4))
    for row in R:
        first, rows = np.array([0, 2, 4]), full_rows(1, 4, 2)
        listed_model(seen, first, False, rng, rows, np.zeros(8), row)
    pays = np.mean(R[:, 0] > 0.2, axis=0)
    assert pays[0] == 1.0 and pays[2] == 0.0
    assert pays[1] > 2.0 * pays[3] > 0.0
