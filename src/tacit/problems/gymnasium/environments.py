"""Gymnasium environments that can only be played, as problems: no transition table is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space, Tuple

from tacit.arrays import Arrays
from tacit.errors import InvalidInput
from tacit.policies.parametric import scoring_of
from tacit.problems.discretized import Discretized
from tacit.problems.episodic import PlayedEpisodes
from tacit.problems.played import Played, Step
from tacit.validate import integer


def _steps(
    environment: gymnasium.Env[Any, Any], name: str | None, horizon: int | None
) -> tuple[str, int]:
    """What an environment is called, and after how many steps an episode in it is cut."""
    spec = environment.spec
    shown = name or (type(environment.unwrapped).__name__ if spec is None else f"gym:{spec.id}")
    limit = None if spec is None else spec.max_episode_steps
    wanted = limit if horizon is None else horizon
    if wanted is None:
        raise InvalidInput(
            f"{shown} has no time limit: say after how many steps a user's episode is cut, "
            "horizon=..., or -E horizon=..."
        )
    steps = integer(wanted, "horizon", low=1)
    if limit is not None and steps > limit:
        raise InvalidInput(
            f"horizon = {steps}, but {shown} stops after {limit} steps by itself; choose at most "
            f"that, or make it with max_episode_steps={steps}"
        )
    return shown, steps


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
    shown, steps = _steps(environment, name, horizon)
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


def searched_environment(
    environment: gymnasium.Env[Any, Any],
    *,
    returns: tuple[float, float],
    form: Mapping[str, npt.NDArray[Any]] | None = None,
    horizon: int | None = None,
) -> PlayedEpisodes:
    """An environment of which the return alone is read; any box or finite spaces.

    Args:
        environment: what is played, each episode from ``reset(seed=...)`` on.
        returns: least and largest return of an episode.
        form: how observations are scored; by default the numbers of an observation and 1, scaled
            by the bounds of their space (by 1 where there are none).
        horizon: steps after which an episode is cut; the environment's own time limit if left out.
    """
    shown, steps = _steps(environment, None, horizon)
    seen, done = environment.observation_space, environment.action_space
    sizes, declared_form = _declared(shown, seen, done)
    (number, _), (_, item) = _as_numbers(seen), _as_numbers(done)

    def play(policy: Any, rng: np.random.Generator) -> float:
        observation, _ = environment.reset(seed=int(rng.integers(2**31)))
        total = 0.0
        for h in range(steps):
            action = item(policy.act(number(observation), h, rng))
            observation, reward, terminated, truncated, _ = environment.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return total

    return PlayedEpisodes(
        play,
        sizes,
        horizon=steps,
        returns=returns,
        form=declared_form if form is None else form,
        name=shown,
        parameters=_parameters(environment),
    )


def _declared(name: str, seen: Space[Any], done: Space[Any]) -> tuple[dict[str, int], Arrays]:
    """Sizes of the two spaces, and a form that fits them."""
    head: dict[str, Any] = {"head": "argmax"}
    if isinstance(done, Discrete):
        sizes = {"actions": int(done.n)}
    elif isinstance(done, Box) and np.isfinite([done.low, done.high]).all():
        box = np.array([done.low.ravel(), done.high.ravel()], dtype=np.float64)
        sizes, head = {"inputs": box.shape[1]}, {"head": "tanh", "box": box}
    else:
        raise InvalidInput(
            f"{name} has actions {done}, but a search needs Discrete or a finite box"
        )
    if isinstance(seen, Discrete):
        return {"states": int(seen.n), **sizes}, scoring_of(0.0, features="one-hot", **head)
    if not isinstance(seen, Box):
        raise InvalidInput(f"{name} has observations {seen}, but a search needs a Box or Discrete")
    low, high = seen.low.ravel().astype(np.float64), seen.high.ravel().astype(np.float64)
    bounded = (np.abs(low) < 1e6) & (np.abs(high) < 1e6)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    shift, scale = (low + high) / 2, np.where(high > low, (high - low) / 2, 1.0)
    return {"states": len(low), **sizes}, scoring_of(scale, shift=shift, features="affine", **head)


def _as_numbers(space: Space[Any]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """To the number of an item of a finite space or the vector of one of a box, and back."""
    if isinstance(space, Discrete):
        return _numbered(space, "", "")[1:]
    shape, kind = space.shape, space.dtype
    return (
        lambda x: np.ravel(np.asarray(x, dtype=np.float64)),
        lambda a: np.asarray(a, dtype=kind).reshape(shape),
    )


def _parameters(environment: gymnasium.Env[Any, Any]) -> dict[str, Any]:
    """What it was made with, and the bins of its observations: both are public."""
    options = {} if environment.spec is None else dict(environment.spec.kwargs)
    layer: Any = environment
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, Discretized):
            options["bins"] = [edges.tolist() for edges in layer.edges]
        layer = layer.env
    return {key: value for key, value in options.items() if key != "render_mode"}


def _numbered(space: Space[Any], name: str, what: str) -> Numbered:
    """The items of a space of observations or actions, or why they cannot be numbered."""
    if isinstance(space, Discrete):
        start = int(space.start)
        return Numbered(int(space.n), lambda x: int(x) - start, lambda k: k + start)
    if isinstance(space, MultiBinary):
        space = MultiDiscrete(np.full(space.shape, 2))
    if isinstance(space, MultiDiscrete):
        sizes, first = space.nvec, space.start
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
        "tacit.environment(..., bins=...) cuts them into cells (-E bins=...)"
        if continuous and what == "observations"
        else "an environment for tables has Discrete or MultiDiscrete ones, or tuples of them"
    )
    raise InvalidInput(
        f"{name} has {'continuous ' if continuous else ''}{what}, {space}, but agents for tables "
        f"need finitely many; {remedy}"
    )
