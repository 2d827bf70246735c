"""Policies from one release of a log: pessimistic, because nobody will try what they suggest.

All of it is post-processing. Constants were chosen on chains, deep-sea, grid worlds, sparse random
tables, inventories and queues.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels.public.first_visit_model import draw_next_states
from tacit.kernels.public.pessimism import plan_low
from tacit.planners.first_visits import read_model
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.release import Release
from tacit.task.task import Task, table_sizes

DEPTH = 1.0
"""Standard deviations that are taken from the value of a pair."""

LEAN = 0.25
"""The same where pairs are judged by their outcomes, whose spread is learned too."""


FOLLOWED = 5.0
"""Standard deviations of visits with a recorded next state above which these speak for others."""


def people_of(release: Release) -> float:
    """How many people the release says there are; at least one."""
    return max(1.0, float(release.blocks["people"][0]))


def complete(cells: Array, censored: Array, visits: Array, ended: int, std: float) -> Array:
    """Counts of next states [..., S] with the visits added whose next state was not recorded.

    A row says itself whether the episode ended there, so one without a next row did not end: it is
    spread over the other next states as these were recorded. Else ending would look too likely
    wherever rows stop, and most of all at the last step of a log as long as the horizon. This takes
    for granted that, of people who were in the same place and did the same, those who stopped being
    recorded were not the ones who would have gone somewhere else.

    Args:
        cells: counts by next state [..., S].
        censored: visits without one [...].
        visits: all [...].
        ended: the state after a row that ends, -1 if no column says that.
        std: of the noise.
    """
    others = np.array(cells)
    if ended >= 0:
        others[..., ended] = 0.0
    followed = visits - censored - (cells - others).sum(axis=-1)
    share = np.divide(
        censored, followed, out=np.zeros_like(followed), where=followed > FOLLOWED * std
    )
    return np.asarray(cells + share[..., np.newaxis] * others)


def completed(release: Release, ended: int) -> Release:
    """The release as if every visit had a next state, in the blocks of one about online users.

    Noise in rows of which a share f was censored is larger than stated, by the factor 1 / (1 - f).
    """
    blocks = dict(release.blocks)
    if "transitions" in blocks:
        visits, std = 2.0 * blocks["totals"], release.law.scale("transitions")
        censored = blocks.pop("censored")
        blocks["transitions"] = complete(blocks["transitions"], censored, visits, ended, std)
    return dataclasses.replace(release, blocks=blocks)


def pessimistic_policy(task: Task, release: Release) -> TabularPolicy:
    """The policy with the best lower value in the model of the released transitions."""
    H, S, _ = table_sizes(task)
    model = read_model(task, release, vast=False, weak=False)
    prob = np.zeros(len(model.succ))
    chances = model.ptr, model.seen, model.sure, model.known, -1.0, False
    draw_next_states(*chances, np.random.default_rng(0), prob)
    visits = np.maximum(model.visits, model.std)
    V, table = np.empty((H + 1, S)), np.empty((H, S), dtype=np.int64)
    rows = task.pairs.first, model.ptr, model.succ, prob, model.mean, model.known
    plan_low(*rows, visits, model.std, DEPTH, task.end_reward, V, table)
    return TabularPolicy(np.where(table >= 0, task.pairs.action[table], 0))


def improved_policy(task: Task, release: Release) -> Policy:
    """The behaviour, improved by one step: in every state the action with the best outcomes.

    Outcomes of a pair are a mean of noisy sums. They are drawn towards the mean of their state, and
    that towards the mean of all, by as much as their own spread suggests (empirical Bayes), so a
    pair that was hardly seen is not chosen for its noise. In a state that was hardly seen at all
    the behaviour is kept.
    """
    (H, S, A), pairs = table_sizes(task), task.pairs
    std = release.law.scale("outcomes")
    n = 2.0 * release.blocks["visits"]
    mean, spread = shrunk_outcomes(pairs.state, n, release.blocks["outcomes"], std, S)
    score = np.full((S, A), -np.inf)
    score[pairs.state, pairs.action] = mean - LEAN * spread
    best = score.argmax(axis=1)
    seen = np.zeros((S, A))
    seen[pairs.state, pairs.action] = np.where(n > 2.0 * std, n, 0.0)
    allowed = np.zeros((S, A))
    allowed[pairs.state, pairs.action] = 1.0
    sure = seen.sum(axis=1) > 0.0
    rows = np.where(sure[:, np.newaxis], np.eye(A)[best], allowed)
    rows[np.diff(pairs.first) == 0, 0] = 1.0
    rows /= rows.sum(axis=1, keepdims=True)
    if sure[np.diff(pairs.first) > 0].all():
        return TabularPolicy(np.tile(best, (H, 1)))
    return StochasticPolicy(np.broadcast_to(rows, (H, S, A)))


def shrunk_outcomes(
    state: IntArray, n: Array, outcomes: Array, std: float, states: int
) -> tuple[Array, Array]:
    """Posterior means and standard deviations of the outcomes of pairs [X].

    Args:
        state: of each pair [X].
        n: noisy numbers of visits [X], with noise of twice ``std``.
        outcomes: noisy sums of outcomes minus 1/2 [X].
        std: of the noise.
        states: how many.
    """
    floor = np.maximum(n, 2.0 * std)
    total = max(float(n.sum()), 1.0)
    overall = float(np.clip(outcomes.sum() / total, -0.5, 0.5))
    off = outcomes - overall * n  # what a pair's outcomes are above the usual
    shift = (1.0 + (2.0 * overall) ** 2) * std**2
    sampling = max(0.25 - overall**2, 0.01)
    per_state, visits = np.bincount(state, off, states), np.bincount(state, n, states)
    pairs = np.bincount(state, minlength=states)
    state_floor = np.maximum(visits, 2.0 * std * np.sqrt(np.maximum(pairs, 1)))
    state_var = (pairs * shift + sampling * state_floor) / state_floor**2
    about = _prior(per_state / state_floor, state_var, state_floor)
    middle = per_state / state_floor * about / (about + state_var)
    var = (shift + sampling * floor) / floor**2
    own = off / floor - middle[state]
    tau = _prior(own, var, floor)
    gain = tau / (tau + var)
    return 0.5 + overall + middle[state] + gain * own, np.sqrt(tau * (1.0 - gain))


def _prior(seen: Array, var: Array, weight: Array) -> float:
    """Variance of what lies behind noisy means, by moments; weights favour the well known."""
    w = weight / var
    return max(float((w * (seen**2 - var)).sum() / w.sum()), 1e-6)
