"""Tabular problems as Gymnasium environments."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from scipy import stats

import tacit
from patience import PATIENCE
from tacit.problems import problems
from tacit.problems.catalogue import register
from tacit.problems.gymnasium.export import TabularEnv

MADE = {entry.name: tacit.problem(entry.name) for entry in problems}
NAMES = [
    name
    for name, made in MADE.items()
    if isinstance(made, tacit.TabularMDP) and made.horizon > 1  # the checker wants a second step
]


def play(env, actions, seed):
    """Everything an episode shows, as a list."""
    seen = [env.reset(seed=seed)]
    seen += [env.step(a) for a in actions]
    return seen


# ---- the Gymnasium contract; the suite's configuration turns the checker's warnings into errors -


@pytest.mark.parametrize("name", NAMES)
def test_registered_environments_pass_the_checker(name):
    env = gymnasium.make(f"tacit/{name}-v0").unwrapped
    check_env(env)
    assert isinstance(env, TabularEnv) and env.problem.name == name


@pytest.mark.parametrize("name", NAMES)
def test_problem_environments_pass_the_checker(name):
    problem = tacit.problem(name)
    env = problem.environment()
    check_env(env, skip_render_check=True)  # that check needs an id; there is nothing to render
    assert env.problem is problem
    assert env.observation_space == gymnasium.spaces.Discrete(problem.states)
    assert env.action_space == gymnasium.spaces.Discrete(problem.actions)


def test_parameters_reach_the_problem():
    env = gymnasium.make("tacit/river-swim-v0", states=5, horizon=9, kernel="vtr")
    problem = env.unwrapped.problem
    assert (problem.states, problem.horizon) == (5, 9)
    assert np.array_equal(problem.P, tacit.problem("river-swim", states=5, kernel="vtr").P)
    with pytest.raises(tacit.InvalidInput, match="states = 1, but"):
        gymnasium.make("tacit/river-swim-v0", states=1)


def test_registering_twice_does_no_harm():
    before = set(gymnasium.registry)
    register()
    assert set(gymnasium.registry) == before
    assert {f"tacit/{name}-v0" for name in MADE} <= before


# ---- episodes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [1, 2, 13])
def test_episodes_are_truncated_at_the_horizon_and_never_terminated(horizon):
    env = tacit.problem("river-swim", horizon=horizon).environment()
    for seed in (0, None):  # twice: reset starts a full new episode
        _, info = env.reset(seed=seed)
        assert info == {"step": 0}
        for h in range(horizon):
            _, _, terminated, truncated, info = env.step(1)
            assert terminated is False
            assert truncated is (h == horizon - 1)
            assert info == {"step": h + 1}


def test_steps_after_the_end_are_refused():
    env = tacit.problem("river-swim", horizon=3).environment()
    play(env, [0, 1, 0], seed=0)
    for _ in range(2):
        with pytest.raises(ResetNeeded, match=r"the episode is over"):
            env.step(0)
    env.reset()
    env.step(0)


def test_a_step_before_the_first_reset_is_refused():
    env = tacit.problem("river-swim", horizon=3).environment()
    with pytest.raises(ResetNeeded, match=r"has not begun: call reset\(\)"):
        env.step(0)


@pytest.mark.parametrize("action", [2, -1, 10**9, 0.7, "left", None, True])
def test_bad_actions_are_refused_and_do_not_count(action):
    env = tacit.problem("river-swim", horizon=2).environment()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=f"action = {action!r}, but it must be a whole number"):
        env.step(action)
    assert env.step(0)[4] == {"step": 1}


def test_same_seed_same_episode():
    env = tacit.problem("random-mdp", states=6, horizon=40, seed=3).environment()
    other = tacit.problem("random-mdp", states=6, horizon=40, seed=3).environment()
    actions = np.random.default_rng(0).integers(2, size=40)
    assert play(env, actions, seed=5) == play(other, actions, seed=5) == play(env, actions, seed=5)
    assert play(env, actions, seed=5) != play(env, actions, seed=6)


def test_stages_and_rewards_are_those_of_the_problem():
    """Two states that swap at even steps and stay at odd ones; rewards name stage and state."""
    swap, stay = np.eye(2)[[[1], [0]]], np.eye(2)[[[0], [1]]]
    R = np.arange(8).reshape(4, 2, 1) / 8
    env = tacit.TabularMDP([swap, stay, swap, stay], R, 4, initial=1).environment()
    seen = play(env, [0] * 4, seed=0)
    assert [int(step[0]) for step in seen] == [1, 0, 0, 1, 1]
    assert [step[1] for step in seen[1:]] == [R[0, 1, 0], R[1, 0, 0], R[2, 0, 0], R[3, 1, 0]]


# ---- the law of an episode ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def sampled():
    """Counts of starts, rewards and transitions of 6000 episodes under random actions."""
    rng = np.random.default_rng(8)
    S, A, H = 3, 2, 2
    problem = tacit.TabularMDP(
        rng.dirichlet(np.full(S, 4.0), size=(H, S, A)),
        rng.uniform(0.2, 0.8, size=(H, S, A)),
        H,
        [0.2, 0.3, 0.5],
        rewards="bernoulli",
    )
    env = problem.environment()
    env.reset(seed=9)
    starts, paid, moves = np.zeros(S), np.zeros((H, S, A, 2)), np.zeros((H, S, A, S))
    for _ in range(6000):
        state, _ = env.reset()
        starts[state] += 1
        for h in range(H):
            action = int(rng.integers(A))
            after, reward, *_ = env.step(action)
            moves[h, state, action, after] += 1
            paid[h, state, action, int(reward)] += 1
            state = after
    return problem, starts, paid, moves


def p_value(counts, probabilities):
    """Pearson's test of all rows at once; one degree of freedom is lost per row."""
    expected = counts.sum(-1, keepdims=True) * probabilities
    assert (expected >= 5).all()
    degrees = counts.size - counts.size // counts.shape[-1]
    return stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), degrees)


def test_frequencies_match_the_tables(sampled):
    """The seed is fixed; over seeds, three tests at 1e-4 fail with probability 3e-4."""
    problem, starts, paid, moves = sampled
    coins = np.stack([1 - problem.R, problem.R], axis=-1)
    assert p_value(starts, problem.initial) > 1e-4
    assert p_value(moves, problem.P) > 1e-4
    assert p_value(paid, coins) > 1e-4


def test_frequencies_do_not_match_other_tables(sampled):
    """The tests above have power: exchanged stages, moved mass and wrong coins are found."""
    problem, starts, paid, moves = sampled
    coins = np.stack([1 - problem.R, problem.R], axis=-1)
    assert p_value(moves, problem.P[::-1]) < 1e-6
    assert p_value(moves, 0.75 * problem.P + 0.25 / 3) < 1e-4
    assert p_value(starts, np.full(3, 1 / 3)) < 1e-6
    assert p_value(paid, 0.8 * coins + 0.1) < 1e-4


# ---- fresh processes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import gymnasium, tacit; env = gymnasium.make('tacit/river-swim-v0')",
        "import tacit, gymnasium; env = gymnasium.make('tacit/river-swim-v0')",
        "import gymnasium; env = gymnasium.make('tacit:tacit/river-swim-v0')",
        "import tacit.problems.gymnasium.export\n"
        "import gymnasium; env = gymnasium.make('tacit/river-swim-v0')",
    ],
    ids=["gymnasium first", "tacit first", "by module name", "by way of the environments"],
)
def test_a_fresh_process_can_make_the_environment(code):
    code += "; env.reset(seed=0); print(env.spec.id, env.step(1)[4]['step'])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.stdout.strip(), done.stderr) == ("tacit/river-swim-v0 1", "")
