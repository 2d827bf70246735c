"""Bins: every observation falls into the cell that its edges say."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.errors import InvalidInput
from tacit.problems.discretized import Discretized


def make(id: str) -> gymnasium.Env:
    return gymnasium.make(id, disable_env_checker=True)


CAR = make("MountainCar-v0")


@given(st.floats(-5, 5), st.floats(-5, 5), st.lists(st.integers(-40, 40), unique=True, max_size=6))
def test_a_cell_is_between_its_edges(x: float, y: float, edges: list[int]) -> None:
    cut = sorted(edge / 10 for edge in edges)
    wrapped = Discretized(CAR, [cut, [0.0]])
    assert wrapped.observation_space == Discrete(2 * (len(cut) + 1))
    first, second = divmod(int(wrapped.observation(np.array([x, y]))), 2)
    assert first == sum(edge <= x for edge in cut) and second == (y >= 0)


def test_a_number_makes_equal_cells_and_one_ignores_a_coordinate() -> None:
    wrapped = Discretized(CAR, [3, 1])
    assert np.allclose(wrapped.edges[0], [-0.6, 0.0]) and len(wrapped.edges[1]) == 0
    assert Discretized(CAR, 4).observation_space == Discrete(16)
    assert [int(wrapped.observation((x, 9.0))) for x in (-9, -0.1, 9)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("id", "bins", "rewards"),
    [
        ("CartPole-v1", [1, 1, [0.0], [0.0]], (0, 1)),
        ("MountainCar-v0", [3, 3], (-1, 0)),
        ("Acrobot-v1", [2, 1, 2, 1, [0.0], [0.0]], (-1, 0)),
    ],
)
def test_the_classics_can_be_learned(id: str, bins, rewards) -> None:
    env = Discretized(make(id), bins)
    result = tacit.simulate(
        tacit.environment(env, rewards=rewards, horizon=20), tacit.agent("psrl"), episodes=3
    )
    assert result.problem["name"] == f"gym:{id}" and result.problem["horizon"] == 20
    assert len(result.problem["parameters"]["bins"]) == len(bins)
    low, high = 20 * np.array(rewards)
    assert np.all((result.returns >= low) & (result.returns <= high))


@pytest.mark.parametrize(
    ("id", "bins", "message"),
    [
        ("CartPole-v1", [2, 2, 2], "bins has 3 entries, but the observations have 4 coordinates"),
        ("CartPole-v1", [1, 4, 1, 1], r"bins\[1\] = 4, but this coordinate has no bounds"),
        ("MountainCar-v0", [[0.0, -1.0], 1], r"bins\[0\] = .0.0, -1.0., but edges are a list"),
        ("MountainCar-v0", [[0.0, float("nan")], 1], r"bins\[0\]"),
        ("MountainCar-v0", [0, 1], r"bins\[0\] = 0, but it must be a whole number >= 1"),
        ("MountainCar-v0", "many", r"bins\[0\] = 'many'"),
        ("MountainCar-v0", [10**5, 10**5], "the cells of these bins would need a table"),
        ("FrozenLake-v1", [4], "discrete ones need no bins"),
    ],
)
def test_bad_bins(id: str, bins, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Discretized(make(id), bins)


def test_nan_lies_in_no_cell() -> None:
    with pytest.raises(InvalidInput, match="an observation is NaN"):
        Discretized(CAR, [1, [0.0]]).observation(np.array([0.0, np.nan]))
