"""How a run is scored: exact regret and the users' rewards, written down at checkpoints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.public.planning import policy_values, start_value
from tacit.kernels.raw.rollout import Truth
from tacit.problems.base import Problem


class Score(NamedTuple):
    """Exact regret so far, and where it is written down.

    ``now`` holds (regret per episode of the current policy, cumulative regret, cumulative reward),
    ``at`` the number of episodes done and of checkpoints passed.
    """

    optimum: float
    now: Array
    at: IntArray
    checkpoints: IntArray
    regret: Array
    reward: Array


CHANGING = ("now", "at", "regret", "reward")
"""Its arrays that episodes change."""


def new_score(problem: Problem, checkpoints: IntArray) -> Score:
    """A score at zero episodes."""
    return Score(
        optimum=problem.optimal_value(),
        now=np.zeros(3),
        at=np.zeros(2, dtype=np.int64),
        checkpoints=checkpoints,
        regret=np.full(len(checkpoints), np.nan),
        reward=np.full(len(checkpoints), np.nan),
    )


@kernel
def record(reward: float, score: Score) -> None:
    """Add one episode to the score, and write it down if this is a checkpoint.

    Curves are taken out of the tuple where they are written, and there is one branch: otherwise
    arrays are counted in and out by every episode, which costs 20 times what the rest does.
    """
    now, at = score.now, score.at
    now[1] += now[0]
    now[2] += reward
    at[0] += 1
    c = min(at[1], score.checkpoints.shape[0] - 1)  # the last checkpoint is the last episode
    if score.checkpoints[c] == at[0]:
        score.regret[c] = now[1]
        score.reward[c] = now[2]
        at[1] = c + 1


@kernel
def rescore(truth: Truth, policy: IntArray, optimum: float, values: Array, now: Array) -> None:
    """Exact regret per episode of a new policy; ``values`` [H+1, S] is work space."""
    rewards, end_reward = truth.rewards, truth.end_reward
    policy_values(truth.number, truth.rows, truth.P, rewards, end_reward, policy, values)
    now[0] = optimum - start_value(truth.initial, values)
