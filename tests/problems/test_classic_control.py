"""The compiled classic worlds equal Gymnasium's own, step by step; linear ones have exact costs."""

import gymnasium
import numpy as np
import pytest

from tacit.errors import InvalidInput
from tacit.kernels.raw import classic_control
from tacit.policies.linear import LinearPolicy
from tacit.policies.parametric import ParametricPolicy, parameters
from tacit.policies.tabular import TabularPolicy
from tacit.problems import make_problem
from tacit.problems.classic_control import (
    CLASSIC,
    cart_pole,
    linear_episodes,
    pendulum,
    table_episodes,
)


def pushed(name: str, s: np.ndarray, rng: np.random.Generator, actions: int) -> float:
    """An action; pushing the way it moves reaches the goals, so that ends are compared as well."""
    if name == "MountainCar-v0":
        return 2.0 if s[1] >= 0 else 0.0
    if name == "Acrobot-v1":
        return 2.0 if s[3] > 0 else 0.0
    if name == "MountainCarContinuous-v0":
        return float(np.float32(0.9 if s[1] >= 0 else -0.8))
    if name == "Pendulum-v1":
        return float(np.float32(rng.uniform(-1, 1)))
    return float(rng.integers(actions))


@pytest.mark.parametrize("name", sorted(CLASSIC))
@pytest.mark.parametrize("seed", range(3))
def test_same_episode(name: str, seed: int) -> None:
    """Same first state, same actions: same observations, rewards and end."""
    problem = CLASSIC[name]()
    world, env = problem.world, gymnasium.make(name)
    assert env.spec.max_episode_steps == problem.horizon
    first, _ = env.reset(seed=seed)
    s, rng = np.array(env.unwrapped.state, dtype=np.float64), np.random.default_rng(seed)
    o, spare = np.empty(len(first)), np.empty(5 * world.states)
    classic_control.observe(world, s, o)
    np.testing.assert_array_equal(o, np.float32(first).astype(np.float64))
    total = 0.0
    for h in range(world.horizon):
        a = np.array([pushed(name, s, rng, world.actions)])
        given = int(a[0]) if world.discrete else np.float32(a * problem.form.box[1])
        after, reward, ended, cut, _ = env.step(given)
        mine, done = classic_control.step(world, 0, h, s, a, spare)
        classic_control.observe(world, s, o)
        np.testing.assert_allclose(o, after, rtol=0, atol=2e-6)
        np.testing.assert_allclose(s, np.array(env.unwrapped.state, dtype=float), rtol=0, atol=1e-7)
        assert mine == pytest.approx(reward, abs=1e-7) and done == ended
        total += mine
        if ended or cut:
            break
    assert ended or h + 1 == world.horizon
    assert problem.returns[0] <= total <= problem.returns[1]


@pytest.mark.parametrize("name", sorted(CLASSIC))
def test_first_states_have_the_law_of_gymnasium(name: str) -> None:
    """Means of 4,000 first states are within 5 standard errors, and ends are the same."""
    problem, env = CLASSIC[name](), gymnasium.make(name)
    s = np.empty((4000, problem.world.states))
    for key, row in enumerate(s):
        classic_control.start(problem.world, 1000 + key, row)
    theirs = []
    for seed in range(1000):
        env.reset(seed=seed)
        theirs.append(np.array(env.unwrapped.state, dtype=float))
    error = s.std(axis=0) / np.sqrt(1000) + 1e-12
    assert (np.abs(s.mean(axis=0) - np.mean(theirs, axis=0)) < 6 * error).all()
    spread = np.ptp(s, axis=0)
    assert np.ptp(theirs, axis=0) == pytest.approx(spread, rel=0.02, abs=1e-9)


def test_linear_systems_cost_what_they_cost() -> None:
    """The mean of 20,000 episodes of a linear feedback is within 5 standard errors of its cost."""
    system = make_problem("lq-double-integrator")
    problem = linear_episodes(system)
    gains = np.array([[-0.2, -0.3]])
    exact = system.value(LinearPolicy(np.broadcast_to(gains, (20, 1, 2))))
    policy = ParametricPolicy(problem.form, (gains / system.gain).ravel(), problem.horizon)
    returns = np.empty(20_000)
    problem.live(policy, 0, np.arange(len(returns)) + 7, returns)
    assert abs(returns.mean() - exact) < 5 * returns.std() / np.sqrt(len(returns))
    low, high = problem.returns
    assert low <= returns.min() and returns.max() <= high
    with pytest.raises(InvalidInput, match="cannot be searched"):
        linear_episodes(make_problem("lq-thermal"))


def test_uniform_actions_and_a_batch_are_what_single_episodes_are() -> None:
    problem = CLASSIC["CartPole-v1"]()
    rng = np.random.default_rng(0)
    totals = [float(problem.rollout(problem.uniform(), rng).rewards[0]) for _ in range(400)]
    assert 18 < np.mean(totals) < 27  # Gymnasium's own: 22
    policy = ParametricPolicy(problem.form, np.array([0.1, 0.2, 1.0, 0.7]), 500, sigma=1.0, key=3)
    keys, returns = np.arange(6) + 11, np.empty(6)
    problem.live(policy, 4, keys, returns)
    alone = [
        classic_control.play(problem.world, problem.form, policy.for_user(4 + k).theta, int(key))
        for k, key in enumerate(keys)
    ]
    assert returns.tolist() == alone


@pytest.mark.parametrize("name", ["river-swim", "random-mdp", "coach"])
def test_a_table_as_episodes_is_worth_what_the_table_says(name: str) -> None:
    table = make_problem(name, horizon=8)
    world = table_episodes(table)
    rng = np.random.default_rng(5)
    theta = rng.normal(size=parameters(world.form))
    policy = ParametricPolicy(world.form, theta, table.horizon)
    seen = range(table.states) if table.coordinates is None else table.coordinates
    actions = [policy.act(s, 0) for s in seen]
    exact = table.value(TabularPolicy(np.tile(actions, (table.horizon, 1))))
    found = np.empty(4000)
    world.live(policy, 0, np.arange(4000), found)
    assert found.mean() == pytest.approx(exact, abs=5 * found.std() / 63 + 1e-9)


def test_a_table_that_says_what_is_seen_is_scored_by_it() -> None:
    world = make_problem("episodes", of="coach")
    assert world.task(10).sizes == {"states": 3, "actions": 4} and parameters(world.form) == 12
    assert world.form.shift.tolist() == world.form.scale.tolist() == [0.5, 0.5, 0.5]
    seen: list[list[float]] = []
    world.through(1, lambda o: (seen.append(o.tolist()), 1)[1], lambda reward, ended: None)
    assert seen[0][1:] == [0.0, 0.0], "nobody is used to messages yet, or annoyed"
    assert {context for context, _, _ in seen} == {0.0, 1.0}
    assert seen[-1][1] > 0.9, "a message every day wears people out"


def test_an_episode_step_by_step_is_the_compiled_one() -> None:
    tables = [table_episodes(make_problem(name)) for name in ("river-swim", "coach")]
    for world in (cart_pole(), pendulum(), *tables):
        theta = np.random.default_rng(3).normal(size=parameters(world.form))
        policy = ParametricPolicy(world.form, theta, world.horizon)
        for key in (1, 2):
            steps: list[float] = []
            world.through(
                key,
                lambda o, policy=policy: policy.act(o, 0),
                lambda reward, ended, steps=steps: steps.append(reward),
            )
            assert sum(steps) == pytest.approx(world._play(policy, key), rel=1e-9)
