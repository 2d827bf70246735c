"""Logs of people who never lived: a behaviour in a known table, for studies and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import need
from tacit.kernels import kernel
from tacit.kernels.raw.rollout import Truth, next_of, reward_of
from tacit.kernels.sampling import draw
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.problems.tabular import TabularMDP, cumulative
from tacit.trajectory import Log


def simulate_log(
    problem: TabularMDP, behaviour: Policy, people: int, rng: np.random.Generator, paid: int = -1
) -> Log:
    """One episode of everybody, under the behaviour, with its chances.

    Args:
        problem: the truth.
        behaviour: how the actions were chosen.
        people: how many.
        rng: what luck is drawn from.
        paid: a state whose entry pays 1, in place of the rewards of the problem; -1 for none.
    """
    problem.check_policy(behaviour)
    table = probabilities(behaviour, problem.actions)
    H = problem.horizon
    uniforms = 1 + 3 * H
    rows, size, lives = 0, people * H, 20_000
    columns = (
        np.zeros(size, dtype=np.int8),
        np.zeros(size, dtype=np.int16),
        np.zeros(size, dtype=np.int32),
        np.zeros(size, dtype=np.int16),
        np.zeros(size, dtype=np.float32),
        np.zeros(size, dtype=np.int32),
        np.zeros(size, dtype=np.float32),
    )
    begin = np.zeros(people + 1, dtype=np.int64)
    cdf = cumulative(table)
    for first in range(0, people, lives):
        u = rng.random((min(lives, people - first), uniforms))
        rows = _live(problem.truth, table, cdf, paid, u, first, rows, begin, *columns)
    return Log(begin, *(column[:rows] for column in columns))


def probabilities(policy: Policy, actions: int) -> Array:
    """Action probabilities [H, S, A] of a policy for tables."""
    if isinstance(policy, TabularPolicy):
        return np.eye(actions)[policy.actions]
    assert isinstance(policy, StochasticPolicy)
    return policy.probabilities


def rows_of(log: Log, ended: int = -1) -> dict[str, npt.NDArray[Any]]:
    """The columns of a made-up log as they are read from a file, before they are arranged.

    Next states are not in them; a row that leads to the state ``ended`` ends its episode.
    """
    return {
        "person": np.repeat(np.arange(log.people), np.diff(log.begin)),
        "step": log.step.copy(),
        "state": log.state.copy(),
        "action": log.action.copy(),
        "reward": log.reward.copy(),
        "chance": log.chance.copy(),
        "ends": (log.after == ended).astype(np.int8),
    }


def write_log(log: Log, path: str | Path) -> Path:
    """Write a made-up log as a file that a mapping can read; the ending chooses CSV or parquet.

    Columns are person, step, state, action, reward and propensity; the state that an episode led to
    has a row without an action.
    """
    need("writing a log", "tables")
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    target, rows = Path(path), np.arange(len(log.state))
    ends = np.append(log.opens[1:] != 0, True)
    place = np.sort(np.concatenate([rows, rows[ends]]), kind="stable")
    last = np.append(place[1:] != place[:-1], True) & ends[place]
    person = np.repeat(np.arange(log.people), np.diff(log.begin))
    table = pa.table(
        {
            "person": person[place],
            "step": log.step[place] + last,
            "state": np.where(last, log.after[place], log.state[place]),
            "action": pa.array(log.action[place], mask=last),
            "reward": pa.array(log.reward[place], mask=last),
            "propensity": pa.array(log.chance[place], mask=last),
        }
    )
    if target.suffix == ".csv":
        pyarrow.csv.write_csv(table, target)
    else:
        pyarrow.parquet.write_table(table, target)
    return target


@kernel
def _live(
    truth: Truth,
    table: Array,
    cdf: Array,
    paid: int,
    u: Array,
    first: int,
    rows: int,
    begin: IntArray,
    opens: npt.NDArray[np.int8],
    step: npt.NDArray[np.int16],
    state: npt.NDArray[np.int32],
    action: npt.NDArray[np.int16],
    reward: npt.NDArray[np.float32],
    after: npt.NDArray[np.int32],
    chance: npt.NDArray[np.float32],
) -> int:
    """Write the rows of many people; returns where the next ones begin."""
    H = table.shape[0]
    for p in range(u.shape[0]):
        begin[first + p] = rows
        s = draw(truth.initial_cdf, u[p, 0])
        for h in range(H):
            a = draw(cdf[h, s], u[p, 3 * h + 1])
            x = truth.number[s, a]
            if x < 0:
                break
            r = reward_of(truth.rewards, truth.bernoulli, h, x, u[p, 3 * h + 2])
            n = next_of(truth.begin, truth.end, truth.succ, truth.cdf, h, x, u[p, 3 * h + 3])
            if paid >= 0:
                r = 1.0 if n == paid else 0.0
            opens[rows], step[rows], state[rows], action[rows] = 1 if h == 0 else 0, h, s, a
            reward[rows], after[rows], chance[rows] = r, n, table[h, s, a]
            rows += 1
            s = n
    begin[first + u.shape[0]] = rows
    return rows
