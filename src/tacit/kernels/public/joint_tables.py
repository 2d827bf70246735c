"""Optimistic planning on noisy counts with published bonuses: PUCB, Private-UCB, DP-UCBVI.

Counts are released tables [H, X] and [H, X, S] of the task's pairs x, one per stage. What the
algorithms differ in is a handful of numbers (``Bonus``); the induction is one. Nothing here may
import rollout, counts or sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.public.posterior import project


class Bonus(NamedTuple):
    """Bonus of a pair with noisy count N: root / sqrt(max(D - back, 1)) + one / D + two / D^2.

    D = max(N + shift, 1), and means are sums over D. A pair with N below ``least`` is unknown.
    Where ``spread`` > 0, spread sqrt(Var(V) / D) is added, and what
    docs/papers/dp_ucbvi.md#algorithm adds for the variance of the next stage:
    spread sqrt(m / D), m the mean over next states of min(most^2, next / n' + after / n'^2) with
    n' their counts.
    """

    shift: float = 0.0
    least: float = -np.inf
    root: float = 0.0
    back: float = 0.0
    one: float = 0.0
    two: float = 0.0
    spread: float = 0.0
    most: float = 0.0
    next: float = 0.0
    after: float = 0.0


@kernel
def consistent_counts(
    slack: float, visits: Array, transitions: Array, totals: Array, cells: Array
) -> None:
    """Counts [H, X] and [H, X, S] that could be counts, close to noisy ones.

    The largest change of a cell is the least under which cells are >= 0 and their sum is within
    ``slack`` of the noisy total (docs/papers/dp_ucbvi.md#consistency). Then every cell is raised by
    2 slack / S, and so the total by 2 slack: with noise within ``slack`` it is not below the truth.
    """
    H, X, S = transitions.shape
    y = np.empty(S)
    for h in range(H):
        for x in range(X):
            total = 0.0
            for n in range(S):
                y[n] = max(transitions[h, x, n], 0.0)
                total += y[n]
            wanted = min(max(total, visits[h, x] - slack), visits[h, x] + slack)
            if wanted != total:
                if wanted > 0.0:
                    for n in range(S):
                        y[n] = transitions[h, x, n]
                    project(y, wanted)
                else:
                    wanted = 0.0
                    for n in range(S):
                        y[n] = 0.0
            totals[h, x] = wanted + 2.0 * slack
            for n in range(S):
                cells[h, x, n] = y[n] + 2.0 * slack / S


@kernel
def bonus_model(
    first: IntArray,
    reward: Array,
    visits: Array,
    transitions: Array,
    bonus: Bonus,
    P: Array,
    R: Array,
    spread: Array,
) -> None:
    """Means of next states into P [H, X, S]; of rewards, with the bonus, into R [H, X].

    R is infinite where a pair is unknown. ``spread`` [H, X] receives the factor of sqrt(Var(V)).
    """
    H, X, S = transitions.shape
    arrivals = np.zeros(S)
    for h in range(H):
        if bonus.spread > 0.0:
            later = min(h + 1, H - 1)
            for s in range(S):
                arrivals[s] = 0.0
                for x in range(first[s], first[s + 1]):
                    arrivals[s] += visits[later, x]
        for x in range(X):
            D = max(visits[h, x] + bonus.shift, 1.0)
            for n in range(S):
                P[h, x, n] = transitions[h, x, n] / D
            value = bonus.root / np.sqrt(max(D - bonus.back, 1.0))
            value += bonus.one / D + bonus.two / D**2
            spread[h, x] = bonus.spread / np.sqrt(D)
            if bonus.spread > 0.0:
                mean = 0.0
                for n in range(S):
                    seen = max(arrivals[n], 1.0)
                    square = bonus.next / seen + bonus.after / seen**2
                    mean += P[h, x, n] * min(square, bonus.most**2)
                value += spread[h, x] * np.sqrt(mean)
            known = visits[h, x] >= bonus.least
            R[h, x] = reward[h, x] / D + value if known else np.inf


@kernel
def bonus_induction(
    first: IntArray,
    action: IntArray,
    P: Array,
    R: Array,
    spread: Array,
    weights: Array,
    caps: Array,
    end_reward: float,
    Q: Array,
    V: Array,
) -> None:
    """Q_h = clip(R + P V_{h+1} + spread sqrt(Var_P V_{h+1}), 0, cap_h), and V_h from it.

    V_h is max_a Q_h, or the mean of Q_h under ``weights`` [H, S, A] where they have rows.
    """
    H, S = Q.shape[0], first.shape[0] - 1
    mirror = weights.shape[0] > 0
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        for s in range(S):
            if first[s] == first[s + 1]:
                V[h, s] = (H - h) * end_reward
                continue
            best = 0.0
            mean = 0.0
            for x in range(first[s], first[s + 1]):
                value = R[h, x]
                if h < H - 1 and value < np.inf:
                    one = 0.0
                    two = 0.0
                    for n in range(S):
                        one += P[h, x, n] * V[h + 1, n]
                        two += P[h, x, n] * V[h + 1, n] ** 2
                    value += one
                    if spread[h, x] > 0.0:
                        value += spread[h, x] * np.sqrt(max(two - one**2, 0.0))
                value = min(max(value, 0.0), caps[h])
                Q[h, x] = value
                best = max(best, value)
                if mirror:
                    mean += weights[h, s, action[x]] * value
            V[h, s] = mean if mirror else best
