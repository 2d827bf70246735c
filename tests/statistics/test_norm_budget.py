"""Norm budgets: what one person adds in a life stays within B, whatever they send and how often."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.forecast import bind
from tacit.grid import GRID
from tacit.participation import Participation
from tacit.privacy.counters import strategy
from tacit.privacy.counters.fading import Fading
from tacit.problems.base import Problem
from tacit.statistics.base import Relation
from tacit.statistics.norm_budget import NormBudget
from tacit.trajectory import Lives, Trajectory, VectorTrajectory

RULE = Participation("any", "lifetime")
PROBLEMS = {
    "tacit-joint": tacit.problem("remap-walk"),
    "tacit-control": tacit.problem("lq-double-integrator"),
}


def bound(name: str):  # noqa: ANN201
    agent = tacit.agent(name, epsilon=1.0)
    return bind(PROBLEMS[name], agent, 1000, (), RULE)


def lives_of(problem: Problem, policy, rng: np.random.Generator, count: int) -> list[Trajectory]:  # noqa: ANN001
    return [problem.rollout(policy, rng) for _ in range(count)]


def first_publication(agent):  # noqa: ANN001, ANN201
    from tacit.driver import Learner
    from tacit.privacy.noise import SimulatedNoise
    from tacit.simulation.streams import planner_streams

    learner = Learner(agent, SimulatedNoise(np.random.default_rng(0)))
    return learner.publish(planner_streams(0, 0))


def lived(life: Trajectory) -> Lives:
    return Lives(life.states[None], life.actions[None], life.rewards[None])


def shouted(life: Trajectory, factor: float) -> Trajectory:
    """The same life with numbers that are far too large, where they are numbers."""
    if isinstance(life, VectorTrajectory):
        return VectorTrajectory(life.states * factor, life.actions * factor, life.rewards)
    return life


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_the_sum_of_norms_of_a_life_is_within_the_budget(name: str) -> None:
    agent, rng = bound(name), np.random.default_rng(1)
    statistic, entry = agent.statistic, first_publication(agent)
    assert isinstance(statistic, NormBudget) and statistic.lifelong
    memory, total, norms = statistic.memory(1), 0.0, []
    for k, life in enumerate(lives_of(PROBLEMS[name], entry.for_user(0).policy, rng, 40)):
        out = np.zeros(statistic.layout.size, dtype=np.int64)
        person = np.zeros(1, dtype=np.int64)
        sent = shouted(life, 10.0 ** (k % 3))
        statistic.add_people(lived(sent), entry, np.array([k]), person, memory, out)
        norms.append(np.linalg.norm(out * statistic.layout.units))
        total += norms[-1]
        assert total <= statistic.budget * GRID * (1 + 1e-12)
    assert norms[0] > 0.0 and norms[-1] == 0.0, "a life teaches at first, and then nothing more"
    assert total > 0.99 * statistic.budget * GRID, "and it may teach all of the budget"


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_a_first_participation_counts_in_full(name: str) -> None:
    agent, rng = bound(name), np.random.default_rng(2)
    statistic, entry = agent.statistic, first_publication(agent)
    for life in lives_of(PROBLEMS[name], entry.for_user(0).policy, rng, 5):
        alone, whole = (np.zeros(statistic.layout.size, dtype=np.int64) for _ in range(2))
        statistic.contribute(life, entry, 0, alone)
        statistic.inner.contribute(life, entry, 0, whole)
        assert (alone == whole).all() and whole.any()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_two_lives_are_within_the_sensitivity_through_a_counter(seed: int) -> None:
    """Lives that teach at any moments, in any order: 2 B times the column norm bounds them."""
    rng = np.random.default_rng(seed)
    agent = bound("tacit-control")
    statistic, entry = agent.statistic, first_publication(agent)
    steps, size = 6, statistic.layout.size
    rows = np.zeros((2, steps, size))
    policy = entry.for_user(0).policy
    for world in range(2):
        memory = statistic.memory(1)
        for t in np.sort(rng.integers(steps, size=rng.integers(1, 9))):
            out = np.zeros(size, dtype=np.int64)
            life = shouted(PROBLEMS["tacit-control"].rollout(policy, rng), -1.0 if world else 1.0)
            who = np.zeros(1, dtype=np.int64)
            statistic.add_people(lived(life), entry, np.array([int(t)]), who, memory, out)
            rows[world, t] += out * statistic.layout.units
    groups, totals = np.full(size, -1), np.zeros(0, dtype=np.int64)
    for counter in (strategy("toeplitz", steps), Fading(steps, 0.8, 1.0, groups, totals)):
        _, C = counter.factors()
        moved = np.linalg.norm(C @ (rows[1] - rows[0]))
        most = counter.column_norm() * statistic.sensitivity("l2", Relation.REPLACE_ONE)
        assert moved <= most * (1 + 1e-9)


def test_without_a_rule_nothing_changes() -> None:
    agent = tacit.agent("tacit-control", epsilon=1.0)
    task = bind(PROBLEMS["tacit-control"], agent, 1000).task
    plain = agent.bind(task).statistic
    budget = NormBudget(plain, task)
    assert not budget.lifelong
    for relation in Relation:
        assert budget.sensitivity("l2", relation) == plain.sensitivity("l2", relation)
    lasting = NormBudget(plain, dataclasses.replace(task, rule=RULE))
    assert lasting.sensitivity("l2", Relation.REPLACE_ONE) == pytest.approx(
        2.0 * plain.sensitivity("l2", Relation.ADD_REMOVE_ONE)
    )


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_compiled_runs_equal_the_driver(name: str) -> None:
    rule, agent = Participation(10, "lifetime"), tacit.agent(name, epsilon=1.0)
    runs = [
        tacit.simulate(PROBLEMS[name], agent, 300, participations=rule, compiled=how)
        for how in (True, False)
    ]
    assert (runs[0].regret == runs[1].regret).all()
    assert runs[0].guarantee.epsilon == pytest.approx(1.0, rel=1e-5)
