"""Gymnasium environments that tell their tables, as exact tabular problems."""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit import validate
from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput, need
from tacit.problems.tabular import Rewards, TabularMDP
from tacit.task.pairs import Flags

PACKAGES = {"Sepsis": ("icu_sepsis", "sepsis")}
"""Namespaces of ids whose package registers them only when it is imported, and its extra."""

DYNAMICS = {"tx_mat", "r_mat", "d_0", "admissible_actions"}
"""What ICU-Sepsis tells of itself."""


class Outcomes(NamedTuple):
    """All outcomes of positive probability, start law and masks, as an environment tells them."""

    s: IntArray
    a: IntArray
    next: IntArray
    probability: Array
    reward: Array
    done: Flags  # whether the outcome ends the episode
    start: Array
    allowed: Flags  # [S, A]


def gymnasium_problem(
    id: str,
    /,
    horizon: int,
    rewards: Rewards = "deterministic",
    masks: bool = True,
    start_known: bool = False,
    returns: Sequence[float] | None = None,
    **options: Any,
) -> TabularMDP:
    """The environment ``id`` as a TabularMDP, if it tells its transition table.

    It does so as ``P``, like the toy-text environments, or as ``dynamics``, like ICU-Sepsis. Where
    it ends (``terminated``) is declared as terminal states, which pay nothing more. Rewards are
    rescaled to [0, 1] by one affine map for all steps, so the order of policies is unchanged; the
    map is reported as ``rescaling``: original = offset + scale * rescaled. A reward that depends on
    the next state enters as its mean given (s, a): values and regret are unchanged.

    Args:
        id: Gymnasium id, for example "FrozenLake-v1".
        horizon: number of steps of an episode.
        rewards: "deterministic" pays the (rescaled) mean, "bernoulli" 0 or 1 with that mean.
        masks: declare which actions are allowed, where the environment tells it
            (``info["action_mask"]``, admissible actions).
        start_known: declare the start law.
        returns: declare the least and the largest return of an episode, in the environment's units.
        options: passed to ``gymnasium.make``, for example ``map_name="8x8"``.
    """
    horizon = validate.integer(horizon, "horizon", low=1)
    outcomes = _read_environment(id, options)
    S, A = outcomes.allowed.shape
    after, terminal = _ends(outcomes)
    size = len(terminal)
    paid = outcomes.reward
    low, high = min(0.0, paid.min()), max(0.0, paid.max())  # a finished episode pays 0 for ever
    if low == 0.0 and high <= 1.0:
        high = 1.0
    scale = float(high - low)
    means = np.zeros((size, A))
    np.add.at(means, (outcomes.s, outcomes.a), outcomes.probability * paid)
    allowed = np.ones((size, A), dtype=bool)
    if validate.flag(masks, "masks"):
        allowed[:S] = outcomes.allowed
    return TabularMDP(
        np.column_stack([outcomes.s, outcomes.a, after, outcomes.probability]),
        np.clip((means - low) / scale, 0.0, 1.0),
        horizon,
        np.concatenate([outcomes.start, np.zeros(size - S)]),
        rewards=rewards,
        terminal=terminal,
        allowed=allowed,
        end_reward=-low / scale,
        returns=None if returns is None else _rescaled(returns, horizon * low, scale),
        start_known=start_known,
        name=f"gym:{id}",
        parameters={
            "horizon": horizon,
            "rewards": rewards,
            **({} if masks else {"masks": False}),
            **({"start_known": True} if start_known else {}),
            **({} if returns is None else {"returns": list(returns)}),
            **options,
        },
        facts={
            "rescaling": {"offset": float(low), "scale": scale},
            "terminal_states": int(terminal.sum()),
        },
    )


def _rescaled(returns: Sequence[float], least: float, scale: float) -> tuple[float, float]:
    """The range of returns of an episode in rescaled rewards, cut at what they can add up to."""
    low, high = (validate.number(end, "returns") for end in returns)
    return max(0.0, (low - least) / scale), (high - least) / scale


def make_environment(id: str, options: dict[str, Any]) -> Any:
    """The Gymnasium environment of that id, without the checks that Gymnasium adds to each step."""
    import gymnasium
    from gymnasium.error import Error

    package, extra = PACKAGES.get(id.partition("/")[0], (None, ""))
    if package is not None:
        need(f"gym:{id}", extra)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")  # Gymnasium repeats its errors as warnings
            if package is not None:
                importlib.import_module(package)
            return gymnasium.make(id, **{"disable_env_checker": True, **options})
    except KeyError as error:
        raise InvalidInput(f"Gymnasium could not make {id!r}: it does not know {error}") from None
    except (Error, ImportError, TypeError, ValueError) as error:
        raise InvalidInput(f"Gymnasium could not make {id!r}: {error}") from None


def has_table(id: str) -> bool:
    """Whether the environment of that id tells its transition table."""
    with contextlib.closing(make_environment(id, {})) as made:
        inner = made.unwrapped
        return isinstance(getattr(inner, "P", None), dict) or _tells_dynamics(inner)


def _tells_dynamics(inner: Any) -> bool:
    dynamics = getattr(inner, "dynamics", None)
    return isinstance(dynamics, Mapping) and DYNAMICS <= set(dynamics)


def _read_environment(id: str, options: dict[str, Any]) -> Outcomes:
    with contextlib.closing(make_environment(id, options)) as environment:
        inner = environment.unwrapped
        table = getattr(inner, "P", None)
        if isinstance(table, dict):
            return _from_table(inner, table)
        if _tells_dynamics(inner):
            return _from_dynamics(inner.dynamics)
    raise InvalidInput(
        f"gym:{id} does not expose its transition table `P`; only toy-text environments such as "
        "FrozenLake-v1, CliffWalking-v1 and Taxi-v4 do, and Sepsis/ICU-Sepsis-v2 its `dynamics`; "
        "play:ID plays any"
    )


def _from_table(inner: Any, table: Mapping[int, Any]) -> Outcomes:
    """What toy-text environments tell: P[s][a] = [(probability, next state, reward, done), ...]."""
    rows = np.array(
        [
            (s, a, target, probability, reward, done)
            for s, by_action in table.items()
            for a, outcomes in by_action.items()
            for probability, target, reward, done in outcomes
            if probability > 0
        ],
        dtype=np.float64,
    )
    S, A = len(table), len(table[0])
    start = getattr(inner, "initial_state_distrib", None)
    law = np.eye(S)[0] if start is None else validate.finite_array(start, "start law")
    allowed = np.ones((S, A), dtype=bool)
    if callable(getattr(inner, "action_mask", None)):
        allowed = np.array([inner.action_mask(s) for s in range(S)], dtype=bool)
    s, a, target = rows[:, :3].astype(np.int64).T
    done = rows[:, 5] > 0
    return Outcomes(s, a, target, rows[:, 3], rows[:, 4], done, law / law.sum(), allowed)


def _from_dynamics(dynamics: Mapping[str, Any]) -> Outcomes:
    """What ICU-Sepsis tells; an episode is over where nothing more can be earned."""
    P, R = np.asarray(dynamics["tx_mat"]), np.asarray(dynamics["r_mat"])
    allowed = np.zeros(P.shape[:2], dtype=bool)
    for row, actions in zip(allowed, dynamics["admissible_actions"], strict=True):
        row[list(actions)] = True
    s, a, target = np.nonzero((P > 0) & allowed[:, :, np.newaxis])
    reward = R[s, a, target]
    over = np.ones(len(P), dtype=bool)
    while True:  # drop states that pay, or lead to one that does, until none is left
        goes_on = np.unique(s[over[s] & ((reward != 0) | ~over[target])])
        if len(goes_on) == 0:
            break
        over[goes_on] = False
    law = validate.finite_array(dynamics["d_0"], "start law")
    probability = P[s, a, target]
    return Outcomes(s, a, target, probability, reward, over[target], law / law.sum(), allowed)


def _ends(outcomes: Outcomes) -> tuple[IntArray, Flags]:
    """The next states with ends told apart, and which states are terminal.

    A state is terminal if a running episode can reach it only by ending there. If some state is
    reached both ways, ending transitions lead to one extra state instead.
    """
    S = len(outcomes.allowed)
    alive, ended = _reachable(outcomes)
    if not (alive & ended).any():
        return outcomes.next, ended
    return np.where(outcomes.done, S, outcomes.next), np.append(np.zeros(S, dtype=bool), True)


def _reachable(outcomes: Outcomes) -> tuple[Flags, Flags]:
    """Which states a running episode can be in, and which it can end in."""
    alive = outcomes.start > 0
    while True:
        more = alive.copy()
        more[outcomes.next[alive[outcomes.s] & ~outcomes.done]] = True
        if (more == alive).all():
            break
        alive = more
    ended = np.zeros(len(alive), dtype=bool)
    ended[outcomes.next[alive[outcomes.s] & outcomes.done]] = True
    return alive, ended
