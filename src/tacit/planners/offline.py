"""Policies from one release of a log: pessimistic, because nobody will try what they suggest.

All of it is post-processing. Constants of ours were chosen on chains, deep-sea, grid worlds, sparse
random tables, inventories and queues; what stood beside them was not written down, and no script of
it is kept. DP-APVI and DP-VAPVI (Qiao and Wang 2023) have theirs as we
understand them, not checked against the text; a scale on the penalty carries the comparison.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels.public.pessimism import plan_low
from tacit.planners.base import Context, ReleasePlanner, Streams
from tacit.planners.evaluation.draws import project
from tacit.planners.first_visits import mean_model, read_model
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task, table_sizes

PESSIMISM_DEVIATIONS = 1.0
"""Standard deviations that are taken from the value of a pair."""

OUTCOME_DEVIATIONS = 0.25
"""The same where pairs are judged by their outcomes, whose spread is learned too."""


FOLLOWED_DEVIATIONS = 5.0
"""Standard deviations of visits with a recorded next state above which these speak for others."""


Pessimism = Literal["lower value", "apvi", "vapvi"]
"""How a policy is made of what is known too little: ours, and two that were published."""


@dataclass(frozen=True)
class OfflinePlanner(ReleasePlanner):
    """Plans once, on the one release about a log.

    Attributes:
        kind: of pessimism.
        ended: the state after a row that ends, -1 if no column says that.
        bonus_scale: multiplies the penalty of the published ones; 1 is the theorem.
    """

    kind: Pessimism = "lower value"
    ended: int = -1
    bonus_scale: float = 1.0

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """The policy, on counts in which every visit has a next state; nothing in it is drawn."""
        seen = completed(release, self.ended)
        if self.kind != "lower value":
            regression = self.kind == "vapvi"
            return apvi_policy(task, seen, self.bonus_scale, regression=regression), {}
        if "outcomes" in seen.blocks:
            return improved_policy(task, seen), {}
        return pessimistic_policy(task, seen), {}


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
        censored, followed, out=np.zeros_like(followed), where=followed > FOLLOWED_DEVIATIONS * std
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
    visits, mean = np.maximum(model.visits, model.std), mean_model(task, model)
    V, table = np.empty((H + 1, S)), np.empty((H, S), dtype=np.int64)
    plan_low(mean, visits, model.std, PESSIMISM_DEVIATIONS, task.end_reward, V, table)
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
    score[pairs.state, pairs.action] = mean - OUTCOME_DEVIATIONS * spread
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


def apvi_policy(
    task: Task, release: Release, scale: float, *, regression: bool, beta: float = 0.05
) -> Policy:
    """Backward induction on consistent counts, minus a penalty for what is not known.

    Args:
        task: the public task.
        release: counts of every stage.
        scale: multiplies the penalty; 1 is the theorem.
        regression: VAPVI, variance-weighted regression with one feature per pair; else APVI.
        beta: failure probability of the penalty.
    """
    (H, S, _), pairs = table_sizes(task), task.pairs
    X = len(pairs.action)
    std = release.law.scale("transitions")
    off = std * math.sqrt(2 * math.log(4 * H * X * S / beta))
    iota = math.log(4 * H * X * S / beta)
    V, ones = np.zeros(S), np.ones(X)
    actions = np.zeros((H, S), dtype=np.int64)
    for h in range(H - 1, -1, -1):
        n = np.maximum(2 * release.blocks["totals"][h] + off / 2, 1e-9)
        chances = project(np.asarray(release.blocks["transitions"][h]) / n[:, np.newaxis], ones)
        reward = np.clip(0.5 + release.blocks["gains"][h] / n, 0.0, 1.0)
        mean, square = chances @ V, chances @ V**2
        var = np.maximum(square - mean**2, 0.0)
        sure = np.maximum(n - off, 1e-9)
        if regression:
            penalty = np.sqrt(X * np.maximum(var, 1.0) * iota / sure) + H * off * iota / n
        else:
            penalty = np.sqrt(2 * var * iota / sure) + 16 * S * H * off * iota / n
        left = float(H - h)
        q = np.where(n > 2 * off, reward + mean - scale * penalty, 0.0)
        table = pairs.spread(np.clip(q, 0.0, left), -np.inf)
        over = np.diff(pairs.first) == 0
        table[over] = left * task.end_reward
        actions[h] = table.argmax(axis=1)
        V = table.max(axis=1)
    return TabularPolicy(actions)
