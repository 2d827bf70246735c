"""Problems that can be played and not read: nobody knows their transitions, rewards or optimum.

A user's episode comes from a function that plays one. It may end early: the rest of the horizon is
then spent in one more state, ``ended``, which is public, is never left and pays nothing. So every
agent for tables learns such a problem as it learns any other.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from tacit import validate
from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput, TacitError
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy, uniform_policy
from tacit.problems.base import Problem
from tacit.streams import stream
from tacit.task.task import Task
from tacit.trajectory import Trajectory
from tacit.util.intervals import mean_interval

Step = tuple[int, int, float, int | None]
"""State, action, reward, and the state that followed, which is None where the episode ended."""

Play = Callable[[Any, np.random.Generator], Sequence[Step]]
"""Plays one episode with ``policy.act(state, step, rng)``; all its chance comes from ``rng``."""

SHAPE = "(state, action, reward, next state), with None as the next state where it ended"


TESTS = 200
"""Episodes that each learned policy is tried on afterwards, and what does not learn beside it.

As many again, shared by all actions, choose the best constant one.
"""


class Playable(Problem):
    """A problem whose policies are tried on fresh episodes, where nobody knows what they are worth.

    They are compared there with what does not learn: uniform actions, and the best of the policies
    that always do the same.
    """

    @abstractmethod
    def uniform(self) -> Policy:
        """Every action equally likely, everywhere."""

    @abstractmethod
    def constants(self) -> dict[str, Policy]:
        """Policies that always do the same, by what they do."""

    def outside(self, returns: Array) -> int | None:
        """How many returns the declared range cuts; None where no range of returns is declared."""
        return None

    def optimal_value(self) -> float:
        """NaN: nobody knows it."""
        return math.nan

    def value(self, policy: Policy) -> float:
        """NaN: it can be estimated, by playing."""
        return math.nan

    def baseline(self) -> tuple[str, float]:
        """What does not learn, of unknown value."""
        return "uniform actions", math.nan

    def environment(self) -> NoReturn:
        """There is none to hand out."""
        raise InvalidInput(f"{self.name} can be played by its agent only")

    def tests(self, policies: Sequence[Policy], seed: int) -> dict[str, Any] | None:
        """How the learned policies do on fresh episodes, and what does not learn on the same."""
        if not self.played:
            return None

        def returns(
            policy: Policy, run: int, purpose: str = "test", episodes: int = TESTS
        ) -> Array:
            rng = stream(seed, run, purpose)
            totals = [self.rollout(policy, rng).rewards.sum() for _ in range(episodes)]
            return self.total(np.array(totals), 1)

        def fixed(policy: Policy) -> Array:
            return np.array([returns(policy, run) for run in range(max(1, len(policies)))])

        tried, best = {"uniform": fixed(self.uniform())}, ""
        if policies:
            constants = self.constants()
            each = max(1, TESTS // len(constants))
            means = {a: returns(one, 0, "constant", each).mean() for a, one in constants.items()}
            best = max(means, key=lambda a: float(means[a]))
            tried["constant"] = fixed(constants[best])
            tried["policy"] = np.array([returns(one, run) for run, one in enumerate(policies)])
        comparison = compared(tried, best)
        cut = {who: self.outside(totals) for who, totals in tried.items()}
        return comparison if None in cut.values() else {**comparison, "outside": cut}


def compared(tried: Mapping[str, Array], constant: str) -> dict[str, Any]:
    """Returns on test episodes [runs, episodes] of learned policies and of what does not learn.

    All on the same episodes, so that differences are independent samples. Intervals here are over
    test episodes: they say how good *these* policies are, not how good the next run's will be.

    Args:
        tried: by "uniform" and, where there are policies, "constant" and "policy".
        constant: what the constant policy does.
    """
    comparison: dict[str, Any] = {"episodes": tried["uniform"].shape[1]}
    for who, returns in tried.items():
        comparison[who] = {"mean": float(returns.mean()), "per_seed": returns.mean(axis=1).tolist()}
    if "policy" in tried:
        learned, comparison["constant"]["name"] = tried["policy"], constant
        over = {who: learned - tried[who] for who in ("uniform", "constant")}
        comparison["difference"] = _interval(over["uniform"].ravel())
        comparison["constant"]["gain"] = _interval(over["constant"].ravel())
        comparison["runs"] = [
            {
                "return": _interval(own),
                "over_uniform": _interval(uniform),
                "over_constant": _interval(fixed),
            }
            for own, uniform, fixed in zip(learned, *over.values(), strict=True)
        ]
    return comparison


def _interval(samples: Array) -> dict[str, Any]:
    """Their mean and its 95% interval, as plain values."""
    mean = mean_interval(samples)
    return {"mean": mean.value, "ci95": [mean.low, mean.high]}


class Played(Playable):
    """A table of states and actions behind a function that plays one episode.

    Args:
        play: ``play(policy, rng)`` plays one user's episode and returns its steps, each as (state,
            action, reward, next state); the last next state is None if the episode ended there. An
            episode shorter than the horizon has ended, whatever stands there.
        states: number of states S, numbered from 0; ``ended`` is one more.
        actions: number of actions A, numbered from 0.
        horizon: number of steps H after which an episode is cut.
        rewards: least and largest reward of one step, public. What the learner is told is rescaled
            from this range, widened to hold the 0 that an ended episode pays, to [0, 1]; statistics
            clip it there.
        homogeneous: whether a step's law is declared not to depend on its number.
        name: shown in results.
        parameters: what made it, shown in results.
    """

    family = "tabular"
    played = True

    def __init__(
        self,
        play: Play,
        *,
        states: int,
        actions: int,
        horizon: int,
        rewards: tuple[float, float],
        homogeneous: bool = True,
        name: str = "episodes",
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self._play = play
        self._called(name, parameters, horizon)
        self.ended = validate.integer(states, "states", low=1)
        self.states = self.ended + 1
        self.actions = validate.integer(actions, "actions", low=1)
        self.sizes = {"states": self.states, "actions": self.actions}
        self.homogeneous = validate.flag(homogeneous, "homogeneous") or self.horizon == 1
        self.rewards = reward_range(rewards)
        self.offset = min(0.0, self.rewards[0])
        self.scale = max(0.0, self.rewards[1]) - self.offset
        validate.table_fits(f"a model of {name}", self.states, self.actions, self.states)
        validate.table_fits(f"a policy of {name}", self.horizon, self.states, self.actions)

    def task(self, users: int, reveal: Iterable[str] = ()) -> Task:
        """The public description; there is no fact that could be revealed."""
        asked = sorted(reveal)
        if asked:
            raise InvalidInput(
                f"nobody knows the {' and '.join(asked)} of {self.name}, which is only played; "
                "choose an agent that needs nothing revealed (tacit list agents)"
            )
        end = np.asarray(-self.offset / self.scale)
        known = {"terminal": np.arange(self.states) == self.ended, "end_reward": end}
        return self._task(users, known)

    def baseline(self) -> tuple[str, float]:
        """The uniform policy, of unknown value."""
        return "uniform policy", math.nan

    def uniform(self) -> StochasticPolicy:
        """Every action equally likely, everywhere."""
        return uniform_policy(self.horizon, self.states, self.actions)

    def constants(self) -> dict[str, Policy]:
        """Policies that always do the same, by what they do."""
        everywhere = (self.horizon, self.states)
        return {f"action {a}": TabularPolicy(np.full(everywhere, a)) for a in range(self.actions)}

    def rollout(self, policy: Policy, rng: np.random.Generator) -> Trajectory:
        """One user's episode with rescaled rewards; takes one draw, whatever happens in it."""
        assert isinstance(policy, TabularPolicy | StochasticPolicy)
        own = np.random.default_rng(int(rng.integers(2**63)))
        visited, chosen, paid, last = self._episode(policy, own)
        H, T = self.horizon, len(chosen)
        states, actions = np.full(H + 1, self.ended), np.empty(H, dtype=np.int64)
        rewards = np.zeros(H)
        states[:T], actions[:T], rewards[:T] = visited, chosen, paid
        if T == H and last is not None:
            states[H] = last
        for h in range(T, H):
            actions[h] = policy.act(self.ended, h, own)
        return Trajectory(states, actions, (rewards - self.offset) / self.scale)

    def total(self, rescaled: Array, episodes: int | IntArray) -> Array:
        """Rewards added up over that many episodes, back in the units of what was played."""
        back: Array = self.scale * rescaled + self.offset * self.horizon * np.asarray(episodes)
        return back

    def prepare(self, rng: np.random.Generator) -> None:
        """One episode of uniform actions before the first user, to see that all fits.

        Later a reward outside its range is clipped without a word: how often that happens is a fact
        about users. Here nobody is one yet.
        """
        low, high = self.rewards
        paid = self._episode(self.uniform(), rng)[2]
        outside = paid[(paid < low) | (paid > high)]
        if outside.size:
            raise InvalidInput(
                f"{self.name} paid {outside[0]:g} in an episode before the first user, but its "
                f"rewards are declared to lie between {low:g} and {high:g}; declare the least and "
                "the largest reward of one step"
            )

    def describe(self) -> dict[str, Any]:
        """Name, parameters, sizes and how rewards were rescaled."""
        return super().describe() | {
            "homogeneous": self.homogeneous,
            "rewards": list(self.rewards),
            "rescaling": {"offset": self.offset, "scale": self.scale},
            "ended": self.ended,
        }

    def _episode(
        self, policy: Policy, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray, Array, int | None]:
        """States, actions, rewards and the last next state; what does not fit is refused."""
        with playing(self.name):
            played = list(self._play(policy, rng))
        if not 1 <= len(played) <= self.horizon:
            self._wrong(f"{len(played)} steps", f"an episode has 1 to {self.horizon}")
        for h, step in enumerate(played):
            if not isinstance(step, Sequence) or len(step) != 4:
                self._wrong(f"{step!r} as step {h}", f"a step is {SHAPE}")
        states, actions, rewards, following = zip(*played, strict=True)
        for h, (after, state) in enumerate(zip(following, states[1:], strict=False)):
            if after is None or after != state:
                self._wrong(
                    f"next state {after!r} in step {h} and state {state!r} in step {h + 1}",
                    "they must be the same, and only the last next state may be None",
                )
        if following[-1] is not None:
            self._numbers(following[-1:], "next state", self.ended)
        for reward in rewards:
            if not isinstance(reward, int | float | np.number) or not math.isfinite(reward):
                self._wrong(f"reward {reward!r}", "a reward is a finite number")
        return (
            self._numbers(states, "state", self.ended),
            self._numbers(actions, "action", self.actions),
            np.array(rewards, dtype=np.float64),
            following[-1],
        )

    def _numbers(self, values: Sequence[Any], what: str, size: int) -> IntArray:
        for value in values:
            if not isinstance(value, int | np.integer) or not 0 <= value < size:
                self._wrong(f"{what} {value!r}", f"{what}s are whole numbers from 0 to {size - 1}")
        return np.array(values, dtype=np.int64)

    def _wrong(self, got: str, expected: str) -> NoReturn:
        raise InvalidInput(f"{self.name} played {got}, but {expected}")


@contextmanager
def playing(name: str) -> Iterator[None]:
    """Whatever a person's own code raises is one sentence."""
    try:
        yield
    except TacitError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"{name} failed while an episode was played: {type(error).__name__}: {error}"
        ) from error


def reward_range(rewards: object) -> tuple[float, float]:
    """Least and largest reward of a step, as a person declared them."""
    return validate.bounds(rewards, "rewards", "reward of one step", "(0, 1)")
