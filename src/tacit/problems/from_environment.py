"""Gymnasium environments that can only be played, as problems: no transition table is needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space, Tuple

from tacit.errors import InvalidInput
from tacit.problems.discretized import Discretized
from tacit.problems.played import Played, Step
from tacit.validate import integer


class Numbered(NamedTuple):
    """The items of a finite space, numbered from 0."""

    size: int
    number: Callable[[Any], int]
    item: Callable[[int], Any]


def played_environment(
    environment: gymnasium.Env[Any, Any],
    *,
    rewards: tuple[float, float],
    horizon: int | None = None,
    homogeneous: bool = True,
    name: str | None = None,
) -> Played:
    """An environment with finitely many observations and actions.

    Every episode begins with ``reset(seed=...)``, so it depends on its own random number and on the
    policy, and on nothing before. A truncated episode has ended like a terminated one: nothing
    after it counts.

    Args:
        environment: what is played.
        rewards: least and largest reward of one step.
        horizon: steps after which an episode is cut; the environment's own time limit if left out.
        homogeneous: whether a step's law is declared not to depend on its number.
        name: shown in results; the environment's id if left out.
    """
    spec = environment.spec
    shown = name or (type(environment.unwrapped).__name__ if spec is None else f"gym:{spec.id}")
    limit = None if spec is None else spec.max_episode_steps
    wanted = limit if horizon is None else horizon
    if wanted is None:
        raise InvalidInput(
            f"{shown} has no time limit: say after how many steps a user's episode is cut, "
            "horizon=... or --horizon"
        )
    steps = integer(wanted, "horizon", low=1)
    if limit is not None and steps > limit:
        raise InvalidInput(
            f"horizon = {steps}, but {shown} stops after {limit} steps by itself; choose at most "
            f"that, or make it with max_episode_steps={steps}"
        )
    observations = _numbered(environment.observation_space, shown, "observations")
    actions = _numbered(environment.action_space, shown, "actions")

    def play(policy: Any, rng: np.random.Generator) -> list[Step]:
        seen, _ = environment.reset(seed=int(rng.integers(2**31)))
        state, played = observations.number(seen), []
        for h in range(steps):
            action = policy.act(state, h, rng)
            seen, reward, terminated, truncated, _ = environment.step(actions.item(action))
            following = None if terminated else observations.number(seen)
            played.append((state, action, float(reward), following))
            if following is None or truncated:
                break
            state = following
        return played

    return Played(
        play,
        states=observations.size,
        actions=actions.size,
        horizon=steps,
        rewards=rewards,
        homogeneous=homogeneous,
        name=shown,
        parameters=_parameters(environment),
    )


def _parameters(environment: gymnasium.Env[Any, Any]) -> dict[str, Any]:
    """What it was made with, and the bins of its observations: both are public."""
    found = {} if environment.spec is None else dict(environment.spec.kwargs)
    layer: Any = environment
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, Discretized):
            found["bins"] = [edges.tolist() for edges in layer.edges]
        layer = layer.env
    return {key: value for key, value in found.items() if key != "render_mode"}


def _numbered(space: Space[Any], name: str, what: str) -> Numbered:
    """The items of a space of observations or actions, or why they cannot be numbered."""
    if isinstance(space, Discrete):
        start = int(space.start)
        return Numbered(int(space.n), lambda x: int(x) - start, lambda k: k + start)
    if isinstance(space, MultiDiscrete | MultiBinary):
        if isinstance(space, MultiDiscrete):
            sizes, first = space.nvec, space.start
        else:
            sizes, first = np.full(space.shape, 2), np.zeros(space.shape, dtype=np.int64)
        shape = tuple(int(n) for n in sizes.ravel())
        return Numbered(
            math.prod(shape),
            lambda x: int(np.ravel_multi_index(tuple(np.ravel(np.asarray(x) - first)), shape)),
            lambda k: np.reshape(np.unravel_index(k, shape), sizes.shape) + first,
        )
    if isinstance(space, Tuple):
        parts = [_numbered(part, name, what) for part in space.spaces]
        shape = tuple(part.size for part in parts)
        return Numbered(
            math.prod(shape),
            lambda xs: int(
                np.ravel_multi_index(
                    tuple(part.number(x) for part, x in zip(parts, xs, strict=True)), shape
                )
            ),
            lambda k: tuple(
                part.item(int(i)) for part, i in zip(parts, np.unravel_index(k, shape), strict=True)
            ),
        )
    continuous = isinstance(space, Box)
    remedy = (
        "wrap it: tacit.Discretized(environment, bins) cuts them into cells (--bins)"
        if continuous and what == "observations"
        else "an environment for tables has Discrete or MultiDiscrete ones, or tuples of them"
    )
    raise InvalidInput(
        f"{name} has {'continuous ' if continuous else ''}{what}, {space}, but agents for tables "
        f"need finitely many; {remedy}"
    )
