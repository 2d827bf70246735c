import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.simulation.checkpoints import checkpoints
from tacit.streams import planner_streams, stream


def first(root: int, run: int, purpose: str) -> bytes:
    return stream(root, run, purpose).random(4).tobytes()


def test_a_stream_is_its_key() -> None:
    assert first(3, 1, "users") == first(3, 1, "users")
    keys = [(r, k, p) for r in (0, 1, 2**40) for k in (0, 1, 2) for p in ("users", "ties", "x")]
    assert len({first(*key) for key in keys}) == len(keys)


def test_streams_do_not_depend_on_what_was_made_before() -> None:
    alone = stream(7, 0, "ties").random(3)
    planner_streams(7, 0).posterior.random(100)
    assert np.array_equal(planner_streams(7, 0).ties.random(3), alone)


@given(st.integers(1, 10**9))
def test_log_checkpoints_are_sorted_few_and_hold_the_round_numbers(episodes: int) -> None:
    grid = checkpoints(episodes)
    assert grid[0] == 1 and grid[-1] == episodes
    assert (np.diff(grid) > 0).all() and len(grid) < 20 * (np.log10(episodes) + 2)
    for round_number in (100, 1000, 10**6):
        assert round_number > episodes or round_number in grid
    assert -(-9 * episodes // 10) in grid


@given(st.integers(1, 10_000), st.integers(1, 20_000))
def test_every_nth(episodes: int, every: int) -> None:
    grid = checkpoints(episodes, every)
    assert grid[-1] == episodes
    assert all(point % every == 0 for point in grid[:-1])
    assert len(grid) == -(-episodes // every)


def test_consecutive_seeds_give_unrelated_streams() -> None:
    """Correlation of 10^5 uniforms beyond 5 standard errors has probability 6e-7 per pair."""
    draws = [stream(0, run, "users").random(100_000) for run in range(4)]
    off = np.corrcoef(draws)[np.triu_indices(4, 1)]
    assert np.abs(off).max() < 5 / np.sqrt(100_000)
    assert np.mean(draws) == pytest.approx(0.5, abs=5 * np.sqrt(1 / 12 / 400_000))
