"""Linear systems as Gymnasium environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.kernels.lq_rollout import lq_start, lq_step
from tacit.problems.lq import LQSystem


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
