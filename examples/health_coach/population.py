"""Simulated people for the coach: three types, one week each.

A state is what the app sees in the morning: mood, whether the person moved the day before, and what
kind of day it is. An action is the one message of the day. What a message does depends on the
person: walkers like a walk at the weekend, busy people are annoyed by one on a workday, quiet ones
want somebody to call. Nobody's type is known to anybody, the learner included; it must find one
table of messages that serves them all.

The numbers are made up. A message that fits lifts the mood, one that does not lowers it, so a coach
that writes at random is about as good as one that says nothing.
"""

from __future__ import annotations

import numpy as np

from tacit.policies.tabular import TabularPolicy
from tacit.problems import TabularMDP
from tacit_service.rehearsal.people import Population

MOODS = ("low", "fair", "good")
ACTIVITIES = ("still", "moved")
DAYS = ("workday", "weekend")
STATES = [f"{mood}, {moved}, {day}" for mood in MOODS for moved in ACTIVITIES for day in DAYS]
ACTIONS = ["say nothing", "encourage", "suggest a walk", "suggest a call"]
HORIZON = 7

REWARD = {"low": 0.0, "fair": 0.4, "good": 0.8}
"""Of a day, by mood; a day on which the person moved is worth 0.2 more."""

TYPES = {
    # share, effect of each message on mood and on moving, by kind of day (workday, weekend)
    "walker": (
        0.5,
        {"mood": ((0, 2, -1, -2), (0, 0, 3, -1)), "move": ((0, 0, 2, 0), (0, 0, 3, 0))},
    ),
    "busy": (0.3, {"mood": ((0, 2, -3, -2), (0, -1, 2, 0)), "move": ((0, 0, 0, 0), (0, 0, 2, 0))}),
    "quiet": (0.2, {"mood": ((0, 1, -1, 2), (0, 0, 1, 3)), "move": ((0, 0, 1, 0), (0, 0, 2, 0))}),
}


def coach() -> Population:
    """The population that coach.toml names."""
    nothing = TabularPolicy(np.zeros((HORIZON, len(STATES)), dtype=np.int64))
    people = [(share, _problem(name, effect)) for name, (share, effect) in TYPES.items()]
    return Population(people, {"say nothing": nothing})


def _problem(name: str, effect: dict[str, tuple[tuple[int, ...], ...]]) -> TabularMDP:
    """One type as a Markov decision process."""
    S, A = len(STATES), len(ACTIONS)
    P, R = np.zeros((S, A, S)), np.zeros((S, A))
    for s in range(S):
        mood, moved, day = _parts(s)
        for a in range(A):
            up = _chance(-0.6 + 0.8 * moved + 0.7 * effect["mood"][day][a])
            down = _chance(-0.9 - 0.5 * moved - 0.7 * effect["mood"][day][a])
            active = _chance(-1.2 + 0.5 * mood + 0.8 * effect["move"][day][a])
            weekend = (0.2, 0.5)[day]  # five workdays, two days off, as a chain
            better, worse = up * (1 - down), down * (1 - up)
            for mood_then, p in _moods(mood, better, worse).items():
                for moved_then, q in ((0, 1 - active), (1, active)):
                    for day_then, w in ((0, 1 - weekend), (1, weekend)):
                        then = _number(mood_then, moved_then, day_then)
                        P[s, a, then] += p * q * w
                        worth = REWARD[MOODS[mood_then]] + 0.2 * moved_then
                        R[s, a] += p * q * w * worth
    start = np.zeros(S)
    for mood, share in enumerate((0.4, 0.4, 0.2)):
        start[_number(mood, 0, 0)] = share
    return TabularMDP(P, R, HORIZON, start, rewards="bernoulli", name=f"coach, {name}")


def _chance(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def _moods(mood: int, better: float, worse: float) -> dict[int, float]:
    chances = {mood: 1 - better - worse}
    for then, p in ((min(mood + 1, 2), better), (max(mood - 1, 0), worse)):
        chances[then] = chances.get(then, 0.0) + p
    return chances


def _parts(state: int) -> tuple[int, int, int]:
    return state // 4, state // 2 % 2, state % 2


def _number(mood: int, moved: int, day: int) -> int:
    return 4 * mood + 2 * moved + day
