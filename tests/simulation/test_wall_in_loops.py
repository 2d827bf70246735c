"""Compiled code has no types to protect it, so the loops are checked by behaviour."""

import numpy as np
import pytest

from tacit.agents import make_agent
from tacit.problems import make_problem
from tacit.simulation.dispatch import compiled_run
from tacit.streams import planner_streams

LOCAL = [
    ("ldp-obi", {"epsilon": 20.0}),
    ("ldp-obi", {"epsilon": 20.0, "randomizer": "randomized-response"}),
    ("ldp-obi", {"epsilon": 20.0, "delta": 0.1, "randomizer": "bounded"}),
    ("ldp-psrl", {"epsilon": 20.0}),
]
AGENTS = [("ucb-vi", {"bonus_scale": 0.01}), ("psrl", {}), ("obi", {}), *LOCAL]
GRID = np.array([10_000])


def warm_run(name: str, parameters: dict, episodes: int = 50):
    problem = make_problem("random-mdp", states=3, actions=2, horizon=3, seed=4)
    bound = make_agent(name, **parameters).bind(problem.task(users=1000))
    run = compiled_run(problem, bound, 0, 0, GRID)
    run.advance(episodes)
    return run


def next_policy(run) -> np.ndarray:
    run.streams = planner_streams(5, 5)  # the same planner luck, whatever happened before
    run.advance(1)
    return run.plan.policy.copy()


@pytest.mark.parametrize(("name", "parameters"), AGENTS)
def test_garbage_in_every_raw_buffer_does_not_change_the_next_policy(name, parameters) -> None:
    clean = next_policy(warm_run(name, parameters))
    run = warm_run(name, parameters)
    run.raw.sums[:] = np.iinfo(np.int64).min
    run.raw.contribution[:] = np.iinfo(np.int64).min
    assert np.array_equal(next_policy(run), clean)


@pytest.mark.parametrize(("name", "parameters"), AGENTS)
def test_another_truth_does_not_change_the_next_policy(name, parameters) -> None:
    clean = next_policy(warm_run(name, parameters))
    run = warm_run(name, parameters)
    run.problem = make_problem("random-mdp", states=3, actions=2, horizon=3, seed=5)
    assert np.array_equal(next_policy(run), clean)


@pytest.mark.parametrize(("name", "parameters"), AGENTS)
def test_the_release_is_what_decides(name, parameters) -> None:
    """The checks above would also pass for a planner that reads nothing; this one would not."""
    policies = set()
    for scale in range(1, 40):
        run = warm_run(name, parameters)
        rng = np.random.default_rng(scale)
        run.public.release[:] = rng.integers(0, 100 * scale, size=run.public.release.shape)
        policies.add(next_policy(run).tobytes())
    assert len(policies) > 1


@pytest.mark.parametrize(("name", "parameters"), LOCAL)
def test_the_raw_contribution_reaches_the_sums_only_with_noise(name, parameters) -> None:
    """In the loop of a local randomizer the accumulated sums are not the exact counts."""
    run = warm_run(name, parameters, episodes=30)
    visits = run.public.blocks.visits
    assert visits.sum() != 30 * run.problem.horizon
    spread = np.sqrt(run.agent.privatizer.law(30).variance("visits"))
    noise = visits.sum() - 30 * run.problem.horizon
    assert 1e-3 * spread < abs(noise) < 10 * spread * np.sqrt(visits.size)
