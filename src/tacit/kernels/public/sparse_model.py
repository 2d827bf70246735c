"""One draw of a large table from noisy local counts: next states above the noise, few rewards.

A pair of a large table has few next states, and its counts have noise in all of them: drawn as they
are, most of a law lies where nobody can go. So the next states of a pair are those whose counts
stand out of the noise, or stand out at another action of the same state; a pair without enough of
them is not known, and may lead anywhere. A few visits that all went one way do not say that there
is no other: a draw allows for every next state that another action of the state has. Rewards are
those of ``rewards``, those of one state being alike.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray, Rows
from tacit.kernels import kernel
from tacit.kernels.public.posterior import FULL_NOISE_SHARE, LESS_NOISE, MORE_VISITS, NoisyCounts
from tacit.kernels.public.rewards import draw_rewards, fit_rewards

LISTED_DEVIATIONS = 3.0
"""Standard deviations of its noise above which a next state is believed.

Not measured, like the other numbers of this file unless they say so: they were set on development
tables (docs/papers/tabular_ldp.md#b9), and no script of that is kept.
"""

NEIGHBOUR_DEVIATIONS = 1.5
"""The same where another action of the state has it."""

KNOWN_DEVIATIONS = 3.0
"""Standard deviations of one cell that the believed next states of a known pair have together."""

REWARD_DEVIATIONS = 1.5
"""Standard deviations of one cell above which a pair's reward counts as seen."""

PRIOR_VISITS = 0.5
"""Visits that every listed next state has besides.

Chosen over .1 on 30 lakes at epsilon 8, four runs each, and checked on ten that were kept for it
(docs/results/history.md, "What was tried for it"); no script is kept.
"""

REWARD_ATOMS, REWARD_FIT_STEPS = 21, 9
"""Values that rewards of a table may take, and steps of their fit."""

STRAY_VARIANCE = 0.2
"""Squared visits that a count may be off besides: at large epsilon one stray report is far more
than a standard deviation. That one counts as noise was chosen on the same lakes."""

EXPLOIT_FROM, EXPLOIT_ALWAYS_FROM = 0.3, 0.6
"""Share of the users after which some plans take the model as it is, and after which all do."""


@kernel
def settled(share: float, rng: np.random.Generator) -> bool:
    """Whether to plan on the model as it is, after that share of the users; one uniform."""
    return rng.random() * (EXPLOIT_ALWAYS_FROM - EXPLOIT_FROM) < share - EXPLOIT_FROM


@kernel
def list_next(
    counts: NoisyCounts, first: IntArray, mean: bool, rows: Rows, known: IntArray
) -> None:
    """List the next states of every pair, from ``begin`` [G, X] on, where there is room for all.

    Those that are believed, and but for the mean those that another action of the state surely has,
    whatever their count. ``known`` [G, X] says whether any are believed; else all are listed.
    ``first`` [N + 1] as in ``tacit.task.pairs``.
    """
    moves, (begin, end, succ) = counts.moves, rows
    variance = counts.moves_variance + STRAY_VARIANCE * counts.moves_unit**2
    G, _, N = moves.shape
    mark = np.zeros(N, dtype=np.int64)
    turn = 0
    for g in range(G):
        for s in range(first.shape[0] - 1):
            turn += 1
            for x in range(first[s], first[s + 1]):
                bar = LISTED_DEVIATIONS * np.sqrt(variance[g, x])
                for n in range(N):
                    if moves[g, x, n] > bar:
                        mark[n] = turn
            for x in range(first[s], first[s + 1]):
                std = np.sqrt(variance[g, x])
                total = 0.0
                place = begin[g, x]
                for n in range(N):
                    near = mark[n] == turn
                    deviations = NEIGHBOUR_DEVIATIONS if near else LISTED_DEVIATIONS
                    believed = moves[g, x, n] > deviations * std
                    if believed:
                        total += moves[g, x, n]
                    if believed or (near and not mean):
                        succ[place] = n
                        place += 1
                known[g, x] = 1 if total > KNOWN_DEVIATIONS * std else 0
                if known[g, x] == 0:
                    place = begin[g, x]
                    for n in range(N):
                        succ[place] = n
                        place += 1
                end[g, x] = place


@kernel
def listed_model(
    counts: NoisyCounts,
    first: IntArray,
    mean: bool,
    rng: np.random.Generator,
    rows: Rows,
    P: Array,
    R: Array,
) -> None:
    """Lists of next states and their chances P[i], mean rewards R [G', X]: a draw, or the mean.

    A draw is as in ``sample_noisy_model``, over what is listed: noise of the released law is added
    to the counts, then Dirichlet. Of a pair that is not known every law is as likely as another; of
    one whose reward was not seen every reward, and none in the mean. Where an action of a state
    pays, others are likelier to.
    """
    moves, rewards, moves_variance, rewards_variance, moves_unit, rewards_unit = counts
    begin, end, succ = rows
    G, X = begin.shape
    known = np.zeros((G, X), dtype=np.int64)
    list_next(counts, first, mean, rows, known)
    full = not mean and rng.random() < FULL_NOISE_SHARE
    share = 0.0 if mean else (1.0 if full else LESS_NOISE)
    repeat = 1.0 if full else MORE_VISITS
    for g in range(G):
        for x in range(X):
            std = share * np.sqrt(moves_variance[g, x])
            visits = repeat / moves_unit[g, x]
            total = 0.0
            for i in range(begin[g, x], end[g, x]):
                alpha = 1.0
                if known[g, x] != 0:
                    count = moves[g, x, succ[i]]
                    if not mean:
                        count += std * rng.standard_normal()
                    alpha = max(count, 0.0) * visits + PRIOR_VISITS
                P[i] = alpha if mean else rng.standard_gamma(alpha)
                total += P[i]
            if total <= 0.0:  # every gamma underflowed
                P[begin[g, x]], total = 1.0, 1.0
            for i in range(begin[g, x], end[g, x]):
                P[i] /= total
    stages = R.shape[0]
    seen, state = np.zeros(stages * X, dtype=np.int64), np.zeros(stages * X, dtype=np.int64)
    good, n = np.zeros(stages * X), np.zeros(stages * X)
    gain, off = np.ones(stages * X), np.ones(stages * X)
    for g in range(stages):
        for s in range(first.shape[0] - 1):
            for x in range(first[s], first[s + 1]):
                at = g * X + x
                state[at] = s
                total = rewards[g, x, 0] + rewards[g, x, 1]
                unit, variance = rewards_unit[g, x], rewards_variance[g, x]
                if total > REWARD_DEVIATIONS * np.sqrt(variance) and total > 0.0:
                    seen[at] = 1
                    good[at], n[at] = rewards[g, x, 1] / unit, total / unit
                    gain[at] = 0.5 * variance / unit**2 + STRAY_VARIANCE
                    off[at] = 2.0 * variance / unit**2
                R[g, x] = 0.0 if mean else rng.random()
    atoms, posterior = np.zeros(REWARD_ATOMS), np.zeros((stages * X, REWARD_ATOMS))
    fit_rewards(good, n, gain, off, seen, state, REWARD_FIT_STEPS, atoms, posterior)
    if not mean:
        draw_rewards(atoms, posterior, seen, rng, R.reshape(-1))
        return
    for g in range(stages):
        for x in range(X):
            for j in range(REWARD_ATOMS):
                R[g, x] += posterior[g * X + x, j] * atoms[j]
