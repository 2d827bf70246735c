"""Segments of linear systems: raw buffers cannot reach the next policy, chunks change nothing."""

import numpy as np
import pytest

import tacit
from tacit.problems import LQSystem
from tacit.simulation.lq_runs import SegmentRun, control_run

AGENTS = [("certainty-equivalence", {}), ("tacit-control", {"epsilon": 5.0})]
GRID = np.array([2000])


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


def warm(name: str, parameters: dict, truth: LQSystem | None = None) -> SegmentRun:
    problem = plant()
    bound = tacit.agent(name, **parameters).bind(problem.task(2000, ["start"]))
    run = control_run(problem, bound, 0, 0, GRID)
    assert isinstance(run, SegmentRun)
    run.advance(40)
    run._left = 0  # the next user is served after a new publication
    return run


def next_gains(run: SegmentRun) -> np.ndarray:
    run.advance(1)
    return run._publication.policy.gains


@pytest.mark.parametrize(("name", "parameters"), AGENTS)
def test_garbage_in_every_raw_buffer_does_not_change_the_next_policy(name, parameters) -> None:
    clean = next_gains(warm(name, parameters))
    run = warm(name, parameters)
    for buffer in run._life[:-1]:
        buffer[:] = np.nan
    run._life.contribution[:] = np.iinfo(np.int64).min
    run._normals[:] = np.nan
    assert np.array_equal(next_gains(run), clean)


@pytest.mark.parametrize(("name", "parameters"), AGENTS)
def test_another_truth_does_not_change_the_next_policy(name, parameters) -> None:
    clean = next_gains(warm(name, parameters))
    run = warm(name, parameters)
    run.problem = plant(-0.1)
    assert np.array_equal(next_gains(run), clean)


@pytest.mark.parametrize(("name", "parameters"), AGENTS)
def test_the_release_is_what_decides(name, parameters) -> None:
    run = warm(name, parameters)
    before = run._secret.sums.copy()
    run._secret.sums[:] = before + 2**22 * np.arange(len(before))
    assert not np.array_equal(next_gains(run), next_gains(warm(name, parameters)))


@pytest.mark.parametrize(("name", "parameters"), AGENTS)
def test_chunks_do_not_matter(name, parameters) -> None:
    one, two = (
        control_run(
            plant(),
            tacit.agent(name, **parameters).bind(plant().task(300, ["start"])),
            1,
            0,
            np.array([300]),
        )
        for _ in range(2)
    )
    one.advance(300)
    for _ in range(30):
        two.advance(10)
    assert np.array_equal(one.score.regret, two.score.regret)
    assert np.array_equal(one.score.reward, two.score.reward)
