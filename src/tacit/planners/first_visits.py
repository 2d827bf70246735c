"""Planning on jointly private first visits of a table: what is known, what is worth finding out.

All of it is post-processing of a release, so none of it can cost privacy, and none of it has a
proof of regret. Constants were chosen on chains, deep-sea, grid worlds with walls and slip, sparse
random tables, inventories and queues, before the package or beside it: no script of that is kept,
what was tried instead stands in docs/results/history.md ("What was tried"). What each of them is
worth stands there too, measured by ``benchmarks/constants.py``; ``benchmarks/tables.py`` runs them
on problems that nobody chose them on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import ndtri

from tacit.arrays import Array, IntArray
from tacit.kernels.public.first_visit_model import (
    PairModel,
    draw_next_states,
    expected_visits,
    find_next,
    plan_pairs,
)
from tacit.kernels.public.rewards import draw_rewards, fit_rewards
from tacit.planners.base import Context, ReleasePlanner, Streams, pair_rewards
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task, table_sizes

FALSE_PER_PAIR, FALSE_PER_TABLE = 0.1, 0.05
"""Next states of a pair that are noise alone, expected; in vast tables, those of all pairs.

The first was chosen beside KNOWN_DEVIATIONS (row "what is believed"), the second on a courier
with 3528 pairs (row "vast tables").
"""

UNEXPLORED_REWARD_BONUS = 0.3
"""Most that an unexplored pair of a vast table is promised beyond its action's usual reward, in
every third stage of an exploring plan: a lucky draw.

That rewards are fitted by action was chosen on a courier with 3528 pairs (row "vast tables"). What
the draw costs or pays differs by problem (docs/results/history.md, "each constant switched off").
Not measured: other bonuses.
"""

NEIGHBOUR_DEVIATIONS = 1.5
"""Standard deviations at which a next state is believed that another action of the state has.

Draws allow for it from a count of 0 on where rewards are rare, except in vast tables: where few
have been, one next state that is missed makes the best action look bad, and nobody would try it
again.

Allowing for it was chosen on 28 problems at epsilon 1 and 44 at epsilon 8, 8 seeds (row "exploring
plans allow for next states"). Not measured: other numbers of deviations.
"""

RARE_REWARD = 0.25
"""What an unknown pair may promise per step where rewards are rare. Not measured: other numbers."""

KNOWN_DEVIATIONS = 1.5
"""Standard deviations of its number of visits above which a pair is known.

Chosen over stricter rules: regret .175 of that of uniform actions instead of .200 (row "what is
believed").
"""

REDRAWN_NOISE = 0.3
"""Share of the released noise that is drawn again when exploring.

Chosen over all of it on 16 lakes at epsilon 8 (row "exploring plans allow for next states": 1.02
against .879).
"""

UNKNOWN_REWARD_FACTOR = 2.0
"""A pair that is not known pays as often as the best known reward is earned, times this.

Chosen over 4 on 11 problems at epsilon 1: regret .237 of that of uniform actions instead of .265
(row "unknown pairs promise").
"""

FULL_BONUS_USERS = 100.0
"""Known pairs get a full bonus from this many users per pair and standard deviation on.

A bonus of one deviation was chosen over none and 2.5 on a cost grid and a lake at epsilon 8 (row
"bonus for weakly known pairs"). Not measured: from how many users on.
"""

EXPLORE_UNTIL, EXPLOIT_FROM, GIVE_UP_AT = 0.1, 0.6, 0.8
"""Shares of the users: all plans explore until the first; half of them after it, falling to none
at the second; where nothing was found, all of them until the third.

The first two were chosen over exploring beside it for ever on 11 problems at epsilon 1 (row
"exploiting beside it": .200 instead of .237). Not measured: the third.
"""

DOUBTING_SHARE = 0.3
"""Share of the plans that would exploit and, where rewards are rare, doubt what is known instead,
from twice the share of the users at which exploiting begins on until that of giving up. One pair
that looks worse than it is can cost all there is to win, and who exploits does not meet it
again.

Chosen over half of the plans and over none on 8 lakes, 12 seeds at epsilon 1, and 12 other tables
(row "doubting plans": 13 runs of 96 stuck instead of 23).
"""

LARGE_TABLE_SHARES = 0.35, 0.8
"""EXPLORE_UNTIL and EXPLOIT_FROM in a table that has very many pairs, but not too many to look for.

Chosen on a courier with 3528 pairs at epsilon 8, one seed (row "vast tables"); on another courier
3 of 8 runs find nothing without it, and none with it (``benchmarks/constants.py``).
"""

REWARD_ATOMS, REWARD_FIT_STEPS = 21, 12
"""Rewards that a table is taken to have, and steps of their fit. Not measured: other numbers."""


class Model(NamedTuple):
    """What a release tells about the pairs of a table."""

    ptr: IntArray
    succ: IntArray
    seen: Array
    """How often each next state was seen."""
    sure: IntArray
    """Whether it is believed (1), or only allowed for when exploring (0)."""
    visits: Array
    known: IntArray
    mean: Array
    """Expected rewards [X], where they are learned."""
    atoms: Array
    posterior: Array
    start: Array
    usual: Array
    """What an unknown pair pays [X]; no cells where all pairs can be explored."""
    std: float


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstVisitPlanner(ReleasePlanner):
    """Plays the best policy of a model that the release allows; explores, then exploits.

    Several publications are planned on one release. Exploring, next states and rewards are drawn
    anew within the noise, and pairs that nobody knows promise as much as the best that is known.
    Exploiting, the model is the mean one, and unknown pairs are worth nothing. With a policy the
    pairs are published that its users are asked to teach: all that are not known, and the least
    known that they will meet.

    Attributes:
        plans: publications between two releases.
        refresh: pairs that one user may teach again.
        capped: whether there are more pairs than a user may teach.
        vast: whether there are more pairs than the users can find out about.
        bold: whether to explore by optimism all the same.
    """

    plans: int
    refresh: int
    capped: bool
    vast: bool = False
    bold: bool = True
    _models: WeakKeyDictionary[Release, Model] = field(default_factory=WeakKeyDictionary)

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """The next policy, and which pairs its users are asked for."""
        (H, S, A), pairs = table_sizes(task), task.pairs
        wanted = np.full(len(pairs.action), 2)
        turn = 0
        if previous is not None and previous.context["turn"][0] == release.users:
            turn = int(previous.context["turn"][1]) + 1
        context = {"wanted": wanted, "turn": np.array([release.users, turn])}
        if release.law.scale("transitions") == 0.0:
            return uniform_policy(H, S, A, pairs), context
        if release not in self._models:
            self._models[release] = read_model(task, release, self.vast, not self.vast)
        model = self._models[release]
        found, rate = self._outlook(task, model)
        until = LARGE_TABLE_SHARES if self.vast and self.bold else (EXPLORE_UNTIL, EXPLOIT_FROM)
        done = release.users / task.users
        share, width = _exploring(done, found, *until), 0.0
        if streams.draws != 1:
            share, done = 0.0, 1.0
        if (turn + streams.posterior.random()) / self.plans < share:
            width = REDRAWN_NOISE
        elif rate < RARE_REWARD and not self.vast and 2.0 * EXPLORE_UNTIL <= done <= GIVE_UP_AT:
            width = float(streams.posterior.random() < DOUBTING_SHARE)
        table, drawn = self._choose(task, model, width, rate, streams)
        if self.capped:
            seen = np.empty(len(pairs.action))
            expected_visits(drawn, model.start, table, seen)
            context["wanted"] = _wanted(seen, model, self.refresh)
        actions = np.where(table >= 0, pairs.action[table], 0)
        return TabularPolicy(actions), context

    def _outlook(self, task: Task, model: Model) -> tuple[bool, float]:
        """Whether a reward was found, and what an unknown pair may promise per step."""
        H, S, _ = table_sizes(task)
        mean = mean_model(task, model)
        V, table = np.empty((H + 1, S)), np.empty((H, S), dtype=np.int64)
        none = np.zeros(len(mean.reward))
        plan_pairs(mean, none, 0.0, task.end_reward, none, _unknown(model, none), V, table)
        largest = max(float((mean.reward * model.known).max()), task.end_reward)
        value = float(model.start @ V[0])
        if largest <= 0.0 or value <= 0.1 * largest:
            return False, 1.0
        return True, min(1.0, UNKNOWN_REWARD_FACTOR * value / (H * largest))

    def _choose(
        self, task: Task, model: Model, width: float, rate: float, streams: Streams
    ) -> tuple[IntArray, PairModel]:
        """The best pairs [H, S] of a model that is drawn, and the draw.

        With a ``width`` that share of the noise is drawn again: ``REDRAWN_NOISE`` explores, 1
        doubts.
        """
        H, S, _ = table_sizes(task)
        X, explore = len(model.known), width == REDRAWN_NOISE
        drawn = mean_model(task, model)
        bonus, luck = np.zeros(X), np.zeros(X)
        if explore:
            luck = UNEXPLORED_REWARD_BONUS * streams.posterior.random(X) ** 2
            calm = min(1.0, task.users / (FULL_BONUS_USERS * X * model.std))
            bonus = calm * model.std / np.maximum(model.visits, model.std)
        if width > 0.0:
            counts = model.ptr, model.seen, model.sure, model.known
            rare = rate < RARE_REWARD
            draw_next_states(*counts, width * model.std, rare, streams.posterior, drawn.prob)
            if len(model.posterior):
                chances = model.posterior if explore else _flatter(model.posterior)
                draw_rewards(model.atoms, chances, model.known, streams.posterior, drawn.reward)
        V, table = np.empty((H + 1, S)), np.empty((H, S), dtype=np.int64)
        jitter = 1e-7 * streams.ties.random(X)
        hope = rate if explore else 0.0
        unknown = np.zeros((0, 0)) if explore and self.bold else _unknown(model, luck)
        plan_pairs(drawn, bonus, hope, task.end_reward, jitter, unknown, V, table)
        return table, drawn


def _unknown(model: Model, luck: Array) -> Array:
    """What unknown pairs pay, for every third stage; no cells where all can be explored."""
    if not len(model.usual):
        return np.zeros((0, 0))
    return np.stack([model.usual + luck, model.usual, model.usual])


def mean_model(task: Task, model: Model) -> PairModel:
    """Mean rewards of pairs, and chances of next states by their counts."""
    prob = np.zeros(len(model.succ))
    nothing = np.random.default_rng(0)
    draw_next_states(model.ptr, model.seen, model.sure, model.known, -1.0, False, nothing, prob)
    return PairModel(task.pairs.first, model.ptr, model.succ, prob, model.mean.copy(), model.known)


def _flatter(chances: Array) -> Array:
    """Chances [X, J] in proportion to their roots: as if half as much had been seen."""
    roots: Array = np.sqrt(chances)
    roots /= np.maximum(roots.sum(axis=1, keepdims=True), 1e-300)
    return roots


def _exploring(share: float, found: bool, first: float, last: float) -> float:
    """Share of the plans that explore, by the share of the users so far; at first all of them."""
    if share < first or not (found or share > GIVE_UP_AT):
        return 1.0
    return 0.5 * max(0.0, (last - share) / (last - first))


def _wanted(seen: Array, model: Model, refresh: int) -> IntArray:
    """2 where a pair is not known; 1 for the least known, until users meet ``refresh`` of them."""
    order = np.argsort(model.visits, kind="stable")
    order = order[model.known[order] != 0]
    before = np.cumsum(seen[order]) - seen[order]
    wanted = np.where(model.known != 0, 0, 2)
    wanted[order[before < refresh]] = 1
    return wanted


def read_model(task: Task, release: Release, vast: bool, weak: bool) -> Model:
    """Next states above the noise, visits, and rewards, of a release that has data.

    With ``weak`` the next states that another action of the state has are listed below it too.
    """
    X, S = release.blocks["transitions"].shape
    first, cells = task.pairs.first, np.ascontiguousarray(release.blocks["transitions"])
    std = release.law.scale("transitions")
    visits = 2.0 * release.blocks["totals"]
    high = -float(ndtri(min((FALSE_PER_TABLE / X if vast else FALSE_PER_PAIR) / S, 0.1)))
    low = min(NEIGHBOUR_DEVIATIONS, high)
    ptr, used = np.zeros(X + 1, dtype=np.int64), 4 * X
    while True:
        succ, count = np.zeros(used, dtype=np.int64), np.zeros(used)
        used = find_next(first, cells, high * std, 0.0 if weak else low * std, ptr, succ, count)
        if used <= len(succ):
            break
    sure = (count > low * std).astype(np.int64)
    of = np.repeat(np.arange(X), np.diff(ptr))[sure[:used] != 0]
    lengths, mass = np.bincount(of, minlength=X), np.bincount(of, count[sure != 0], X)
    known = ((visits > KNOWN_DEVIATIONS * 2.0 * std) & (lengths > 0)).astype(np.int64)
    by_total, by_cells = 1 / (2 * std) ** 2, 1 / (np.maximum(lengths, 1) * std**2)
    n = np.maximum((by_total * visits + by_cells * mass) / (by_total + by_cells), std)
    atoms, posterior = np.zeros(REWARD_ATOMS), np.zeros((0, REWARD_ATOMS))
    mean = pair_rewards(task)[0]
    if "gains" in release.blocks:
        posterior = np.zeros((X, REWARD_ATOMS))
        count_std = (by_total + 1 / (3 * std**2)) ** -0.5
        good = 0.5 * n + release.blocks["gains"]
        group = task.pairs.action if vast else np.zeros(X, dtype=np.int64)
        gain, off = np.full(X, std**2), np.full(X, count_std**2)
        fit_rewards(good, n, gain, off, known, group, REWARD_FIT_STEPS, atoms, posterior)
        mean = posterior @ atoms
    usual = _usual(task.pairs.action, known.astype(np.float64), mean) if vast else np.zeros(0)
    start = task.known.get("initial")
    if start is None:
        counted = release.blocks["starts"]
        start = np.where(counted > NEIGHBOUR_DEVIATIONS * std, counted, 0.0)
        start = start / start.sum() if start.sum() > 0.0 else np.full(S, 1.0 / S)
    return Model(ptr, succ, count, sure, visits, known, mean, atoms, posterior, start, usual, std)


def _usual(action: IntArray, known: Array, reward: Array) -> Array:
    """Mean reward of each pair's action over its known pairs, drawn a little to that of all."""
    n, paid = (np.bincount(action, x) for x in (known, known * reward))
    mean = (paid.sum() + 0.5) / (n.sum() + 1.0)
    return np.asarray((paid + 3.0 * mean) / (n + 3.0))[action]
