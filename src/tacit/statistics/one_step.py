"""One assigned step of a tabular trajectory, as one cell."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit.arrays import IntArray
from tacit.kernels.cells import step_reward, step_state
from tacit.kernels.counts import REWARD_STEPS
from tacit.publication import Publication
from tacit.statistics.base import Block, Layout, Norm, Relation, block_weights
from tacit.task import Task
from tacit.trajectory import Trajectory


class OneStep:
    """(s_h, r_h, s_{h+1}) at the step h that the report's public id assigns (tabular_ldp B1).

    ``step`` marks that step; it is the same whatever the user lived through. ``cell`` holds mass 1:
    r_h in (s, 1, s'), the rest in (s, 0, s'), in steps of 2^-24; whoever randomizes the cell draws
    rho from the two. At the last step s' is written as 0. Actions are not read (B2). States and
    rewards are clipped; a trajectory that ends early goes on in state 0 with reward 0.
    """

    def __init__(self, task: Task) -> None:
        S = task.sizes["states"]
        self.states = S
        self.horizon = task.horizon
        self.layout = Layout(
            [Block("step", (self.horizon,)), Block("cell", (S, 2, S), 1.0 / REWARD_STEPS)]
        )

    def step(self, coin: int) -> int:
        """The step a report of that id is about: all in turn."""
        return coin % self.horizon

    def contribute(
        self, trajectory: Trajectory, publication: Publication, coin: int, out: IntArray
    ) -> None:
        """Overwrite ``out`` with the cell of the assigned step."""
        out[:] = 0
        views, h, S = self.layout.views(out), self.step(coin), self.states
        following = 0 if h == self.horizon - 1 else step_state(trajectory.states, h + 1, S)
        reward = step_reward(trajectory.rewards, h)
        s = step_state(trajectory.states, h, S)
        views["step"][h] = 1
        views["cell"][s, 1, following] = reward
        views["cell"][s, 0, following] = REWARD_STEPS - reward

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """Replacing a user moves mass 1 from one cell to another; the step does not move."""
        weights = block_weights(self.layout, norm, relation, scale)
        if relation is Relation.REPLACE_ONE:
            return weights["cell"] * (2.0 if norm == "l1" else math.sqrt(2.0))
        if norm == "l1":
            return weights["step"] + weights["cell"]
        return math.hypot(weights["step"], weights["cell"])

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Always in the first state with reward 1, against always in the last one without.

        They differ at every step, so in whichever step is assigned.
        """

        def stay(s: int, reward: float) -> Trajectory:
            H = self.horizon
            return Trajectory(
                np.full(H + 1, s), np.zeros(H, dtype=np.int64), np.full(H, float(reward))
            )

        return stay(0, 1.0), stay(self.states - 1, 0.0)
