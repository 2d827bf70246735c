"""Planning on noisy first visits: which next states a pair has, models, plans, occupancy.

Pairs x are those of ``tacit.task.pairs``; the next states found for pair x are succ[i] with
count[i] or prob[i], ptr[x] <= i < ptr[x + 1]. Policies [H, S] hold pairs, -1 where a state is
terminal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel


class PairModel(NamedTuple):
    """One model of the pairs x of a table, to plan in."""

    first: IntArray  # [S + 1]
    ptr: IntArray  # [X + 1]
    succ: IntArray
    prob: Array
    reward: Array  # [X]
    known: IntArray  # [X]


@kernel
def find_next(
    first: IntArray,
    cells: Array,
    high: float,
    low: float,
    ptr: IntArray,
    succ: IntArray,
    count: Array,
) -> int:
    """List the cells [X, S] above ``high``, and those above ``low`` next to such a one.

    That is, where another action of the same state has the same next state. Returns how many there
    are; those that do not fit into ``succ`` are left out, to be asked for again.
    """
    S = cells.shape[1]
    mark = np.zeros(S, dtype=np.int64)
    used = 0
    ptr[0] = 0
    for s in range(first.shape[0] - 1):
        for x in range(first[s], first[s + 1]):
            for n in range(S):
                if cells[x, n] > high:
                    mark[n] = s + 1
        for x in range(first[s], first[s + 1]):
            for n in range(S):
                y = cells[x, n]
                if y > high or (y > low and mark[n] == s + 1):
                    if used < succ.shape[0]:
                        succ[used] = n
                        count[used] = y
                    used += 1
            ptr[x + 1] = used
    return used


@kernel
def draw_next_states(
    ptr: IntArray,
    count: Array,
    sure: IntArray,
    known: IntArray,
    std: float,
    doubt: bool,
    rng: np.random.Generator,
    prob: Array,
) -> None:
    """Laws of next states that counts allow: noise of ``std`` drawn again, then Dirichlet draws.

    With ``doubt`` next states that are not ``sure`` have what their drawn count says, else nothing;
    the sure ones half a visit more. With std < 0 the shares of the sure counts themselves, and
    nothing is drawn.
    """
    for x in range(ptr.shape[0] - 1):
        if known[x] == 0:
            continue
        total = 0.0
        for i in range(ptr[x], ptr[x + 1]):
            g = count[i] * sure[i]
            if std >= 0.0 and (doubt or sure[i] != 0):
                drawn = max(count[i] + std * rng.standard_normal(), 0.0)
                g = rng.standard_gamma(drawn + 0.5 * sure[i])
            prob[i] = g
            total += g
        for i in range(ptr[x], ptr[x + 1]):
            prob[i] /= total


@kernel
def plan_pairs(
    model: PairModel,
    bonus: Array,
    rate: float,
    end_reward: float,
    jitter: Array,
    unknown: Array,
    V: Array,
    policy: IntArray,
) -> None:
    """Backward induction over the next states found; O(H n) for n of them.

    A pair that is not known is worth ``rate`` for every step left; or, if ``unknown`` [3, X]
    has cells, what that says (one row for every third stage) and the value of staying. A known one
    gets its ``bonus`` times the spread of the next values. ``jitter`` breaks ties, at every stage
    in another way: who stays where they are tries something else.
    """
    first, ptr, succ, prob, reward, known = model
    H, S = policy.shape
    V[H, :] = 0.0
    for h in range(H - 1, -1, -1):
        left = float(H - h)
        low, high = np.inf, -np.inf
        for s in range(S):
            low, high = min(low, V[h + 1, s]), max(high, V[h + 1, s])
        spread = min(high - low, rate * left)
        for s in range(S):
            if first[s] == first[s + 1]:
                V[h, s] = left * end_reward
                policy[h, s] = -1
                continue
            top = -np.inf
            for x in range(first[s], first[s + 1]):
                if known[x] == 0:
                    q = rate * left
                    if unknown.shape[0] > 0:
                        q = unknown[(h + x) % 3, x] + V[h + 1, s]
                else:
                    q = reward[x] + bonus[x] * spread
                    for i in range(ptr[x], ptr[x + 1]):
                        q += prob[i] * V[h + 1, succ[i]]
                q = min(q, left) + jitter[(x + 7919 * h) % jitter.shape[0]]
                if q > top:
                    top = q
                    policy[h, s] = x
            V[h, s] = min(top, left)


@kernel
def expected_visits(model: PairModel, start: Array, policy: IntArray, seen: Array) -> None:
    """The expected number of visits of each pair [X], at most 1, of one user in the model.

    What follows a pair that is not known is not known either: that mass leaves.
    """
    _, ptr, succ, prob, _, known = model
    H, S = policy.shape
    here, there = start.copy(), np.zeros(S)
    seen[:] = 0.0
    for h in range(H):
        there[:] = 0.0
        for s in range(S):
            x = policy[h, s]
            if x < 0 or here[s] <= 1e-9:
                continue
            seen[x] += here[s]
            if known[x] != 0:
                for i in range(ptr[x], ptr[x + 1]):
                    there[succ[i]] += here[s] * prob[i]
        here, there = there, here
    for x in range(seen.shape[0]):
        seen[x] = min(seen[x], 1.0)
