"""Rows of a log -> first visits, outcomes and weighted returns of people, on the grid, clipped.

A log has one row per step, all rows of a person together and in order (``trajectory.Log``). What is
not known is -1: a next state that nobody recorded, an action that was not declared; a reward that
is missing is NaN. The bounds hold whatever the rows of a person say, also where :func:`arrange`
never saw them: a row whose state or action is none of the task is not counted, and rewards are
clipped. Kernels take a log as it is and their helpers its columns: handed on whole, it would count
references to all eight for every row, and take twice as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel
from tacit.kernels.raw.counts import clip_reward
from tacit.trajectory import Log

LARGEST, LEAST = 1e150, 1e-150
"""Weights above the first are cut to it, weights below the other to 0: a smaller one is still a
bound. A weight between them times a ratio that floats call infinite is truly above the first."""

Whole = npt.NDArray[Any]
"""Whole numbers of any width: a log may be long."""

NEWLINE, RETURN, QUOTE, COMMA = b'\n\r",'

START, PLAIN, QUOTED, CLOSED = range(4)
"""Where in a cell of a CSV file: at its start, in it, in quotes, or behind a quote in quotes."""


@kernel
def whole_rows(
    text: npt.NDArray[np.uint8], cells: int, last: bool, kept: npt.NDArray[np.uint8]
) -> tuple[int, int, int]:
    """Copy the rows of a CSV text that have so many cells, each with a newline after it.

    A row is judged by its own bytes alone. Empty lines are none, and neither is one with a quote
    that is never closed. Without ``last`` the text goes on, and what follows the last newline is
    left for then. ``kept`` has room for a byte more than ``text``.

    Returns how many bytes were read and kept, and how many rows had another number of cells.
    """
    size, left, begin, fields, at = 0, 0, 0, 1, START
    for i in range(text.shape[0] + (1 if last else 0)):
        byte = np.uint8(NEWLINE) if i == text.shape[0] else text[i]
        over = i == text.shape[0]
        if at == QUOTED and not over:
            at = CLOSED if byte == QUOTE else QUOTED
        elif byte == QUOTE and (at == START or at == CLOSED):
            at = QUOTED
        elif byte == COMMA:
            fields, at = fields + 1, START
        elif byte == NEWLINE or byte == RETURN:
            if i > begin and fields == cells and at != QUOTED:
                kept[size : size + i - begin] = text[begin:i]
                size += i - begin
                kept[size] = NEWLINE
                size += 1
            elif i > begin:
                left += 1
            begin, fields, at = i + 1, 1, START
        else:
            at = PLAIN
    return min(begin, text.shape[0]), size, left


@kernel
def arrange(
    person: Whole,
    episode: Whole,
    ends: Whole,
    log: Log,
    horizon: int,
    number: IntArray,
    ended: int,
    counted: bool,
    most: int,
) -> int:
    """Clip sorted rows by rule, in place, into a log, and return how many people there are.

    Rows are sorted by person, episode and step; the log holds their steps, states, actions, rewards
    and chances, and room for the rest. Of rows with the same step the first counts; steps
    below 0 and beyond the horizon, rows whose state is not known, and rows after the end of an
    episode do not. Where steps are not ``counted`` rows are numbered in their order: one whose
    state is not known (-1) keeps its number, one without a place in the order (-2) has none. A row
    without an action says no more than where the step before it led. An episode ends in a terminal
    state, or at a row that ``ends``, whose next state is ``ended``.

    What is left of the columns is moved to the front; ``step`` becomes the step from 0, ``opens``
    marks the first row of an episode, ``after`` is the next state, and ``begin`` [people + 1] says
    where the rows of each person begin. People beyond ``most`` are left out.
    """
    begin, opens, step, state = log.begin, log.opens, log.step, log.state
    action, reward, after, chance = log.action, log.reward, log.after, log.chance
    S, A = number.shape
    people, kept, h, before, over = 0, 0, -1, -1, False
    last_person, last_episode = person[0], episode[0]
    opened = False
    for i in range(person.shape[0]):
        fresh = i == 0 or person[i] != last_person
        if fresh:
            if people == most:
                break
            begin[people] = kept
            people += 1
        if fresh or episode[i] != last_episode:
            h, before, over, opened = -1, -1, False, False
        last_person, last_episode = person[i], episode[i]
        now = step[i] if counted else h + 1
        s, a = state[i], action[i]
        if not counted and s == -1:  # a step whose state is not known is a step all the same
            h, before = now, -1
        if over or s < 0 or s >= S or now <= h or now > horizon:
            continue
        if before >= 0 and step[before] == now - 1:
            after[before] = s
        h, before = now, -1
        stops = True
        for other in range(A):
            if number[s, other] >= 0:
                stops = False
        over = stops or now == horizon or ends[i] != 0
        if stops or now == horizon or a < 0 or a >= A or number[s, a] < 0:
            continue
        leads = ended if ends[i] != 0 else -1
        state[kept], action[kept], reward[kept], chance[kept] = s, a, reward[i], chance[i]
        step[kept], opens[kept], after[kept] = now, 0 if opened else 1, leads
        opened, before = True, kept
        kept += 1
    begin[people] = kept
    return people


@kernel
def _pair(state: Whole, action: Whole, number: IntArray, i: int) -> int:
    """The pair of row i, -1 if it has none."""
    s, a = state[i], action[i]
    if s < 0 or s >= number.shape[0] or a < 0 or a >= number.shape[1]:
        return -1
    x: int = number[s, a]
    return x


@kernel
def add_logged_visits(
    log: Log,
    number: IntArray,
    cap: int,
    transitions: IntArray,
    censored: IntArray,
    gains: IntArray,
    totals: IntArray,
    choices: IntArray,
    starts: IntArray,
) -> None:
    """Add the first visits of at most ``cap`` pairs of every person, over all their episodes.

    A counted visit adds 1 to transitions [X, S], or to censored [X] where the next state was not
    recorded, r - 1/2 to gains [X] and 1/2 to totals [X]: whether it is counted does not depend on
    what came after it. A row whose reward is missing (NaN) is not counted. The first visit of each
    of at most ``cap`` states adds 1/2 to choices [X], and the first state of a person 1 to starts
    [S].
    """
    begin, step, state, action = log.begin, log.step, log.state, log.action
    reward, after = log.reward, log.after
    X, S = transitions.shape
    seen, met = np.full(X, -1, dtype=np.int64), np.full(S, -1, dtype=np.int64)
    for p in range(begin.shape[0] - 1):
        taught, places = 0, 0
        for i in range(begin[p], begin[p + 1]):
            x = _pair(state, action, number, i)
            if x < 0:
                continue
            s = state[i]
            if i == begin[p] and step[i] == 0:
                starts[s] += STEPS
            if met[s] != p and places < cap:
                met[s] = p
                places += 1
                choices[x] += STEPS // 2
            if reward[i] != reward[i] or seen[x] == p or taught == cap:
                continue
            seen[x] = p
            taught += 1
            if 0 <= after[i] < S:
                transitions[x, after[i]] += STEPS
            else:
                censored[x] += STEPS
            totals[x] += STEPS // 2
            gains[x] += np.int64(np.rint(STEPS * (clip_reward(reward[i]) - 0.5)))


@kernel
def add_logged_stages(
    log: Log,
    number: IntArray,
    transitions: IntArray,
    censored: IntArray,
    gains: IntArray,
    totals: IntArray,
    starts: IntArray,
) -> None:
    """Add the steps of everybody's first episode to tables [H, X, S], [H, X] thrice and [S].

    What is added is as in :func:`add_logged_visits`; a step that is not later than the one counted
    before it is left out.
    """
    begin, opens, step, state = log.begin, log.opens, log.step, log.state
    action, reward, after = log.action, log.reward, log.after
    H, _, S = transitions.shape
    for p in range(begin.shape[0] - 1):
        if begin[p] == begin[p + 1]:
            continue
        last = -1
        for i in range(begin[p], _end(opens, begin[p], begin[p + 1])):
            h, x = step[i], _pair(state, action, number, i)
            if x < 0 or h <= last or h >= H:
                continue
            last = h
            if h == 0:
                starts[state[i]] += STEPS
            if reward[i] != reward[i]:
                continue
            if 0 <= after[i] < S:
                transitions[h, x, after[i]] += STEPS
            else:
                censored[h, x] += STEPS
            totals[h, x] += STEPS // 2
            gains[h, x] += np.int64(np.rint(STEPS * (clip_reward(reward[i]) - 0.5)))


@kernel
def add_logged_outcomes(
    log: Log,
    number: IntArray,
    cap: int,
    horizon: int,
    end_reward: float,
    top: float,
    outcomes: IntArray,
    visits: IntArray,
) -> None:
    """Add the outcomes of the first visits of at most ``cap`` states of every person.

    A counted visit of pair x adds 1/2 to visits [X] and (what was earned from there on / top,
    clipped into [0, 1]) - 1/2 to outcomes [X].
    """
    begin, opens, step, state = log.begin, log.opens, log.step, log.state
    action, reward, after = log.action, log.reward, log.after
    seen = np.full(number.shape[0], -1, dtype=np.int64)
    for p in range(begin.shape[0] - 1):
        taught, i = 0, begin[p]
        while i < begin[p + 1] and taught < cap:
            end = _end(opens, i, begin[p + 1])
            left = earned(step, reward, after, number, i, end, horizon, end_reward)
            for j in range(i, end):
                x = _pair(state, action, number, j)
                if x >= 0 and seen[state[j]] != p and taught < cap:
                    seen[state[j]] = p
                    taught += 1
                    visits[x] += STEPS // 2
                    outcomes[x] += np.int64(np.rint(STEPS * (clip_reward(left / top) - 0.5)))
                left -= clip_reward(reward[j])
            i = end


@kernel
def _end(opens: Whole, i: int, last: int) -> int:
    """Where the episode that begins at row i is over."""
    i += 1
    while i < last and opens[i] == 0:
        i += 1
    return i


@kernel
def earned(
    step: Whole,
    reward: Whole,
    after: Whole,
    number: IntArray,
    i: int,
    end: int,
    horizon: int,
    end_reward: float,
) -> float:
    """Rewards of the rows i to end of an episode, and of what follows its end if it has ended."""
    total = 0.0
    for j in range(i, end):
        total += clip_reward(reward[j])
    if end_reward > 0.0 and _over(after, number, end):
        total += end_reward * (horizon - 1.0 - step[end - 1])
    return total


@kernel
def _over(after: Whole, number: IntArray, end: int) -> bool:
    """Whether the last row of an episode leads to a terminal state."""
    s = after[end - 1]
    if s < 0 or s >= number.shape[0]:
        return False
    for a in range(number.shape[1]):
        if number[s, a] >= 0:
            return False
    return True


@kernel
def first_episodes(
    log: Log,
    number: IntArray,
    horizon: int,
    end_reward: float,
    top: float,
    ends: IntArray,
    shares: Array,
) -> None:
    """Where everybody's first episode is over, and what it earned / top, clipped into [0, 1].

    It is over where it begins if it is not whole: recorded from its first step to its end, or the
    horizon. What somebody earned whose rows stop before the end is not known.
    """
    begin, opens, step, state = log.begin, log.opens, log.step, log.state
    action, reward, after = log.action, log.reward, log.after
    for p in range(begin.shape[0] - 1):
        i = begin[p]
        ends[p] = i
        if i == begin[p + 1]:
            continue
        end = _end(opens, i, begin[p + 1])
        whole = end - i == horizon or (end - i < horizon and _over(after, number, end))
        for j in range(i, end):
            if step[j] != j - i or reward[j] != reward[j] or _pair(state, action, number, j) < 0:
                whole = False
                break
        if whole:
            ends[p] = end
            total = earned(step, reward, after, number, i, end, horizon, end_reward)
            shares[p] = clip_reward(total / top)


@kernel
def first_weights(log: Log, policy: Array, ends: IntArray, weights: Array) -> None:
    """Products of policy [H, S, A] over the recorded chances of first episodes that have ``ends``.

    An episode that is not whole, or whose chances are missing, has weight 0, which is never above
    its true weight.
    """
    begin, step, state, action, chance = log.begin, log.step, log.state, log.action, log.chance
    for p in range(ends.shape[0]):
        weight = 1.0 if ends[p] > begin[p] else 0.0
        for j in range(begin[p], ends[p]):
            fair = chance[j] > 0.0 and chance[j] <= 1.0
            weight *= policy[step[j], state[j], action[j]] / chance[j] if fair else 0.0
            weight = min(weight, LARGEST) if weight >= LEAST else 0.0  # 0 if it is no number
        weights[p] = weight
