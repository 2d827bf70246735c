"""Problems of which a learner is told sizes, horizon, a range of returns and features: no model.

The family "episodic". Classic control and linear systems are compiled; any environment can be
played as it is (:class:`PlayedEpisodes`).
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import validate
from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels.public import scores
from tacit.kernels.raw import classic_control
from tacit.kernels.raw.classic_control import World
from tacit.policies.base import Policy
from tacit.policies.parametric import ParametricPolicy, parameters, scoring, scoring_of
from tacit.problems.played import Playable, playing
from tacit.task.task import Task
from tacit.trajectory import VectorTrajectory

VALUED = 64
"""People whose mean return stands for the value of a policy."""

TRIED = 20
"""Most episodes of uniform actions that are played before the first user.

A single one may well lie outside a range that was chosen to cut rare returns: of pendulum one in
seven does.
"""

Episode = Callable[[Policy, np.random.Generator], float]
"""Plays one episode with ``policy.act(observation, step, rng)`` and says what it returned."""


class Episodes(Playable):
    """What both kinds share: a declared form, a range of returns, and nothing else that is known.

    Args:
        sizes: "states", the numbers of an observation, and "actions" or "inputs" (of a box).
        horizon: number of steps after which an episode is cut.
        returns: least and largest return of an episode, public; what lies outside is clipped.
        form: how observations are scored (``tacit.policies.parametric.scoring_of``), public.
        name: shown in results.
        parameters: what made it, shown in results.
    """

    family = "episodic"
    homogeneous = False

    def __init__(
        self,
        sizes: Mapping[str, int],
        *,
        horizon: int,
        returns: tuple[float, float],
        form: Mapping[str, npt.NDArray[Any]],
        name: str,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.sizes = dict(sizes)
        self._called(name, parameters, horizon)
        self.returns = validate.bounds(returns, "returns", "return of an episode", "(0, 500)")
        self.arrays = dict(form)
        self.form = scoring(self.sizes, self.arrays)

    def task(self, users: int, reveal: Iterable[str] = ()) -> Task:
        """The public description; there is no fact that could be revealed."""
        asked = sorted(reveal)
        if asked:
            raise InvalidInput(
                f"{self.name} is episodic: it has no fact {asked[0]!r} to reveal; choose an agent "
                "that needs nothing revealed (tacit list agents)"
            )
        return self._task(users, {**self.arrays, "returns": np.array(self.returns)})

    def uniform(self) -> ParametricPolicy:
        """Every action equally likely, everywhere."""
        form = self.form._replace(head=scores.UNIFORM)
        return ParametricPolicy(form, np.zeros(parameters(form)), self.horizon)

    def constants(self) -> dict[str, Policy]:
        """Policies that always do the same, by what they do; in a box only its middle."""
        form = self.form
        if form.box.size:
            return {"the middle of the box": self._fixed(np.zeros(form.outputs))}
        return {f"action {a}": self._fixed(corner) for a, corner in enumerate(form.corners)}

    def _fixed(self, v: Array) -> ParametricPolicy:
        """The policy whose scores are the same whatever is seen."""
        numbered, box = self.form.kind == scores.ONE_HOT, self.form.box
        n = self.sizes["states"]
        features = "one-hot" if numbered else "affine"
        head: dict[str, Any] = {"head": "clipped", "box": box} if box.size else {"head": "argmax"}
        form = scoring(self.sizes, scoring_of(np.ones(n), features=features, **head))
        constant = np.ones(n) if numbered else np.eye(n + 1)[n]
        return ParametricPolicy(form, np.outer(v, constant).ravel(), self.horizon)

    def prepare(self, rng: np.random.Generator) -> None:
        """An episode before the first user, to see that all fits; here nobody is one yet.

        A range that nothing of what is tried lies in cannot be meant. Single returns outside are
        cut, and counted where policies are tested (:meth:`outside`).
        """
        if not self.played:
            return
        low, high = self.returns
        for _ in range(TRIED):
            earned = self.rollout(self.uniform(), rng).rewards
            if not self.outside(earned):
                return
        raise InvalidInput(
            f"{self.name} returned {earned[0]:g} in an episode before the first user, and in "
            f"{TRIED} of them nothing in the range, but returns are declared to lie between "
            f"{low:g} and {high:g}; declare the least and the largest return of an episode"
        )

    def outside(self, returns: Array) -> int:
        """How many of them lie outside the declared range, where people's are cut."""
        low, high = self.returns
        room = 1e-9 * (high - low)
        return int(((returns < low - room) | (returns > high + room)).sum())

    def rollout(self, policy: Policy, rng: np.random.Generator) -> VectorTrajectory:
        """One user's episode, of which the return alone is kept; takes one draw."""
        assert isinstance(policy, ParametricPolicy)
        earned = self._play(policy, int(rng.integers(2**62)))
        nothing = np.zeros((0, 1))
        return VectorTrajectory(nothing, nothing, np.array([earned]))

    def _play(self, policy: ParametricPolicy, key: int) -> float:
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Name, parameters, sizes and what was declared."""
        returns = {"returns": list(self.returns), "policy parameters": parameters(self.form)}
        return super().describe() | returns


class CompiledEpisodes(Episodes):
    """Episodes in a compiled world; all arguments but ``world`` as above."""

    def __init__(self, world: World, **declared: Any) -> None:
        sizes = {
            "states": world.observations,
            "actions" if world.discrete else "inputs": world.actions,
        }
        super().__init__(sizes, horizon=world.horizon, **declared)
        self.world = world

    def narrowed(
        self, returns: tuple[float, float], horizon: int | None = None
    ) -> CompiledEpisodes:
        """The same with another range of returns, or fewer steps: how it is scored stays."""
        steps = self.horizon if horizon is None else horizon
        steps = validate.integer(steps, "horizon", low=1, high=self.horizon)
        world = self.world._replace(horizon=steps)
        return CompiledEpisodes(world, returns=returns, form=self.arrays, name=self.name)

    def _play(self, policy: ParametricPolicy, key: int) -> float:
        return classic_control.play(self.world, policy.form, policy.theta, key)

    def optimal_value(self) -> float:
        """The largest declared return: nobody knows the best policy, but none is better."""
        return self.returns[1]

    def value(self, policy: Policy) -> float:
        """Mean return of the same few people for every policy, what they try out included."""
        assert isinstance(policy, ParametricPolicy)
        return self._mean(policy, VALUED)

    @cached_property
    def _uniform_value(self) -> float:
        return self._mean(self.uniform(), 16 * VALUED)

    def baseline(self) -> tuple[str, float]:
        """Uniform actions, by playing."""
        return "uniform actions", self._uniform_value

    def _mean(self, policy: ParametricPolicy, people: int) -> float:
        returns = np.empty(people)
        self.live(policy, 0, np.arange(people), returns)
        return float(returns.mean())

    def describe(self) -> dict[str, Any]:
        """With what regret is measured from, and the baseline's value."""
        return super().describe() | self._values()

    def live(self, policy: ParametricPolicy, first: int, keys: IntArray, returns: Array) -> None:
        """The episodes of users first, first + 1, ..., each along its own direction."""
        z = np.zeros((len(keys), len(policy.theta)), dtype=np.int64)
        if policy.sigma > 0.0:
            z = policy.directions(np.arange(first, first + len(keys)))
        classic_control.play_batch(
            self.world, policy.form, policy.theta, policy.sigma, z, keys, returns
        )

    def through(self, key: int, act: Callable[[Any], Any], observe: Callable[..., None]) -> None:
        """One episode, step by step, for somebody who acts: ``observe(reward, ended=...)``."""
        world, form = self.world, self.form
        s, o = np.empty(world.states), np.empty(world.observations)
        spare = np.empty(5 * world.states)
        classic_control.start(world, key, s)
        for h in range(world.horizon):
            classic_control.observe(world, s, o)
            seen = int(o[0]) if form.kind == scores.ONE_HOT else o
            a = np.atleast_1d(np.asarray(act(seen), dtype=np.float64))
            if not world.discrete:  # from the box to [-1, 1]
                low, high = form.box
                a = 2.0 * (a - low) / (high - low) - 1.0
            reward, ended = classic_control.step(world, key, h, s, a, spare)
            observe(reward, ended=bool(ended))
            if ended:
                break


class PlayedEpisodes(Episodes):
    """Episodes of a function ``play(policy, rng)`` that plays one and says its return."""

    played = True

    def __init__(self, play: Episode, sizes: Mapping[str, int], **declared: Any) -> None:
        super().__init__(sizes, **declared)
        self._episode = play

    def _play(self, policy: ParametricPolicy, key: int) -> float:
        with playing(self.name):
            earned = self._episode(policy, np.random.default_rng(key))
        if not isinstance(earned, int | float | np.integer | np.floating) or not math.isfinite(
            earned
        ):
            raise InvalidInput(
                f"{self.name} returned {reprlib.repr(earned)}, but the return of an episode is a "
                "finite number, the sum of its rewards"
            )
        return float(earned)
