"""Declared ranges of returns hold whatever is done, or what lies outside is cut and counted."""

import math

import numpy as np
import pytest

import tacit
from tacit.kernels.raw import classic_control
from tacit.problems.classic_control import CLASSIC, linear_episodes, pendulum, table_episodes
from tacit.problems.episodic import CompiledEpisodes
from tacit.problems.lq import random_lq
from tacit.problems.tabular import TabularMDP

EPISODES = 12


def returned(problem: CompiledEpisodes, act, key: int) -> float:
    """What one episode returns to somebody who sees the true state."""
    world, total = problem.world, 0.0
    s, spare = np.empty(world.states), np.empty(5 * world.states)
    classic_control.start(world, key, s)
    for h in range(world.horizon):
        reward, done = classic_control.step(world, key, h, s, np.atleast_1d(act(s, h)), spare)
        total += reward
        if done:
            break
    return total


def hostile(problem: CompiledEpisodes):
    """Ways to do badly: the ends of what can be done, along and against what moves, and chance."""
    world, rng = problem.world, np.random.default_rng(0)
    d = world.actions
    if world.discrete:
        yield from ((lambda s, h, a=a: float(a)) for a in range(d))
        yield lambda s, h: float(0 if s[-1] > 0 else d - 1)
        yield lambda s, h: float(0 if s[-1] < 0 else d - 1)
        yield lambda s, h: float(rng.integers(d))
        return
    for sign in (-1.0, 0.0, 1.0):
        yield lambda s, h, sign=sign: np.full(d, sign)
        yield lambda s, h, sign=sign: np.full(d, sign * np.sign(s[-1]))
    yield lambda s, h: np.sign(s)[:d] if len(s) >= d else np.ones(d)
    yield lambda s, h: rng.choice([-1.0, 1.0], d)


def worst_and_best(problem: CompiledEpisodes) -> tuple[float, float]:
    totals = [returned(problem, act, key) for act in hostile(problem) for key in range(EPISODES)]
    return min(totals), max(totals)


@pytest.mark.parametrize("name", sorted(set(CLASSIC) - {"Pendulum-v1"}))
def test_no_policy_leaves_the_declared_range(name: str) -> None:
    problem = CLASSIC[name]()
    low, high = worst_and_best(problem)
    assert problem.outside(np.array([low, high])) == 0
    if name == "MountainCarContinuous-v0":  # full force that never gets there: 0.1 a step
        assert low == pytest.approx(-99.9, abs=1e-6)
    elif (
        problem.returns[1] == 0.0
    ):  # -1 a step until it is there: the range is no wider than needed
        assert low == problem.returns[0]


def test_pendulum_is_cut_within_the_bound_that_holds() -> None:
    problem = pendulum()
    least = -200 * (math.pi**2 + 0.1 * 8.0**2 + 0.001 * 2.0**2)
    low, high = worst_and_best(problem)
    assert least <= low < problem.returns[0] and high <= 0.0
    assert problem.outside(np.array([low, -1600.0, 0.0, 1.0])) == 2


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_linear_systems_stay_in_range_whatever_is_put_in(inputs: int) -> None:
    """With several inputs |u| is up to sqrt(d) times the gain, and states leave the unit ball."""
    for seed in range(4):
        problem = linear_episodes(random_lq(states=2, inputs=inputs, seed=seed))
        low, _ = worst_and_best(problem)
        assert problem.outside(np.array([low])) == 0


def test_an_input_that_drives_the_state_out_is_inside_the_range() -> None:
    """One state, no damping to speak of, four inputs that push it the same way."""
    system = tacit.problems.lq.LQSystem(
        A=[[0.5]],
        B=[[0.1, 0.1, 0.1]],
        Q=[[1.0]],
        R=0.001 * np.eye(3),
        horizon=40,
        noise=0.0,
        start=[1.0],
        gain=0.5 / (0.1 * math.sqrt(3)),
    )
    problem = linear_episodes(system)
    low = returned(problem, lambda s, h: np.ones(3), 0)
    assert low < -system.horizon * (1.0 + 0.001 * 3 * system.gain**2), "else this tests nothing"
    assert problem.outside(np.array([low])) == 0


def test_of_a_table_whose_rewards_are_all_negative_an_early_end_is_inside() -> None:
    P = np.zeros((2, 2, 2))
    P[:, :, 1] = 1.0
    table = TabularMDP(
        P,
        np.array([[0.5, 0.5], [0.0, 0.0]]),
        10,
        np.array([1.0, 0.0]),
        terminal=np.array([False, True]),
        facts={"rescaling": {"offset": -3.0, "scale": 2.0}},
    )
    problem = table_episodes(table)
    found = np.array([problem.rollout(problem.uniform(), np.random.default_rng(0)).rewards[0]])
    assert found[0] == -2.0 and problem.outside(found) == 0 and problem.returns == (-30.0, 0.0)


@pytest.mark.parametrize("seed", [18, 21, 22])
def test_pendulum_is_learned_whatever_is_tried_first(seed: int) -> None:
    """One in seven uniform episodes returns less than -1600, and the first one of these seeds."""
    found = tacit.learn(
        "gym:Pendulum-v1", tacit.agent("tacit-search", epsilon=1.0), users=24, seed=seed
    )
    outside = found.tests["outside"]["uniform"]
    assert 10 <= outside <= 50, "0.138 of 200, give or take five standard errors"
    assert f"{outside} of 200 of uniform actions" in found.note
    assert "cut at -1600 and 0" in found.note


def test_a_range_that_nothing_lies_in_is_refused_and_one_that_cuts_is_not() -> None:
    agent = tacit.agent("tacit-search", epsilon=1.0)
    with pytest.raises(tacit.errors.InvalidInput, match="in 20 of them nothing in the range"):
        tacit.learn("gym:CartPole-v1", agent, users=20, returns=(-5, 3))
    found = tacit.learn("gym:CartPole-v1", agent, users=20, returns=(0, 15))
    assert found.tests["outside"]["uniform"] > 100
