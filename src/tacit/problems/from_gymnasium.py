"""Gymnasium toy-text environments as exact tabular problems."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tacit import validate
from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.problems.tabular import Rewards, TabularMDP

Outcomes = dict[int, dict[int, list[tuple[float, int, float, bool]]]]


def gymnasium_problem(
    id: str, /, horizon: int, rewards: Rewards = "deterministic", **options: Any
) -> TabularMDP:
    """The environment ``id`` as a TabularMDP, if it exposes its transition table ``P``.

    Terminal states absorb and pay nothing more. Rewards are rescaled to [0, 1] by one affine map
    for all steps, so the order of policies is unchanged; the map is reported as ``rescaling``:
    original = offset + scale * rescaled. A reward that depends on the next state enters as its mean
    given (s, a): values and regret are unchanged.

    Args:
        id: Gymnasium id, for example "FrozenLake-v1".
        horizon: number of steps of an episode.
        rewards: "deterministic" pays the (rescaled) mean, "bernoulli" 0 or 1 with that mean.
        options: passed to ``gymnasium.make``, for example ``map_name="8x8"``.
    """
    horizon = validate.integer(horizon, "horizon", low=1)
    table, start = _read_environment(id, options)
    P, means, terminal = _dense(table, start)
    paid = [r for by_action in table.values() for out in by_action.values() for _, _, r, _ in out]
    low, high = min(0.0, *paid), max(0.0, *paid)  # a finished episode pays 0 for ever
    if low == 0.0 and high <= 1.0:
        high = 1.0
    scale = high - low
    R = np.clip((means - low) / scale, 0.0, 1.0)
    law = np.zeros(len(P))
    law[: len(start)] = start
    return TabularMDP(
        P,
        R,
        horizon,
        law,
        rewards=rewards,
        name=f"gym:{id}",
        parameters={"horizon": horizon, "rewards": rewards, **options},
        facts={
            "rescaling": {"offset": low, "scale": scale},
            "terminal_states": int(terminal.sum()),
        },
    )


def make_environment(id: str, options: dict[str, Any]) -> Any:
    """The Gymnasium environment of that id, without the checks that Gymnasium adds to each step."""
    import gymnasium
    from gymnasium.error import Error

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Gymnasium repeats its errors as warnings
            return gymnasium.make(id, **{"disable_env_checker": True, **options})
    except KeyError as error:
        raise InvalidInput(f"Gymnasium could not make {id!r}: it does not know {error}") from None
    except (Error, ImportError, TypeError, ValueError) as error:
        raise InvalidInput(f"Gymnasium could not make {id!r}: {error}") from None


def _read_environment(id: str, options: dict[str, Any]) -> tuple[Outcomes, Array]:
    environment = make_environment(id, options)
    inner = environment.unwrapped
    table = getattr(inner, "P", None)
    if not isinstance(table, dict):
        raise InvalidInput(
            f"gym:{id} does not expose its transition table `P`; only toy-text environments such "
            "as FrozenLake-v1, CliffWalking-v1 and Taxi-v4 do; tacit.learn (tacit learn) plays any"
        )
    states = len(table)
    start = getattr(inner, "initial_state_distrib", None)
    law = np.eye(states)[0] if start is None else validate.finite_array(start, "start law")
    environment.close()
    return table, law / law.sum()


def _dense(
    table: Outcomes, start: Array
) -> tuple[Array, Array, np.ndarray[Any, np.dtype[np.bool_]]]:
    """P [S, A, S] and raw mean rewards [S, A], terminal states absorbing with reward 0.

    A state is terminal if a running episode can reach it only by ending there. If some state is
    reached both ways, ending transitions lead to one extra absorbing state instead.
    """
    states, actions = len(table), len(table[0])
    alive, ended = _reachable(table, start)
    extra = bool((alive & ended).any())
    size = states + int(extra)
    terminal = np.zeros(size, dtype=bool)
    terminal[:states] = ended & (not extra)
    terminal[states:] = True
    P, R = np.zeros((size, actions, size)), np.zeros((size, actions))
    for s, by_action in table.items():
        for a, outcomes in by_action.items():
            for probability, target, reward, done in outcomes:
                P[s, a, states if done and extra else target] += probability
                R[s, a] += probability * reward
    P[terminal] = np.eye(size)[terminal][:, np.newaxis]
    R[terminal] = 0.0
    return P, R, terminal


def _reachable(
    table: Outcomes, start: Array
) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], np.ndarray[Any, np.dtype[np.bool_]]]:
    """Which states a running episode can be in, and which it can end in."""
    alive = start > 0
    ended = np.zeros(len(table), dtype=bool)
    frontier = [int(s) for s in np.flatnonzero(alive)]
    while frontier:
        for outcomes in table[frontier.pop()].values():
            for probability, target, _, done in outcomes:
                if probability > 0 and done:
                    ended[target] = True
                elif probability > 0 and not alive[target]:
                    alive[target] = True
                    frontier.append(int(target))
    return alive, ended
