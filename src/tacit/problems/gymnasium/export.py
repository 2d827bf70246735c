"""Problems as Gymnasium environments: ``tacit/river-swim-v0`` and so on.

They are registered as soon as both tacit and gymnasium are imported, in either order. Where nobody
imports tacit, ``gymnasium.make("tacit:tacit/river-swim-v0")`` does.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.kernels.raw.lq_rollout import lq_start, lq_step
from tacit.kernels.raw.rollout import draw_next, draw_reward
from tacit.kernels.sampling import draw
from tacit.problems.catalogue import make_problem
from tacit.problems.lq import LQSystem
from tacit.problems.tabular import TabularMDP
from tacit.validate import integer


class TabularEnv(gymnasium.Env[np.int64, np.int64]):
    """One user's episodes in a tabular problem: terminated where it ends, truncated after H steps.

    Observation: the state, Discrete(S). Action: Discrete(A). ``info["step"]`` counts the steps
    taken, which a stage-dependent policy needs; ``info["action_mask"]`` has a 1 for every action
    that is allowed next, where some are not.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, problem: TabularMDP, render_mode: str | None = None) -> None:
        self.problem = problem
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Discrete(problem.states)
        self.action_space = gymnasium.spaces.Discrete(problem.actions)
        self._state = 0
        self._step = problem.horizon  # nothing to step through before the first reset

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Start a new episode from the start law."""
        super().reset(seed=seed)
        self._state = draw(self.problem.truth.initial_cdf, self.np_random.random())
        self._step = 0
        return np.int64(self._state), self._info()

    def step(self, action: np.int64 | int) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """One step; the episode ends in a terminal state, and is truncated at the horizon."""
        a = integer(action, "action", low=0, high=self.problem.actions - 1)
        if self._step >= self.problem.horizon or self._over():
            raise ResetNeeded("the episode is over or has not begun: call reset() before step()")
        truth, h, s = self.problem.truth, self._step, self._state
        if truth.number[s, a] < 0:
            raise InvalidInput(f"action {a} is not allowed in state {s}; see info['action_mask']")
        reward = draw_reward(truth, h, s, a, self.np_random.random())
        self._state = draw_next(truth, h, s, a, self.np_random.random())
        self._step += 1
        truncated = self._step == self.problem.horizon
        return np.int64(self._state), float(reward), self._over(), truncated, self._info()

    def _over(self) -> bool:
        first = self.problem.pairs.first
        return bool(first[self._state] == first[self._state + 1])

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"step": self._step}
        if not self.problem.pairs.every:
            info["action_mask"] = (self.problem.pairs.number[self._state] >= 0).astype(np.int8)
        return info


class LQEnv(gymnasium.Env[Array, Array]):
    """One user's episodes in a linear system; every episode is truncated after H steps.

    Observation: the state, a Box [-1, 1]^n (under Assumption 1 states stay in the unit ball as
    long as |u| <= gain; beyond that the observation is cut off at the box). Action: the input, a
    Box [-gain, gain]^d. Reward: minus the cost of the step.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, problem: LQSystem, render_mode: str | None = None) -> None:
        self.problem = problem
        self.render_mode = render_mode
        shape = (problem.states,)
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, shape, dtype=np.float64)
        reach = max(problem.gain, 1e-9)
        self.action_space = gymnasium.spaces.Box(-reach, reach, (problem.inputs,), dtype=np.float64)
        self._state = np.zeros(problem.states)
        self._step = problem.horizon

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start a new episode from the start law."""
        super().reset(seed=seed)
        self._state = np.empty(self.problem.states)
        lq_start(self.problem.truth, float(self.np_random.standard_normal()), self._state)
        self._step = 0
        return self._seen(), {"step": 0}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One step; the episode is truncated at the horizon and has no terminal state."""
        if self._step >= self.problem.horizon:
            raise ResetNeeded("the episode is over or has not begun: call reset() before step()")
        u = np.asarray(action, dtype=np.float64)
        if u.shape != (self.problem.inputs,) or not np.isfinite(u).all():
            raise InvalidInput(
                f"action = {action!r}, but it must be {self.problem.inputs} finite numbers"
            )
        after = np.empty(self.problem.states)
        g = self.np_random.standard_normal(self.problem.states + 2)
        cost = lq_step(self.problem.truth, self._state, u, g, after)
        self._state = after
        self._step += 1
        truncated = self._step == self.problem.horizon
        return self._seen(), -float(cost), False, truncated, {"step": self._step}

    def _seen(self) -> Array:
        return np.clip(self._state, -1.0, 1.0)


def make_environment(
    problem: str, render_mode: str | None = None, **parameters: Any
) -> gymnasium.Env[Any, Any]:
    """What ``gymnasium.make`` calls for every id that tacit registers."""
    made = make_problem(problem, **parameters)
    environment: gymnasium.Env[Any, Any] = made.environment()
    environment.render_mode = render_mode
    return environment
