"""One user's episode of a search: of all that happens its return alone is kept."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.client.terms import Terms
from tacit.errors import InvalidInput
from tacit.policies.parametric import ParametricPolicy
from tacit.publication import Publication
from tacit.trajectory import Trajectory, VectorTrajectory


@dataclass(eq=False, repr=False)
class SearchEpisode:
    """Ask it how to act, tell it what was earned, and say when the episode has ended.

    What is saved, before a call returns, is how many steps there were, what they earned together
    and the action that was asked for last; observations are forgotten at once.

    Attributes:
        publication: the policy acted on, with the user's own direction in it if a report follows.
        silent: why nothing of this episode will be reported, in a sentence; None if a report
            follows.
        done: whether it is over.
    """

    terms: Terms
    publication: Publication
    _kept: list[Any]
    _save: Callable[[list[Any]], None]
    _finish: Callable[[Trajectory], None]
    _over: Callable[[], bool]
    silent: str | None = None
    done: bool = False

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
            found = policy.decide(observation, steps, uniforms)
            asked = found.tolist() if isinstance(found, np.ndarray) else found
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

    def _running(self) -> None:
        self._not_done()
        if self._over():
            self.leave()
            raise InvalidInput(
                "the time of this episode is over: its report, if there is one, is made as if the "
                "user had left"
            )

    def _not_done(self) -> None:
        if self.done:
            raise InvalidInput("this episode is over and what it earned is forgotten")

    def _close(self, total: float) -> None:
        low, high = self.terms.reward_range
        total = total if self.silent is None else low
        nothing = np.zeros((0, 1))
        clipped = np.array([min(max(total, low), high) if total == total else low])
        self._finish(VectorTrajectory(nothing, nothing, clipped))
        self._kept, self.done = [0, 0.0, None], True
