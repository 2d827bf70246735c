"""One user's episode under one published policy; its raw steps stay on the device (local model)."""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.client.terms import Terms
from tacit.errors import InvalidInput
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.publication import Publication
from tacit.trajectory import Trajectory


@dataclass(eq=False, repr=False)
class RunningEpisode(ABC):
    """What every episode has: it is saved as it goes on, and over once.

    Attributes:
        publication: the policy acted on, the same for the whole episode; in a search with the
            user's own direction in it if a report follows.
        silent: why nothing of this episode will be reported, in a sentence; None if a report
            follows.
        done: whether it is over, and what happened in it forgotten.
    """

    FORGOTTEN: ClassVar[str]
    """What is gone when it is over, in words."""
    MADE: ClassVar[str]
    """Of what its report is made if its time is over before it is, in words."""

    terms: Terms
    publication: Publication
    _kept: list[Any]
    _save: Callable[[list[Any]], None]
    _finish: Callable[[Trajectory], None]
    _over: Callable[[], bool]
    silent: str | None = None
    done: bool = False

    @abstractmethod
    def leave(self) -> None:
        """The user stops here."""

    def _running(self) -> None:
        self._not_done()
        if self._over():
            self.leave()
            raise InvalidInput(
                "the time of this episode is over: its report, if there is one, is made "
                f"{self.MADE}as if the user had left"
            )

    def _not_done(self) -> None:
        if self.done:
            raise InvalidInput(f"this episode is over and {self.FORGOTTEN} forgotten")


@dataclass(eq=False, repr=False)
class Episode(RunningEpisode):
    """Ask it how to act, tell it what happened.

    Every word is saved before the call returns, so that an app may be closed between two steps.
    With the last step, in a terminal state, when the user leaves, or when the time of the episode
    is over, the report is made and the steps are forgotten. Steps of an episode that is not
    reported are just forgotten.
    """

    FORGOTTEN, MADE = "its steps are", "from the steps so far, "

    @property
    def step(self) -> int:
        """Number of steps that are complete."""
        return sum(len(step) == 4 for step in self._kept)

    def act(self, state: int | str) -> int:
        """The action for the state the user is in, by number or by name."""
        self._running()
        s = self.terms.state(state)
        if self._open():
            if self._kept[-1][0] == s:
                return int(self._kept[-1][1])  # asked again: the same answer, also if drawn
            self._kept.pop()
        action = self._choose(len(self._kept), s)
        self._kept.append([s, action])
        self._save(self._kept)
        return action

    def observe(self, reward: float, next_state: int | str) -> None:
        """What the action led to. Rewards are mapped from the declared range to [0, 1], clipped."""
        self._running()
        if not self._open():
            raise InvalidInput("call act first: there is no action this could be the result of")
        result = [self.terms.unit_reward(reward), self.terms.state(next_state)]
        steps = [*self._kept[:-1], self._kept[-1] + result]
        if len(steps) == self.terms.task.horizon or self._ends(steps[-1][3]):
            self._close(steps)
        else:
            self._save(steps)
            self._kept = steps

    def leave(self) -> None:
        """The user stops here: the rest counts as spent in the absorbing state, without reward."""
        self._not_done()
        self._close(self._kept)

    def __repr__(self) -> str:
        return f"Episode(version={self.publication.version}, steps={self.step}, content hidden)"

    def _open(self) -> bool:
        """Whether the last step still waits for its result."""
        return bool(self._kept) and len(self._kept[-1]) == 2

    def _ends(self, s: int) -> bool:
        """Whether a state ends the episode."""
        first = self.terms.task.pairs.first
        return bool(first[s] == first[s + 1])

    def _choose(self, h: int, s: int) -> int:
        policy = self.publication.policy
        if isinstance(policy, TabularPolicy):
            return int(policy.actions[h, s])
        assert isinstance(policy, StochasticPolicy)
        sums = np.cumsum(policy.probabilities[h, s])
        u = math.ldexp(secrets.randbits(53), -53) * sums[-1]
        return int(np.searchsorted(sums, u, side="right"))

    def _close(self, steps: list[Any]) -> None:
        self._finish(self._trajectory(steps if self.silent is None else []))
        steps.clear()
        self._kept.clear()
        self.done = True

    def _trajectory(self, steps: list[Any]) -> Trajectory:
        """All H steps: those lived through, then how an episode goes on that has ended.

        In the terminal state with the public reward that follows it; for who left before an end, in
        the absorbing state at the low end of rewards.
        """
        H, gone = self.terms.task.horizon, self.terms.absorbing_state
        states = np.full(H + 1, gone, dtype=np.int64)
        actions = np.zeros(H, dtype=np.int64)
        rewards = np.zeros(H)
        for h, step in enumerate(steps):
            states[h], actions[h] = step[:2]
            if len(step) == 4:
                rewards[h], states[h + 1] = step[2:]
        if steps and len(steps[-1]) == 4 and self._ends(steps[-1][3]):
            states[len(steps) :] = steps[-1][3]
            rewards[len(steps) :] = self.terms.task.end_reward
        for h in range(len(steps), H):
            actions[h] = self._choose(h, int(states[h]))
        return Trajectory(states, actions, rewards)
