"""Linear mixtures: golden values, structure, and what is refused."""

import math

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.problems import LinearMixtureMDP, bilinear_features
from tacit.task.features import known_rewards, reward_features, transition_features, value_caps


@pytest.mark.parametrize("states", [10, 100])
def test_remap_walk_has_the_values_of_the_spec(states: int) -> None:
    problem = tacit.problem("remap-walk", states=states)
    assert problem.optimal_value() == pytest.approx(3.792039782, abs=1e-9)
    assert problem.baseline()[1] == pytest.approx(0.990410501, abs=1e-9)
    still = TabularPolicy(np.zeros((10, states), dtype=np.int64))
    assert problem.value(still) == pytest.approx(1.215752160, abs=1e-9)


@pytest.mark.parametrize(
    ("states", "kernel", "best", "uniform"),
    [
        (3, "vtr", 0.2755558417, 0.0267296605),
        (4, "vtr", 0.1461041113, 0.0066169500),
        (5, "vtr", 0.0840767683, 0.0026154940),
        (3, "classic", 0.2280593667, None),
        (5, "classic", 0.0906806546, None),
    ],
)
def test_river_swim_with_rewards_over_h(states, kernel, best, uniform) -> None:
    problem = tacit.problem(
        "river-swim",
        states=states,
        horizon=2 * states,
        kernel=kernel,
        reward_scale=1 / (2 * states),
    )
    assert problem.optimal_value() == pytest.approx(best, abs=1e-9)
    if uniform is not None:
        assert problem.baseline()[1] == pytest.approx(uniform, abs=1e-9)
    left = TabularPolicy(np.zeros((2 * states, states), dtype=np.int64))
    assert problem.value(left) == pytest.approx(0.005, abs=1e-12)


def test_a_table_presents_itself_with_one_hot_features() -> None:
    """phi_V is V in block (s, a); P V = <phi_V, theta> (docs/papers/mixture_ldp.md#setting)."""
    problem = tacit.problem("river-swim", states=4, horizon=5)
    task = problem.task(users=10)
    values = np.arange(4.0)
    for whole in (True, False):
        p = transition_features(task, whole=whole)
        assert p.dimension == 32 and p.geometry == "one-hot" and p.reach == 2.0
        theta = problem.P[0].reshape(8, 4)
        for pair in range(8):
            x = p.phi[pair].T @ values
            row = theta.ravel() if whole else theta[p.block[pair]]
            assert x @ row == pytest.approx(problem.P[0].reshape(8, 4)[pair] @ values)
    r = reward_features(task, whole=True)
    assert r.dimension == 8 and r.norm == 1.0


def test_features_are_always_public_and_theta_never_is() -> None:
    problem = tacit.problem("remap-walk")
    task = problem.task(users=5)
    assert set(task.known) == {
        "features",
        "theta_norm",
        "simplex",
        "reward_features",
        "reward_offset",
        "reward_theta_norm",
    }
    told = problem.task(users=5, reveal=["reward"])
    assert "reward" in told.known and not np.allclose(told.known["reward"], 0)
    p = transition_features(task, whole=True)
    assert p.geometry == "box" and p.reach == 2.0 and p.theta_norm == 1.0
    assert np.allclose(np.einsum("ksd,d->ks", p.phi, [0.1, 0.1, 0.7, 0.1]).sum(axis=1), 1.0)


def test_value_caps_follow_known_rewards() -> None:
    problem = tacit.problem("river-swim", states=3, horizon=6, reward_scale=1 / 6)
    assert np.array_equal(value_caps(problem.task(users=1)), [6, 5, 4, 3, 2, 1, 0])
    told = problem.task(users=1, reveal=["reward"])
    assert np.allclose(value_caps(told), np.array([6, 5, 4, 3, 2, 1, 0]) / 6)
    assert known_rewards(told).shape == (6, 3, 2) and len(known_rewards(problem.task(1))) == 0


def test_hard_mixture_is_what_the_lower_bound_asks_for() -> None:
    """|phi_V| <= max V, |theta| = 1 + (d-1) Delta (docs/papers/mixture_ldp.md#hard-mixture)."""
    problem = tacit.problem("hard-mixture", dimension=4, horizon=5, gap=0.02, seed=3)
    facts = problem.describe()
    assert facts["theta_norm"]["largest"] == pytest.approx(1 + 3 * 0.02)
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.random(7)
        mixed = np.einsum("saxd,x->sad", problem.features, values)
        assert np.sqrt((mixed**2).sum(axis=2)).max() <= values.max() + 1e-12
    best = problem.P[:, np.arange(5), :, 6].max(axis=2)[np.arange(5), np.arange(5)]
    assert np.allclose(best, 1 / 5 + 3 * 0.02)
    authors = tacit.problem("hard-mixture")
    assert authors.parameters["gap"] == pytest.approx(math.sqrt(1 / 6e4) / (4 * math.sqrt(2)))
    assert (authors.states, authors.actions, authors.horizon) == (8, 16, 6)
    private = tacit.problem("hard-mixture", epsilon=1.0, users=10**6)
    m = 2 * (math.e - 1)
    assert private.parameters["gap"] == pytest.approx(math.sqrt(1 / 6e6) / m)


def test_the_linear_bandit_is_linear_up_to_its_public_offset() -> None:
    problem = tacit.problem("linear-bandit", contexts=30, arms=4)
    r = reward_features(problem.task(users=1), whole=True)
    theta = np.linalg.lstsq(r.varphi, problem.R[0].ravel() - 0.5, rcond=None)[0]
    assert np.allclose(r.varphi @ theta + 0.5, problem.R[0].ravel())
    assert np.linalg.norm(theta) == pytest.approx(0.45) and r.span == 0.5
    assert problem.value(uniform_policy(1, 30, 4)) < problem.optimal_value()


def test_norms_are_reported_not_assumed() -> None:
    facts = tacit.problem("remap-walk").describe()
    assert facts["feature_norm"] == {"largest": 2.0, "assumed": 1.0, "holds": False}
    assert tacit.problem("hard-mixture", dimension=2).describe()["dimension"] == 2


EYE = np.eye(2)[[[0], [1]]][..., np.newaxis]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": np.zeros((2, 1, 3, 1)), "theta": [1.0], "R": [[0], [1]]}, "features have"),
        ({"features": EYE, "theta": [0.5], "R": [[0], [1]]}, "sums to 0.5"),
        ({"features": EYE, "theta": [1.0, 2.0], "R": [[0], [1]]}, "theta has shape"),
        ({"features": EYE, "theta": [1.0]}, "give either R"),
        ({"features": EYE, "theta": [1.0], "R": [[0], [2]]}, r"in \[0, 1\]"),
        (
            {"features": EYE, "theta": [1.0], "reward_features": np.ones((2, 1, 1))},
            "both reward_features and reward_theta",
        ),
        ({"features": EYE, "theta": [1.0], "R": [[0], [1]], "theta_norm": 0.5}, "declare a larger"),
        (
            {
                "features": np.concatenate([EYE, EYE], axis=3),
                "theta": [1.5, -0.5],
                "R": [[0], [1]],
                "simplex": True,
                "theta_norm": 2.0,
            },
            "declared a probability vector",
        ),
    ],
)
def test_wrong_mixtures_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        LinearMixtureMDP(horizon=2, **arguments)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("remap-walk", {"states": 15}, "multiple of 10"),
        ("hard-mixture", {"gap": 0.2}, "at most 1 / "),
        ("hard-mixture", {"gap": 0.01, "epsilon": 1.0}, "either gap or epsilon"),
        ("linear-bandit", {"norm": 2.0}, "norm = 2"),
    ],
)
def test_wrong_parameters_are_refused(name: str, parameters: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        tacit.problem(name, **parameters)


def test_a_bilinear_embedding_is_a_mixture_with_the_same_law() -> None:
    """P_h(s'|s,a) = phi(s,a)^T M_h psi(s') (docs/papers/mixture_ldp.md#bilinear)."""
    rng, (S, A, H, d1, d2) = np.random.default_rng(3), (5, 2, 3, 3, 4)
    phi = rng.dirichlet(np.ones(d1), size=(S, A))
    psi = rng.dirichlet(np.ones(S), size=d2).T
    M = rng.dirichlet(np.ones(d2), size=(H, d1))
    features = bilinear_features(phi, psi)
    assert features.shape == (S, A, S, d1 * d2)
    problem = LinearMixtureMDP(features, M.reshape(H, -1), rng.random((S, A)), horizon=H)
    law = np.einsum("sai,hij,xj->hsax", phi, M, psi)
    assert np.allclose(problem.P, law, atol=1e-15)
    assert problem.describe()["dimension"] == d1 * d2
    V = rng.random(S)
    phi_V = np.einsum("saxd,x->sad", features, V)
    assert np.allclose(phi_V @ M[1].ravel(), law[1] @ V)


@pytest.mark.parametrize("pairs", [np.ones((2, 3)), np.ones((3, 2, 1))])
def test_embeddings_of_other_shapes_are_refused(pairs: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match=r"must be \[states, actions, d1\] and"):
        bilinear_features(pairs, np.ones((2, 2)))
