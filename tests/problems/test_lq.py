"""Linear systems: goldens of docs/papers/lq_jdp.md#systems, costs by simulation, environments."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.errors import InvalidInput
from tacit.policies.linear import LinearPolicy
from tacit.policies.tabular import TabularPolicy
from tacit.problems import LQSystem, make_problem

GOLDEN = {
    "lq-scalar": (1.6776810516, 2.0348976912, 0.7616, 0.5248, [-0.5248459376]),
    "lq-double-integrator": (
        *(2.0163053943, 2.2322257215, 0.9354, 0.5376),
        [-0.1597416901, -0.5133428475],
    ),
    "lq-thermal": (
        *(1.5694831428, 1.7226778724, 0.9606, 0.8512),
        [-0.7072671677, -0.2203481066, -0.1130921539, -0.0066250648],
    ),
}


def own(**changes) -> LQSystem:
    given = {
        "A": [[0.5, 0.1], [0.0, 0.4]],
        "B": [[0.0], [0.2]],
        "Q": np.eye(2),
        "R": [[0.3]],
        "horizon": 6,
        "noise": 0.1,
        "start": [0.6, -0.6],
    }
    return LQSystem(**{**given, **changes})


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_values(name: str) -> None:
    optimum, idle, size, widest, first = GOLDEN[name]
    system = make_problem(name)
    assert system.optimal_cost() == pytest.approx(optimum, abs=1e-9)
    assert -system.baseline()[1] == pytest.approx(idle, abs=1e-9)
    assert np.linalg.norm(system.theta) == pytest.approx(size, abs=5e-5)
    gains = system.optimal_gains()
    assert max(np.linalg.norm(K, 2) for K in gains) == pytest.approx(widest, abs=5e-5)
    assert widest < system.gain and np.allclose(gains[0, 0], first, atol=1e-9)
    assert not gains[-1].any()
    assert all(margin >= -1e-9 for margin in system.margins.values())


@pytest.mark.parametrize("name", GOLDEN)
def test_the_optimal_gains_cost_the_optimum_and_others_cost_more(name: str) -> None:
    system = make_problem(name)
    gains = system.optimal_gains()
    assert system.cost(LinearPolicy(gains)) == pytest.approx(system.optimal_cost(), rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = LinearPolicy(gains + 0.1 * rng.normal(size=gains.shape))
        assert system.cost(other) > system.optimal_cost()


@pytest.mark.parametrize("amplitude", [0.0, 0.15])
def test_exact_costs_agree_with_simulation(amplitude: float) -> None:
    """Within 5 standard errors of 3000 users: fails by chance less than once in a million."""
    system = own(noise=[[0.1, 0.05], [0.0, 0.02]], start=[[0.6, -0.6], [0.1, 0.9], [0.0, 0.0]])
    rng = np.random.default_rng(3)
    policy = LinearPolicy(0.3 * rng.normal(size=(6, 1, 2)), amplitude=amplitude, key=5)
    costs = [-system.rollout(policy.for_user(k), rng).rewards.sum() for k in range(3000)]
    error = np.std(costs) / np.sqrt(len(costs))
    assert abs(np.mean(costs) - system.cost(policy)) < 5 * error


def test_the_cost_of_one_users_excitation_is_exact_too() -> None:
    system, rng = own(start=[[0.6, -0.6], [0.1, 0.9]]), np.random.default_rng(4)
    policy = LinearPolicy(0.3 * rng.normal(size=(6, 1, 2)), 0.2 * rng.normal(size=(6, 1)))
    costs = [-system.rollout(policy, rng).rewards.sum() for _ in range(3000)]
    assert abs(np.mean(costs) - system.cost(policy)) < 5 * np.std(costs) / np.sqrt(3000)
    excited = LinearPolicy(policy.gains, amplitude=0.2, key=9)
    several = np.mean([system.cost(excited.for_user(k)) for k in range(4000)])
    assert several == pytest.approx(system.cost(excited), rel=0.01)


def test_noise_is_uniform_in_the_ball_and_has_the_stated_covariance() -> None:
    system = own(A=np.zeros((2, 2)), B=[[0.0], [0.1]], horizon=1, start=[0.0, 0.0])
    rng = np.random.default_rng(5)
    idle = LinearPolicy(np.zeros((1, 1, 2)))
    w = np.array([system.rollout(idle, rng).states[1] for _ in range(4000)])
    sizes = np.linalg.norm(w, axis=1)
    assert sizes.max() <= 0.1
    assert (sizes < 0.1 * np.sqrt(0.5)).mean() == pytest.approx(0.5, abs=0.04)
    assert np.allclose(w.T @ w / 4000, system.noise_covariance, atol=2e-4)
    assert np.allclose(system.noise_covariance, 0.01 / 4 * np.eye(2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": [[0.9, 0.5], [0.0, 0.9]]}, "All margins"),
        ({"start": [1.0, 1.0]}, r"\|x_1\| <= 1"),
        ({"gain": 5.0}, "C_A \\+ gain C_B"),
        ({"state_bound": 0.1}, r"\|A\| <= C_A"),
        ({"Q": [[1, 0], [0, -1]]}, "Q must be symmetric and positive definite"),
        ({"B": [[0.1]]}, "B has shape"),
        ({"noise": -1.0}, "noise = -1"),
        ({"start": [1.0]}, "start has shape"),
        ({"A": [[np.nan, 0], [0, 0]]}, "A"),
        ({"horizon": 0}, "horizon = 0"),
    ],
)
def test_bad_systems_are_refused_with_a_reason(changes: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        own(**changes)


def test_policies_of_another_kind_are_refused() -> None:
    system = own()
    with pytest.raises(InvalidInput, match="LinearPolicy"):
        system.value(TabularPolicy(np.zeros((6, 2), dtype=int)))
    with pytest.raises(InvalidInput, match="gains of shape"):
        system.value(LinearPolicy(np.zeros((6, 2, 2))))
    with pytest.raises(InvalidInput, match="for_user"):
        system.rollout(LinearPolicy(np.zeros((6, 1, 2)), amplitude=0.1), np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="no fact 'noize'"):
        system.task(10, ["noize"])


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 10_000))
def test_random_systems_satisfy_the_assumptions(states: int, inputs: int, seed: int) -> None:
    system = make_problem("random-lq", states=states, inputs=inputs, horizon=8, seed=seed)
    assert all(margin >= -1e-9 for margin in system.margins.values())
    assert system.optimal_value() >= system.baseline()[1]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*GOLDEN, "random-lq"])
def test_environments_pass_gymnasiums_checks(name: str) -> None:
    check_env(gymnasium.make(f"tacit/{name}-v0").unwrapped, skip_render_check=True)


def test_an_environment_lives_the_same_law() -> None:
    system = own(noise=0.0)
    environment = system.environment()
    state, _ = environment.reset(seed=1)
    total, gains = 0.0, system.optimal_gains()
    for h in range(6):
        state, reward, ended, truncated, _ = environment.step(gains[h] @ state)
        total += reward
    assert truncated and not ended
    assert -total == pytest.approx(system.optimal_cost(), rel=1e-12)
    with pytest.raises(InvalidInput, match="finite numbers"):
        environment.reset()
        environment.step(np.array([np.nan]))


def test_it_is_reached_from_the_root_and_described_in_plain_values() -> None:
    assert tacit.LQSystem is LQSystem
    facts = own().describe()
    assert facts["margins"]["|x_1| <= 1"] == pytest.approx(1 - np.hypot(0.6, 0.6))
    assert facts["baseline"]["name"] == "do nothing"
    assert facts["optimal_value"] == -facts["optimal_cost"]
