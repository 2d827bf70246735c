"""Norm budgets: what one person adds in a life stays within B, whatever they send and how often."""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tacit
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.grid import GRID
from tacit.privacy.counters import strategy
from tacit.privacy.counters.fading import Fading
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.statistics.base import Relation
from tacit.statistics.norm_budget import NormBudget
from tacit.task.participation import Participation
from tacit.trajectory import Lives, Trajectory, VectorTrajectory, together

RULE = Participation("any", "lifetime")
PROBLEMS = {
    "tacit-joint": tacit.problem("remap-walk"),
    "tacit-control": tacit.problem("lq-double-integrator"),
    "tacit-linear": tacit.problem("low-rank", states=6, actions=3, dimension=4, horizon=3),
}


def bound(name: str):  # noqa: ANN201
    agent = tacit.agent(name, epsilon=1.0)
    return bind(PROBLEMS[name], agent, 1000, (), RULE)


def lives_of(problem: Problem, policy, rng: np.random.Generator, count: int) -> list[Trajectory]:  # noqa: ANN001
    return [problem.rollout(policy, rng) for _ in range(count)]


def first_publication(agent):  # noqa: ANN001, ANN201
    from tacit.learner import Learner
    from tacit.privacy.noise import SimulatedNoise
    from tacit.streams import planner_streams

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
    assert isinstance(statistic, NormBudget) and statistic.lifetime
    memory, total, norms = statistic.memory(1), 0.0, []
    for k, life in enumerate(lives_of(PROBLEMS[name], entry.for_user(0).policy, rng, 40)):
        out = np.zeros(statistic.layout.size, dtype=np.int64)
        person = np.zeros(1, dtype=np.int64)
        sent = shouted(life, 10.0 ** (k % 3))
        statistic.add_people(lived(sent), entry, np.array([k]), memory.of(person), out)
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
            statistic.add_people(lived(life), entry, np.array([int(t)]), memory.of(who), out)
            rows[world, t] += out * statistic.layout.units
    groups, totals = np.full(size, -1), np.zeros(0, dtype=np.int64)
    for counter in (strategy("toeplitz", steps), Fading(steps, 0.8, 1.0, groups, totals)):
        _, C = counter.factors()
        moved = np.linalg.norm(C @ (rows[1] - rows[0]))
        most = counter.column_norm() * statistic.sensitivity("l2", Relation.REPLACE_ONE)
        assert moved <= most * (1 + 1e-9)


# ---- lives of many short participations ----

LONG = {
    "tacit-joint": tacit.problem("remap-walk", horizon=100),
    "tacit-control": tacit.problem("lq-double-integrator"),
    "tacit-linear": tacit.problem("low-rank", states=6, actions=3, dimension=4, horizon=100),
    "tables": tacit.problem("random-mdp", states=2, actions=2, horizon=100),
}
RUNS = st.lists(st.tuples(st.sampled_from((1, 2, 7, 30, 100)), st.integers(1, 120)), max_size=4)
"""Participations of one length, and how many of them follow one another."""


def short(life: Trajectory, length: int) -> Trajectory:
    """What is left of a life that breaks off, or where so little happens."""
    if isinstance(life, VectorTrajectory):
        return shouted(life, length / 1000.0)
    return Trajectory(life.states[: length + 1], life.actions[:length], life.rewards[:length])


@functools.cache
def long(name: str) -> tuple[NormBudget, Publication]:
    agent = tacit.agent("tacit-linear" if name == "tables" else name, epsilon=1.0)
    bound = bind(LONG[name], agent, 1000, (), RULE)
    return bound.statistic, first_publication(bound)


@pytest.mark.parametrize("name", list(LONG))
@given(RUNS, RUNS, st.integers(0, 2**32 - 1))
@example([(1, 400)], [(1, 400)], 0)
@example([(100, 1), (1, 400)], [(1, 400), (100, 1)], 0)
@settings(max_examples=15)
def test_short_participations_are_paid_for(name: str, first: list, second: list, seed: int) -> None:
    """Each costs its length, however short: all of them are within B, and two lives within 2 B."""
    (statistic, entry), rng = long(name), np.random.default_rng(seed)
    who, sums = np.zeros(1, dtype=np.int64), []
    for runs in (first, second):
        memory, total, life_sum = statistic.memory(1), 0.0, np.zeros(statistic.layout.size)
        for length, times in runs:
            life = short(LONG[name].rollout(entry.for_user(0).policy, rng), length)
            for _ in range(times):
                out, before = np.zeros(statistic.layout.size, dtype=np.int64), memory.spent[0]
                statistic.add_people(lived(life), entry, who, memory.of(who), out)
                steps = float(np.linalg.norm(out * statistic.layout.units)) / GRID
                assert steps <= int(memory.spent[0] - before) * (1 + 1e-12)
                total, life_sum = total + steps, life_sum + out * statistic.layout.units
        assert total <= memory.spent[0] * (1 + 1e-9) and memory.spent[0] <= statistic.budget
        sums.append(life_sum)
    moved = float(np.linalg.norm(sums[1] - sums[0]))
    assert moved <= statistic.sensitivity("l2", Relation.REPLACE_ONE) * (1 + 1e-9)


@pytest.mark.parametrize("name", list(LONG))
def test_a_short_participation_costs_no_more_than_it_adds(name: str) -> None:
    """The budget lasts for as many as it is lengths of one, and then it is used up."""
    (statistic, entry), rng = long(name), np.random.default_rng(3)
    who, memory = np.zeros(1, dtype=np.int64), statistic.memory(1)
    life = short(LONG[name].rollout(entry.for_user(0).policy, rng), 2)
    taught = []
    for _ in range(2000):
        out = np.zeros(statistic.layout.size, dtype=np.int64)
        statistic.add_people(lived(life), entry, who, memory.of(who), out)
        taught.append(float(np.linalg.norm(out * statistic.layout.units)) / GRID)
        if not out.any():
            break
    assert 0.0 < taught[0] < statistic.budget / 8 and taught[-1] == 0.0
    assert len(taught) - 1 == math.ceil(statistic.budget / taught[0])
    assert sum(taught) == pytest.approx(statistic.budget, rel=1e-4)


def test_weighed_blocks_of_lives_are_weighed_by_the_heaviest() -> None:
    """All of a life may be in one block."""
    statistic, _ = long("tables")
    names = [block.name for block in statistic.layout.blocks]
    assert len(names) > 1
    scale = {name: 1.0 + number for number, name in enumerate(names)}
    budget, cells = statistic.budget * GRID * len(names), math.sqrt(statistic.layout.size)
    for relation, lives in ((Relation.REPLACE_ONE, 2), (Relation.ADD_REMOVE_ONE, 1)):
        assert statistic.sensitivity("l2", relation, scale) == pytest.approx(lives * budget)
        assert statistic.sensitivity("l1", relation, scale) == pytest.approx(cells * lives * budget)


@pytest.mark.parametrize("name", list(LONG))
def test_what_is_worst_of_one_participation_is_the_statistics_own(name: str) -> None:
    statistic, _ = long(name)
    contexts = getattr(statistic.inner, "worst_contexts", lambda: {"": {}})
    found, own = statistic.worst_contexts(), contexts()
    assert found.keys() == own.keys()
    for case in own:
        assert all(np.array_equal(found[case][key], own[case][key]) for key in own[case])
    for one, two in zip(statistic.worst_pair(), statistic.inner.worst_pair(), strict=True):
        assert np.array_equal(one.states, two.states) and np.array_equal(one.actions, two.actions)


# ---- linear MDPs: contributions that are hardly opposed ----

LINEAR: dict[str, tuple[str, dict[str, int], tuple[str, ...]]] = {
    "one table": ("random-mdp", {"states": 2, "actions": 2, "horizon": 2}, ()),
    "one table, known rewards": ("random-mdp", {"states": 3, "horizon": 2}, ("reward",)),
    "tables": ("river-swim", {"states": 3, "horizon": 2, "inhomogeneous": True}, ()),
    "features": ("synthetic-linear", {"actions": 4, "horizon": 2}, ()),
    "features, known rewards": ("synthetic-linear", {"actions": 4, "horizon": 2}, ("reward",)),
    "rank": ("low-rank", {"states": 3, "actions": 2, "dimension": 4, "horizon": 2}, ()),
}


def linear(name: str, rule: Participation = RULE):  # noqa: ANN201
    problem, parameters, reveal = LINEAR[name]
    agent = tacit.agent("tacit-linear", epsilon=1.0)
    return bind(tacit.problem(problem, **parameters), agent, 1000, reveal, rule)


def every_trip(sizes: tuple[int, int], H: int) -> list[Trajectory]:
    """All trajectories whose rewards are 0, 1/2 or 1, and those that break off."""
    S, A = sizes
    return [
        Trajectory(np.array(s), np.array(a), np.array(r))
        for length in range(H + 1)
        for s in itertools.product(range(S), repeat=length + (length == H or length == 0))
        for a in itertools.product(range(A), repeat=length)
        for r in itertools.product((0.0, 0.5, 1.0), repeat=length)
    ]


def contributions(statistic, entry, trips: list[Trajectory]) -> np.ndarray:  # noqa: ANN001
    out = np.zeros((len(trips), statistic.layout.size), dtype=np.int64)
    for row, trip in zip(out, trips, strict=True):
        statistic.contribute(trip, entry, 0, row)
    return out * statistic.layout.units


@pytest.mark.parametrize("name", list(LINEAR))
def test_no_two_contributions_are_more_opposed_than_declared(name: str) -> None:
    """All pairs of trajectories; nor is one longer than B."""
    agent = linear(name)
    inner, entry = agent.statistic.inner, first_publication(agent)
    found = contributions(inner, entry, every_trip(inner.phi.shape[:2], inner.horizon))
    lengths = np.linalg.norm(found, axis=1)
    B = inner.sensitivity("l2", Relation.ADD_REMOVE_ONE)
    assert 0.9 * B < lengths.max() <= B
    found = found[lengths > 0] / lengths[lengths > 0, None]
    declared = inner.opposed()
    assert -float((found @ found.T).min()) <= declared < 1.0
    if "table" in name:
        assert declared < 1e-5


@pytest.mark.parametrize("name", list(LINEAR))
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_no_two_lives_are_farther_apart_than_declared(name: str, seed: int) -> None:
    """Greedy lives that come at any moments, in either world at others, through two counters."""
    rng, agent = np.random.default_rng(seed), linear(name)
    statistic, entry = agent.statistic, first_publication(agent)
    trips = every_trip(statistic.inner.phi.shape[:2], statistic.inner.horizon)
    steps, size, who = 4, statistic.layout.size, np.zeros(1, dtype=np.int64)
    groups, totals = np.full(size, -1), np.zeros(0, dtype=np.int64)
    for counter in (strategy("toeplitz", steps), Fading(steps, 0.8, 1.0, groups, totals)):
        C, rows = counter.factors()[1], np.zeros((2, steps, size))
        memories = statistic.memory(1), statistic.memory(1)
        for t in range(steps):
            for _ in range(int(rng.integers(3))):
                world, best = int(rng.integers(2)), (-1.0, rows[0], 0)
                for trip in (trips[i] for i in rng.integers(len(trips), size=8)):
                    tried, spent = rows[world].copy(), int(memories[world].spent[0])
                    out, here = np.zeros(size, dtype=np.int64), statistic.memory(1)
                    here.spent[0] = spent
                    statistic.add_people(together([trip]), entry, who, here.of(who), out)
                    tried[t] += out * statistic.layout.units
                    far = float(np.linalg.norm(C @ (tried - rows[1 - world])))
                    best = max(best, (far, tried, int(here.spent[0])), key=lambda b: b[0])
                rows[world], memories[world].spent[0] = best[1], best[2]
        moved = float(np.linalg.norm(C @ (rows[1] - rows[0])))
        most = statistic.sensitivity("l2", Relation.REPLACE_ONE) * counter.column_norm()
        assert moved <= most * (1 + 1e-9)


def test_lives_on_tables_cost_what_one_participation_costs() -> None:
    """And two lives attain it: each teaches all of its budget at the first step."""
    agent = linear("one table")
    statistic, entry = agent.statistic, first_publication(agent)
    once = statistic.inner.sensitivity("l2", Relation.REPLACE_ONE)
    lives = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert lives == pytest.approx(once, rel=1e-5)
    found = contributions(statistic.inner, entry, list(statistic.worst_pair()))
    assert np.linalg.norm(found[1] - found[0]) > 0.999 * lives
    assert agent.guarantee.epsilon == pytest.approx(1.0, rel=1e-5)


def test_a_rule_may_let_a_person_teach_more_than_once() -> None:
    """B is ``often`` times as large, and so is the noise."""
    one, three = linear("one table"), linear("one table", Participation("any", often=3))
    assert three.statistic.budget == pytest.approx(3 * one.statistic.budget, rel=1e-6)
    noise = [agent.guarantee.noise["node std"] for agent in (one, three)]
    assert noise[1] == pytest.approx(3 * noise[0], rel=1e-5)


def test_answered_queries_bound_no_lives() -> None:
    """They pay for every participation, and are refused where lives must be bounded."""
    problem, reveal = PROBLEMS["tacit-linear"], ()
    asked = tacit.agent("tacit-linear", epsilon=1.0, sums="answered")
    assert not bind(problem, asked, 1000, reveal, 3).task.lifetime
    with pytest.raises(InvalidInput, match="nothing here bounds what one person teaches"):
        bind(problem, asked, 1000, reveal, RULE)


def test_without_a_rule_nothing_changes() -> None:
    agent = tacit.agent("tacit-control", epsilon=1.0)
    task = bind(PROBLEMS["tacit-control"], agent, 1000).task
    plain = agent.bind(task).statistic
    budget = NormBudget(plain, task)
    assert not budget.lifetime
    for relation in Relation:
        assert budget.sensitivity("l2", relation) == plain.sensitivity("l2", relation)
    lasting = NormBudget(plain, dataclasses.replace(task, rule=RULE))
    assert lasting.sensitivity("l2", Relation.REPLACE_ONE) == pytest.approx(
        2.0 * plain.sensitivity("l2", Relation.ADD_REMOVE_ONE)
    )


@pytest.mark.parametrize("period", [0, "4d"])
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_compiled_runs_equal_the_driver(name: str, period: object) -> None:
    rule, agent = Participation(10, "lifetime", period=period), tacit.agent(name, epsilon=1.0)
    runs = [
        tacit.Experiment(
            problem=PROBLEMS[name], agent=agent, episodes=300, compiled=how, participation=rule
        ).run()
        for how in (True, False)
    ]
    assert (runs[0].regret == runs[1].regret).all()
    assert runs[0].guarantee.epsilon == pytest.approx(1.0, rel=1e-5)
