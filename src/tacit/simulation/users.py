"""Simulated users: many of them live through an episode in one compiled call, and are scored.

What they lived through is raw. It is handed to ``statistic.add_many`` and overwritten by the next
ones.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.excitation import directions
from tacit.kernels.raw.lq_rollout import LinearTruth, lq_rollout, normals_per_episode
from tacit.kernels.raw.rollout import Truth, rollout, uniforms_per_episode
from tacit.policies.base import Policy
from tacit.policies.linear import LinearPolicy
from tacit.policies.parametric import ParametricPolicy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.problems.episodic import CompiledEpisodes
from tacit.problems.linear import LinearMDP
from tacit.problems.lq import LQSystem
from tacit.problems.mixture import LinearMixtureMDP
from tacit.problems.tabular import TabularMDP, cumulative
from tacit.simulation.score import Score, record
from tacit.trajectory import Lives

NUMBERS = 1 << 15
"""Random numbers drawn at once (256 kB: stays in the cache); how many changes no result."""


class SimulatedUsers(Protocol):
    """The users of one problem, in one run."""

    rows: int
    """How many live at once, at most."""

    def live(self, policy: Policy, first: int, count: int, score: Score) -> Lives:
        """The next ``count`` users, numbered from ``first`` on, act on a policy that was scored."""


def simulated_users(problem: object, rng: np.random.Generator) -> SimulatedUsers:
    """The users of a problem of one of ``FAMILIES``."""
    users: SimulatedUsers = FAMILIES[type(problem)](problem, rng)
    return users


def _first_rows(lives: Lives, count: int) -> Lives:
    return Lives(lives.states[:count], lives.actions[:count], lives.rewards[:count])


class TabularUsers:
    """SimulatedUsers of a table of states and actions."""

    def __init__(self, problem: TabularMDP, rng: np.random.Generator) -> None:
        self.problem, self._rng = problem, rng
        H, columns = problem.horizon, uniforms_per_episode(problem.horizon)
        rows = self.rows = max(1, NUMBERS // columns)
        self._uniforms, rewards = np.empty((rows, columns)), np.zeros((rows, H))
        states = np.zeros((rows, H + 1), dtype=np.int64)
        self._lives = Lives(states, np.zeros((rows, H), dtype=np.int64), rewards)
        self._acting: tuple[Policy, npt.NDArray[Any]] | None = None

    def live(self, policy: Policy, first: int, count: int, score: Score) -> Lives:
        """One row of uniforms for each."""
        if self._acting is None or self._acting[0] is not policy:
            self._acting = (policy, self._table(policy))
        uniforms = self._uniforms[:count]
        self._rng.random(out=uniforms)
        lives = _first_rows(self._lives, count)
        live_in_table(self.problem.truth, uniforms, self._acting[1], score, lives)
        return lives

    def _table(self, policy: Policy) -> npt.NDArray[Any]:
        """Actions [H, S], or cumulative probabilities of actions [H, S, A]."""
        self.problem.check_policy(policy)
        if isinstance(policy, TabularPolicy):
            return policy.actions
        assert isinstance(policy, StochasticPolicy)
        return cumulative(policy.probabilities)


@kernel
def live_in_table(
    truth: Truth, uniforms: Array, policy: npt.NDArray[Any], score: Score, lives: Lives
) -> None:
    """One episode per row of uniforms under a table, as ``rollout`` takes it."""
    states, actions, rewards = lives
    for row in range(uniforms.shape[0]):
        total = rollout(truth, policy, uniforms[row], states[row], actions[row], rewards[row])
        record(total, score)


class ControlUsers:
    """SimulatedUsers of a linear system."""

    def __init__(self, problem: LQSystem, rng: np.random.Generator) -> None:
        self.problem, self._rng = problem, rng
        H, n, d = problem.horizon, problem.states, problem.inputs
        columns = normals_per_episode(H, n)
        rows = self.rows = max(1, NUMBERS // columns)
        self._normals, rewards = np.empty((rows, columns)), np.zeros((rows, H))
        self._lives = Lives(np.zeros((rows, H + 1, n)), np.zeros((rows, H, d)), rewards)

    def live(self, policy: Policy, first: int, count: int, score: Score) -> Lives:
        """One row of normals for each; the policy's excitation is drawn by the users' numbers."""
        assert isinstance(policy, LinearPolicy)
        normals = self._normals[:count]
        self._rng.standard_normal(out=normals)
        lives, truth = _first_rows(self._lives, count), self.problem.truth
        push = policy.offsets, policy.amplitude, policy.key
        live_in_system(truth, normals, policy.gains, *push, first, score, lives)
        return lives


@kernel
def live_in_system(
    truth: LinearTruth,
    normals: Array,
    gains: Array,
    offsets: Array,
    amplitude: float,
    key: int,
    first: int,
    score: Score,
    lives: Lives,
) -> None:
    """One episode per row of normals; user k pushes along the public directions of number k."""
    states, inputs, rewards = lives
    H, d = offsets.shape
    pushed = np.empty((H, d))
    q = np.empty((H, d))
    for row in range(normals.shape[0]):
        pushed[:] = offsets
        if amplitude > 0.0:
            directions(key, first + row, q)
            for h in range(H):
                for a in range(d):
                    pushed[h, a] += amplitude * q[h, a]
        total = lq_rollout(
            truth, gains, pushed, normals[row], states[row], inputs[row], rewards[row]
        )
        record(total, score)


class SearchUsers:
    """SimulatedUsers of a compiled episodic world; of each the return alone is kept."""

    rows = 4096

    def __init__(self, problem: CompiledEpisodes, rng: np.random.Generator) -> None:
        self.problem, self._rng = problem, rng
        self._returns = np.empty(self.rows)

    def live(self, policy: Policy, first: int, count: int, score: Score) -> Lives:
        """One key for each; the policy's directions are drawn by the users' numbers."""
        assert isinstance(policy, ParametricPolicy)
        returns, keys = self._returns[:count], self._rng.integers(2**62, size=count)
        self.problem.live(policy, first, keys, returns)
        record_all(returns, score)
        nothing = np.zeros((count, 0, 1))
        return Lives(nothing, nothing, returns[:, np.newaxis])


@kernel
def record_all(returns: Array, score: Score) -> None:
    """Score one episode after the other."""
    for k in range(returns.shape[0]):
        record(returns[k], score)


FAMILIES: dict[type, Any] = {
    TabularMDP: TabularUsers,
    LinearMDP: TabularUsers,
    LinearMixtureMDP: TabularUsers,
    LQSystem: ControlUsers,
    CompiledEpisodes: SearchUsers,
}
"""Exact types: a subclass may roll out otherwise, and is left to the driver."""
