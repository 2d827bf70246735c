"""One user's episode of a search: of all that happens its return alone is kept."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.client.episode import RunningEpisode
from tacit.errors import InvalidInput
from tacit.policies.parametric import ParametricPolicy
from tacit.trajectory import VectorTrajectory


@dataclass(eq=False, repr=False)
class SearchEpisode(RunningEpisode):
    """Ask it how to act, tell it what was earned, and say when the episode has ended.

    What is saved, before a call returns, is how many steps there were, what they earned together
    and the action that was asked for last; observations are forgotten at once.
    """

    FORGOTTEN, MADE = "what it earned is", ""

    def __post_init__(self) -> None:
        self._kept = self._kept or [0, 0.0, None]

    @property
    def step(self) -> int:
        """Number of steps that are complete."""
        return int(self._kept[0])

    def act(self, observation: Any) -> Any:
        """The number of an action, or a point of the box; asked again, the same."""
        self._running()
        steps, total, asked = self._kept
        if asked is None:
            policy = self.publication.policy
            assert isinstance(policy, ParametricPolicy), "terms of a search have no other"
            uniforms = [math.ldexp(secrets.randbits(53), -53) for _ in range(policy.draws)]
            action = policy.decide(observation, steps, uniforms)
            asked = action.tolist() if isinstance(action, np.ndarray) else action
            self._kept = [steps, total, asked]
            self._save(self._kept)
        return np.array(asked) if isinstance(asked, list) else asked

    def observe(self, reward: float, *, ended: bool = False) -> None:
        """What the action earned, and whether the episode ended with it.

        The sum is clipped to the declared range; what is not a number counts as its low end.
        """
        self._running()
        steps, total, asked = self._kept
        if asked is None:
            raise InvalidInput("call act first: there is no action this could be the result of")
        self._kept = [steps + 1, total + float(reward), None]
        if ended or steps + 1 == self.terms.task.horizon:
            self._close(self._kept[1])
        else:
            self._save(self._kept)

    def leave(self) -> None:
        """The user stops here, which counts as the least return that there can be."""
        self._not_done()
        self._close(self.terms.reward_range[0])

    def __repr__(self) -> str:
        return f"SearchEpisode(version={self.publication.version}, content hidden)"

    def _close(self, total: float) -> None:
        low, high = self.terms.reward_range
        total = total if self.silent is None else low
        nothing = np.zeros((0, 1))
        clipped = np.array([min(max(total, low), high) if total == total else low])
        self._finish(VectorTrajectory(nothing, nothing, clipped))
        self._kept, self.done = [0, 0.0, None], True
