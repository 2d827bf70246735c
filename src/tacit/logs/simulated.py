"""Logs of people who never lived: a behaviour in a known table, for studies and tests."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.raw.rollout import Truth, rollout, uniforms_per_episode
from tacit.planners.evaluation.draws import action_chances
from tacit.policies.base import Policy
from tacit.problems.tabular import TabularMDP, cumulative
from tacit.trajectory import Log

AT_ONCE = 20_000
"""People who live in one compiled call; how many changes no result."""

KINDS = (np.int8, np.int16, np.int32, np.int16, np.float32, np.int32, np.float32)
"""Of the columns after ``begin``."""


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
    table = action_chances(behaviour, problem.actions)
    assert table is not None
    H, cdf, parts = problem.horizon, cumulative(table), []
    for first in range(0, people, AT_ONCE):
        u = rng.random((min(AT_ONCE, people - first), uniforms_per_episode(H)))
        states = np.empty((len(u), H + 1), dtype=np.int64)
        actions, rewards = np.empty((len(u), H), dtype=np.int64), np.empty((len(u), H))
        _live(problem.truth, cdf, u, states, actions, rewards)
        who, h = np.nonzero(problem.truth.number[states[:, :-1], actions] >= 0)  # until the end
        s, a, n = states[who, h], actions[who, h], states[who, h + 1]
        paid_now = rewards[who, h] if paid < 0 else n == paid
        columns = (h == 0, h, s, a, paid_now, n, table[h, s, a])
        narrow = [column.astype(kind) for column, kind in zip(columns, KINDS, strict=True)]
        parts.append((np.bincount(who, minlength=len(u)), *narrow))
    rows, *joined = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Log(np.append(0, np.cumsum(rows)), *joined)


@kernel
def _live(
    truth: Truth, cdf: Array, u: Array, states: IntArray, actions: IntArray, rewards: Array
) -> None:
    """One episode per row of uniforms."""
    for row in range(u.shape[0]):
        rollout(truth, cdf, u[row], states[row], actions[row], rewards[row])
