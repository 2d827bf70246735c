"""Segment runs: the driver's results in any chunks, its refusals, and no way around the wall."""

import dataclasses

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput
from tacit.privacy import Exact
from tacit.privacy.joint.counted import CountedSums
from tacit.problems import LQSystem
from tacit.schedules import Every
from tacit.simulation.dispatch import TABLE, compiled_run
from tacit.simulation.runs.segment import SegmentRun
from tacit.simulation.runs.stepwise import StepwiseRun
from tacit.statistics.first_visits import FirstVisits


def plant(drift: float = 0.2) -> LQSystem:
    return LQSystem(
        A=[[0.6, drift], [0.0, 0.5]],
        B=[[0.05], [0.25]],
        Q=np.eye(2),
        R=[[0.1]],
        horizon=8,
        noise=0.08,
        start=[0.7, 0.7],
        gain=0.5,
        state_bound=0.69,
        input_bound=0.26,
    )


def table(seed: int = 4):
    return tacit.problem("random-mdp", states=3, actions=2, horizon=3, seed=seed)


CASES = {
    "certainty-equivalence": (plant, plant(-0.1), {}),
    "tacit-control": (plant, plant(-0.1), {"epsilon": 5.0}),
    "tacit-joint": (table, table(5), {"epsilon": 50.0, "first": 20}),
    "tacit-linear": (table, table(5), {"epsilon": 50.0}),
}


def bound(name: str, users: int = 2000):
    make, _, parameters = CASES[name]
    reveal = ["start"] if make is plant else []
    return make(), tacit.agent(name, **parameters).bind(make().task(users, reveal))


def warm(name: str) -> SegmentRun:
    run = compiled_run(*bound(name), 0, 0, np.array([2000]))
    assert type(run) is SegmentRun
    run.advance(40)
    learner = run.learner
    while learner.left > 0 or run.agent.plans_again(learner.served):
        run.advance(1)  # the next user is served after a new release and publication
    return run


def next_policy(run: SegmentRun) -> bytes:
    run.advance(1)
    policy = run.learner.publication.policy
    return (policy.gains if hasattr(policy, "gains") else policy.actions).tobytes()


@pytest.mark.parametrize("name", CASES)
def test_garbage_in_every_raw_buffer_does_not_change_the_next_policy(name) -> None:
    clean, run = next_policy(warm(name)), warm(name)
    for buffer in vars(run.users).values():
        if isinstance(buffer, np.ndarray):
            buffer[:] = np.nan if buffer.dtype.kind == "f" else 0
    assert next_policy(run) == clean


@pytest.mark.parametrize("name", CASES)
def test_another_truth_does_not_change_the_next_policy(name) -> None:
    clean, run = next_policy(warm(name)), warm(name)
    run.problem = run.users.problem = CASES[name][1]
    assert next_policy(run) == clean


@pytest.mark.parametrize("name", CASES)
def test_the_release_is_what_decides(name) -> None:
    policies = set()
    for factor in range(20):
        run = warm(name)
        sums = run.learner.secret.sums
        sums += factor * 2**22 * np.random.default_rng(factor).integers(-9, 9, size=len(sums))
        policies.add(next_policy(run))
    assert len(policies) > 1


@pytest.mark.parametrize("name", CASES)
def test_chunks_do_not_matter(name) -> None:
    problem, agent = bound(name, 300)
    one, two = (compiled_run(problem, agent, 1, 0, np.array([300])) for _ in range(2))
    one.advance(300)
    for _ in range(30):
        two.advance(10)
    assert np.array_equal(one.score.regret, two.score.regret)
    assert np.array_equal(one.score.reward, two.score.reward)


class Choosy:
    """A planner that says itself how many users act on a plan."""

    def __init__(self, planner) -> None:
        self.planner = planner

    def plan(self, *given):
        made = self.planner.plan(*given)
        return dataclasses.replace(made, users=1 + made.version % 5)


def choosy(name: str):
    problem, agent = bound(name, 60)
    statistic = agent.statistic
    exact = Exact(statistic, agent.task)
    return problem, dataclasses.replace(
        agent, privatizer=exact, planner=Choosy(agent.planner), schedule=Every(40)
    )


def test_a_planner_that_chooses_the_number_of_users_is_heeded_as_in_the_driver() -> None:
    problem, agent = choosy("tacit-joint")
    assert type(agent.statistic) is FirstVisits
    run = compiled_run(problem, agent, 3, 0, np.arange(1, 61))
    assert type(run) is SegmentRun
    run.advance(60)
    assert run.learner.publication.version > 60 // 5
    driven = StepwiseRun(problem, agent, 3, 0, np.arange(1, 61), NEVER)
    driven.advance(60)
    assert np.array_equal(run.score.regret, driven.score.regret)
    assert np.array_equal(run.score.reward, driven.score.reward)


class Never:
    def is_set(self) -> bool:
        return False


NEVER = Never()


def test_a_batch_that_the_privatizer_has_no_room_for_is_refused_as_in_the_driver() -> None:
    problem, agent = bound("tacit-joint", 400)
    assert isinstance(agent.privatizer, CountedSums) and agent.privatizer.batch < 399
    overfull = dataclasses.replace(agent, schedule=Every(399))
    grid = np.array([400])
    for run in (
        compiled_run(problem, overfull, 0, 0, grid),
        StepwiseRun(problem, overfull, 0, 0, grid, NEVER),
    ):
        with pytest.raises(InvalidInput, match="users share a batch at most"):
            run.advance(400)


@pytest.mark.parametrize("part", ["statistic", "privatizer"])
@pytest.mark.parametrize("name", [*CASES, "psrl", "tacit-local", "ucrl-vtr", "dp-lsvi-adaptive"])
def test_a_subclass_of_a_part_is_left_to_the_driver(name, part) -> None:
    """It may do anything else, which no table can know."""
    if name in CASES:
        problem, agent = bound(name)
    else:
        given = {"tacit-local": {"epsilon": 1.0}, "dp-lsvi-adaptive": {"epsilon": 9.0}}
        problem = table()
        agent = tacit.agent(name, **given.get(name, {})).bind(problem.task(100))
    assert compiled_run(problem, agent, 0, 0, np.array([10])) is not None
    one = getattr(agent, part)
    one.__class__ = type("Own", (type(one),), {})
    assert compiled_run(problem, agent, 0, 0, np.array([10])) is None


def test_no_two_rows_of_the_table_serve_the_same_parts_by_fused_loops() -> None:
    """Segment runs come last: they serve what no fused loop does."""
    kinds = [row.run is SegmentRun for row in TABLE]
    assert kinds == sorted(kinds)
