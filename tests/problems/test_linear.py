"""Golden facts of linear problems (docs/papers/linear_jdp.md), structure, and bad inputs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.errors import InvalidInput
from tacit.policies.tabular import uniform_policy
from tacit.problems import LinearMDP
from tacit.task.task import feature_table


def test_synthetic_linear_has_the_published_facts() -> None:
    problem = tacit.problem("synthetic-linear")
    alpha = [int(np.argmax(problem.P[h, 0, 0])) for h in range(20)]
    assert "".join(map(str, alpha)) == "11100000011111111111"
    assert (problem.states, problem.actions, problem.dimension, problem.horizon) == (2, 100, 10, 20)
    assert set(np.unique(problem.P)) == {0.0, 1.0}
    for h in range(20):
        assert problem.optimal_values()[h] == pytest.approx([0.99 * (20 - h)] * 2, abs=1e-9)
    uniform = problem.values(uniform_policy(20, 2, 100))[0]
    assert uniform == pytest.approx([4.57295, 15.42705], abs=1e-5)
    assert problem.optimal_value() - problem.baseline()[1] == pytest.approx(9.8, abs=1e-6)
    assert np.linalg.norm(problem.features, axis=2) == pytest.approx(1.0)
    assert problem.facts["rank"] == 9
    assert problem.ones == pytest.approx([-2, *[0] * 7, 1, 1], abs=1e-9)
    assert np.linalg.norm(problem.ones) == pytest.approx(2.449490, abs=1e-6)


def test_with_the_reward_revealed_ignoring_all_data_is_optimal() -> None:
    problem = tacit.problem("synthetic-linear")
    greedy = tacit.policies.tabular.TabularPolicy(problem.R.argmax(axis=2))
    assert problem.value(greedy) == pytest.approx(problem.optimal_value())


def test_river_swim_is_linear_with_one_hot_features() -> None:
    problem = tacit.problem("river-swim")
    phi = feature_table(problem.task(users=1))
    assert phi.shape == (6, 2, 12)
    assert np.array_equal(phi.reshape(12, 12), np.eye(12))
    assert problem.optimal_value() == pytest.approx(3.397264, abs=1e-6)
    assert problem.baseline()[1] == pytest.approx(0.043789, abs=1e-6)


@given(st.integers(0, 30))
def test_low_rank_is_linear_in_its_features(seed: int) -> None:
    problem = tacit.problem(
        "low-rank", states=4, actions=3, dimension=3, horizon=2, sparsity=0.5, seed=seed
    )
    phi = problem.features.reshape(12, 3)
    assert np.linalg.norm(phi, axis=1).max() <= 1 + 1e-9
    assert np.allclose(phi @ problem.mu, problem.P.reshape(2, 12, 4), atol=1e-8)
    assert np.allclose(phi @ problem.theta.T, problem.R.reshape(2, 12).T, atol=1e-8)
    assert np.allclose(phi @ problem.ones, 1.0, atol=1e-8)
    assert np.linalg.norm(problem.ones) <= np.sqrt(3) + 1e-9


def test_the_features_are_public_and_the_parameters_are_not() -> None:
    task = tacit.problem("low-rank", states=4, actions=3).task(users=5)
    assert task.revealed == ("features",) and task.sizes["dimension"] == 6


def test_tabular_agents_take_linear_problems() -> None:
    problem = tacit.problem("synthetic-linear", horizon=3, actions=4)
    result = tacit.simulate(problem, tacit.agent("psrl"), 50, seeds=1)
    assert result.regret.shape[0] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.ones((2, 2, 2))}, "has norm 1.41421, but it must not exceed 1"),
        ({"features": np.ones((2, 2))}, r"must be \[states, actions, dimension\]"),
        ({"measures": np.eye(3)}, "the features ask for"),
        ({"rewards_theta": np.ones(3)}, "the features ask for"),
        ({"measures": [[2.0, -1.0], [0.0, 1.0]]}, "must stay within"),
        ({"measures": [[0.4, 0.4], [0.0, 1.0]]}, "sums to 0.8"),
        ({"rewards_theta": [2.0, 0.0]}, "must stay within"),
    ],
)
def test_bad_parameters_are_refused_in_words(change: dict, message: str) -> None:
    good = {
        "features": np.eye(2)[[[0, 1], [1, 0]]],
        "measures": [[0.5, 0.5], [0.0, 1.0]],
        "rewards_theta": [1.0, 0.0],
    }
    LinearMDP(**good, horizon=3)
    with pytest.raises(InvalidInput, match=message):
        LinearMDP(**{**good, **change}, horizon=3)


def test_low_rank_refuses_more_features_than_pairs() -> None:
    with pytest.raises(InvalidInput, match="span 4 at most"):
        tacit.problem("low-rank", states=2, actions=2, dimension=5)
