"""Many trajectories -> first visits of wanted pairs, on the integer grid, clipped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel
from tacit.kernels.raw.counts import clip_index, clip_pair, clip_reward
from tacit.trajectory import Attendees, Lives


class VisitBounds(NamedTuple):
    """What one person teaches at most: pairs, known ones of a row, and how often a pair."""

    cap: int
    refresh: int
    often: int


class FirstVisitSums(NamedTuple):
    """What first visits add to; gains and starts may have no cells: then they are left out."""

    transitions: IntArray  # [X, S]
    gains: IntArray  # [X]
    totals: IntArray  # [X]
    starts: IntArray  # [S]


@kernel
def add_first_visits(
    lives: Lives,
    horizon: int,
    first: IntArray,
    number: IntArray,
    wanted: IntArray,
    bounds: VisitBounds,
    who: Attendees,
    sums: FirstVisitSums,
) -> None:
    """Add what many participations (rows) teach about at most ``cap`` pairs x of a person each.

    A pair counts from its first visit on, at most ``often`` times per person, and only where it is
    ``wanted`` [X]: 2 or more is asked for, 1 may be taught again (at most ``refresh`` such pairs
    per row), 0 or less is not counted. A counted step adds 1 to transitions, r - 1/2 to gains, 1/2
    to totals; who makes a first step adds 1 to starts. Whether a step counts is decided before its
    reward and its next state are read.

    Row i is a participation of the person rows[i] of ``who``. ``taught`` [people, X + 1] holds how
    often each of them has taught a pair, and last whether they made a first step; ``spent``
    [people] how many pairs these are. Both are carried on, or with ``forget`` blank again after
    every row.
    """
    states, actions, rewards = lives
    (cap, refresh, often), (rows, taught, spent, forget) = bounds, who
    transitions, gains, totals, starts = sums
    X, S = transitions.shape
    steps = min(horizon, actions.shape[1], states.shape[1] - 1, rewards.shape[1])
    for row in range(states.shape[0]):
        visits, pairs = taught[rows[row]], spent[rows[row]]
        if starts.shape[0] > 0 and steps > 0 and visits[X] == 0:
            visits[X] = 1
            starts[clip_index(states[row, 0], S)] += STEPS
        repeats = 0
        for h in range(steps):
            x = clip_pair(first, number, clip_index(states[row, h], S), actions[row, h])
            if x < 0:
                break
            if wanted[x] <= 0:
                continue
            if visits[x] == 0:
                if pairs == cap or (wanted[x] == 1 and repeats == refresh):
                    continue
                pairs += 1
                repeats += 1 if wanted[x] == 1 else 0
            if visits[x] < often:
                visits[x] += 1
                transitions[x, clip_index(states[row, h + 1], S)] += STEPS
                totals[x] += STEPS // 2
                if gains.shape[0] > 0:
                    r = clip_reward(rewards[row, h])
                    gains[x] += np.int64(np.rint(STEPS * (r - 0.5)))
        spent[rows[row]] = pairs
        if forget:
            visits[:] = 0
            spent[rows[row]] = 0


@kernel
def add_first_returns(
    lives: Lives,
    horizon: int,
    first: IntArray,
    number: IntArray,
    cap: int,
    end_reward: float,
    largest: float,
    who: Attendees,
    returns: IntArray,
    totals: IntArray,
) -> None:
    """Add what many participations (rows) earned from first visits of states on.

    A state counts at its first visit, for the pair x that was played there, and only among the
    first ``cap`` states of a person: what the rest of the episode paid, over ``largest`` and
    clipped to [0, 1], minus 1/2, to returns [X], and 1/2 to totals [X]. Every step after an end
    pays ``end_reward``, whatever the user says. Who taught what is as in
    ``add_first_visits``; ``taught`` [people, S] flags states.
    """
    (states, actions, rewards), (rows, taught, spent, forget) = lives, who
    S = first.shape[0] - 1
    steps = min(horizon, actions.shape[1], states.shape[1] - 1, rewards.shape[1])
    counted = np.zeros(max(steps, 1), dtype=np.int64)
    paid = np.zeros(max(steps, 1))
    for row in range(states.shape[0]):
        before, visits = spent[rows[row]], taught[rows[row]]
        many, length, rest = 0, 0, 0.0
        for h in range(steps):
            s = clip_index(states[row, h], S)
            if first[s] == first[s + 1]:
                rest = (horizon - h) * end_reward
                break
            paid[h] = clip_reward(rewards[row, h])
            length = h + 1
            if visits[s] == 0 and before + many < cap:
                visits[s] = 1
                counted[many] = h
                many += 1
        spent[rows[row]] = before + many
        if length == steps and steps < horizon and steps > 0:
            s = clip_index(states[row, steps], S)
            if first[s] == first[s + 1]:
                rest = (horizon - steps) * end_reward
        for h in range(length - 1, -1, -1):
            rest += paid[h]
            if many > 0 and counted[many - 1] == h:
                many -= 1
                s = clip_index(states[row, h], S)
                x = clip_pair(first, number, s, actions[row, h])
                returns[x] += np.int64(np.rint(STEPS * (clip_reward(rest / largest) - 0.5)))
                totals[x] += STEPS // 2
        if forget:
            visits[:] = 0
            spent[rows[row]] = 0
