"""How good a published policy is, as far as the release and the law of its noise can tell.

The policy is evaluated in many models that the release allows, drawn as the planner draws them:
released noise is added once more to the counts, counts of moves are projected to what they can be,
and a model is drawn given those counts. Rewards and start shares enter the value linearly and stay
as they are: clipping them would shift the value. Pairs (s, a) that noise hides (their visits are
within two standard deviations of zero) are drawn from the planner's prior: any next state, any
reward. How much of the policy's way leads through such pairs is said beside the band.

Baselines are evaluated in the same draws, so the band of a gain is that of the difference.

What is promised: a band holds the true value of the policy, or its true gain, in at least nine of
ten releases. That is checked by simulation (tests/service/dashboard), not proved. Nothing but the
release, its law and published policies is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.planners.base import Planner
from tacit.planners.evaluation.draws import (
    action_chances,
    dirichlet,
    normals,
    project,
    resampled,
)
from tacit.planners.tacit_joint import JointCountsPlanner
from tacit.policies.base import Policy
from tacit.publication import Publication
from tacit.task.task import Task

COVERAGE = 0.9
"""Share of releases whose band holds the true value, at least."""

DRAWS = 200
TAIL = 0.01
"""Bands run from the quantile at TAIL to that at 1 - TAIL: further out than COVERAGE asks for,
because a policy is chosen where the noise happens to look good. Not measured: other quantiles; how
often bands hold the truth is (``tests/service/dashboard/test_estimate.py``)."""

HIDDEN_DEVIATIONS = 2.0
"""Visits within so many standard deviations of zero say nothing. Not measured: others."""

MOST_NUMBERS = 2_000_000
"""Most numbers drawn at once."""

Kind = Literal["start", "even", "optimistic", "played", "none"]


Band = tuple[float, float, float]
"""Low end, middle (the mean of the draws) and high end."""


@dataclass(frozen=True)
class Baseline:
    """A policy that costs nothing to play, beside the published one.

    Attributes:
        name: what it does.
        value: band of its value.
        gain: band of what the published policy is worth above it.
    """

    name: str
    value: Band
    gain: Band

    def users_needed(self, users: int) -> int | None:
        """Users after which the gain's band lies above 0 if its middle is right; None if never.

        The noise in a sum over n users grows like sqrt(n) where devices randomize, and more slowly
        where a curator does; so do their own differences. Against sums that grow like n the band
        shrinks at least like 1 / sqrt(n).
        """
        low, middle, _ = self.gain
        if low > 0.0:
            return users
        return None if middle <= 0.0 else math.ceil(users * ((middle - low) / middle) ** 2)


@dataclass(frozen=True)
class ValueBand:
    """An estimate of the value of a policy, in summed rewards of [0, 1] over an episode.

    Attributes:
        kind: "start": over the start law the release tells; "even": over all start states alike,
            because it does not; "optimistic": the planner's own optimistic value (no band);
            "played": the mean return of the batch before, in natural units; "none".
        low: lower end of the band.
        middle: mean over the draws.
        high: upper end.
        states: low, middle and high by start state, where there is a band.
        hidden: share of the policy's steps about which noise hides what the release says.
        baselines: what to compare with.
    """

    kind: Kind
    low: float = 0.0
    middle: float = 0.0
    high: float = 0.0
    states: tuple[Band, ...] = ()
    hidden: float = 0.0
    baselines: tuple[Baseline, ...] = ()


class _Models(NamedTuple):
    """Draws of a model, and of the start law."""

    P: Array  # [B, G, S, A, S]
    R: Array  # [B, G', S, A]
    start: Array  # [B, S]


def value_band(
    task: Task,
    planner: Planner,
    release: Noisy,
    publication: Publication,
    seed: int,
    baselines: Mapping[str, Policy] | None = None,
) -> ValueBand:
    """The value of a publication's policy, from the release it was planned from."""
    released = tables(task, release, planner)
    policies = [publication.policy, *(baselines or {}).values()]
    chances = [action_chances(policy, task.sizes["actions"]) for policy in policies]
    if released is None or chances[0] is None or released.moves.size > MOST_NUMBERS:
        return _optimistic(task, release, publication)
    rng = np.random.default_rng(seed)
    values: list[list[Array]] = [[] for _ in policies]
    hidden = []
    per_round = max(1, min(DRAWS, MOST_NUMBERS // released.moves.size))
    for done in range(0, DRAWS, per_round):
        models = _draw(released, min(per_round, DRAWS - done), rng)
        hidden.append(_hidden_steps(released, models, chances[0]))
        for one, asked in zip(values, chances, strict=True):
            if asked is not None:
                one.append(_values(models, asked))
    drawn = np.concatenate(values[0])
    most = float(task.horizon)
    bands = [_band(column, 0.0, most) for column in drawn.T]
    compared = []
    for name, one in zip(baselines or {}, values[1:], strict=True):
        if one:
            other = np.concatenate(one)[:, 0]
            gain = _band(drawn[:, 0] - other, -most, most)
            compared.append(Baseline(name, _band(other, 0.0, most), gain))
    kind: Kind = "even" if released.first is None else "start"
    share = float(np.concatenate(hidden).mean())
    return ValueBand(kind, *bands[0], tuple(bands[1:]), share, tuple(compared))


MEAN_DEVIATIONS = 2.0
"""Standard deviations on either side of a released mean: 95%."""


def value_of_played_batch(publication: Publication) -> ValueBand:
    """What the people whose reports led to this publication were returned, as it was released."""
    curve = publication.context["curve"]
    if not len(curve):
        return ValueBand("none")
    _, mean, error, least, most = curve[-1].tolist()
    low = max(mean - MEAN_DEVIATIONS * error, least)
    high = min(mean + MEAN_DEVIATIONS * error, most)
    return ValueBand("played", low, mean, high)


def _optimistic(task: Task, release: Noisy, publication: Publication) -> ValueBand:
    """What optimistic planners publish: a number above the truth, with no band."""
    V = publication.context.get("V")
    if V is None or release.users == 0 or V.shape != (task.horizon + 1, task.sizes["states"]):
        return ValueBand("none")
    value = float(V[0].mean())
    return ValueBand("optimistic", value, value, value)


def _band(draws: Array, least: float, most: float) -> Band:
    low, high = np.clip(np.quantile(draws, (TAIL, 1 - TAIL)), least, most)
    return float(low), float(np.clip(draws.mean(), low, high)), float(high)


def _draw(t: ReleasedTables, draws: int, rng: np.random.Generator) -> _Models:
    """Models that the release and its noise allow."""
    S = t.moves.shape[-1]
    moves = t.moves + t.moves_std[..., None] * normals(t.moves, draws, rng)
    total, seen = _totals(moves.sum(axis=-1), t.moves_std * S**0.5)
    P = dirichlet(np.where(seen[..., None], project(moves, total), 0.0) + 1.0 / S, rng)
    visits, paid_for = _totals(
        t.visits + t.visits_std * normals(t.visits, draws, rng), t.visits_std
    )
    extra = t.extra + t.extra_std * normals(t.extra, draws, rng)
    R = resampled(t.base + extra / visits, visits, rng)
    R = np.where(paid_for, R, rng.beta(0.5, 0.5, R.shape))
    if t.known_reward is not None:
        R = np.broadcast_to(t.known_reward, R.shape)
    first = np.full((draws, S), 1.0 / S)
    if t.first is not None:
        first = t.first + t.first_std * normals(t.first, draws, rng)
        first = _whole(resampled(first, np.asarray(t.starters), rng))
    return _Models(P, R, first)


def _hidden_steps(t: ReleasedTables, models: _Models, chances: Array) -> Array:
    """Per draw, the share of the policy's steps at pairs that noise hides in the release."""
    S, H = t.moves.shape[-1], len(chances)
    _, moved = _totals(t.moves.sum(axis=-1), t.moves_std * S**0.5)
    _, paid = _totals(t.visits, t.visits_std)
    if t.known_reward is not None:
        paid = np.ones_like(paid)
    here, share = np.maximum(models.start, 0.0), np.zeros(len(models.P))
    here = here / here.sum(axis=-1, keepdims=True)
    for h in range(H):
        g, r = h % len(moved), h % len(paid)
        there = here[:, :, None] * chances[h]
        unknown = ~paid[r] | (~moved[g] if h < H - 1 else False)
        share += (there * unknown).sum(axis=(1, 2)) / H
        here = np.einsum("bsa,bsan->bn", there, models.P[:, g], optimize=True)
    return share


def _whole(share: Array) -> Array:
    """Shares that add up to 1, moved by the same amount each."""
    return np.asarray(share + (1.0 - share.sum(axis=-1, keepdims=True)) / share.shape[-1])


def _totals(total: Array, std: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Totals that noise does not hide, 1 in place of the others; and which those are."""
    seen = total > np.maximum(HIDDEN_DEVIATIONS * std, 1e-9)
    return np.where(seen, total, 1.0), seen


def _values(models: _Models, chances: Array) -> Array:
    """Exact values [B, 1 + S]: over the start law, and from every state."""
    V = np.zeros((len(models.P), chances.shape[1]))
    for h in range(len(chances) - 1, -1, -1):
        g, r = h % models.P.shape[1], h % models.R.shape[1]
        Q = models.R[:, r] + np.einsum("bsan,bn->bsa", models.P[:, g], V, optimize=True)
        V = (Q * chances[h]).sum(axis=-1)
    return np.concatenate([(V * models.start).sum(axis=-1, keepdims=True), V], axis=1)


class Noisy(Protocol):
    """A release as it is stored: sums in natural units, and the variance of their noise."""

    @property
    def users(self) -> int:
        """Participations in it."""

    @property
    def blocks(self) -> Mapping[str, npt.NDArray[Any]]:
        """The sums by name."""

    @property
    def variances(self) -> Mapping[str, npt.NDArray[Any]]:
        """The variance of every entry, or of all of them."""


class ReleasedTables(NamedTuple):
    """Counts in visits, each with the standard deviation of the noise in one cell.

    The mean reward of a pair is ``base + extra / visits``. ``first`` holds the shares of start
    states, and is None where the release does not say where people start. G and G' are 1 where
    stages are pooled.
    """

    moves: Array  # N(s, a, s') [G, S, A, S]
    moves_std: Array  # [G, S, A]
    visits: Array  # N(s, a), as rewards count them [G', S, A]
    visits_std: Array  # [G', S, A]
    extra: Array  # [G', S, A]
    extra_std: Array  # [G', S, A]
    base: float = 0.5
    known_reward: Array | None = None  # [G', S, A], where nothing has to be learned
    first: Array | None = None  # [S]
    first_std: float = 0.0
    starters: float = 0.0


def tables(task: Task, release: Noisy, planner: Planner) -> ReleasedTables | None:
    """The release as tables; None where nobody is in it, or it holds regressions or returns.

    Nor is there a band where terminal states or allowed actions are declared: the models drawn here
    know nothing of them.
    """
    if release.users == 0 or not task.pairs.every:
        return None
    if "moves" in release.blocks:
        return _one_cell(release)
    if "visits" in release.blocks:
        return _visit_counts(task, release)
    if {"totals", "transitions"} <= release.blocks.keys():
        return _first_visits(task, release)
    if isinstance(planner, JointCountsPlanner):
        return _joint_counts(task, release, planner)
    return None


def _one_cell(release: Noisy) -> ReleasedTables:
    """Weighted counts, divided by the weight of the average visit behind them.

    Rewards come as counts of rho = 0 and rho = 1 with equal noise: their sum and their difference
    are noisy independently of each other.
    """
    blocks = release.blocks
    unit, reward_unit = blocks["moves_unit"], blocks["rewards_unit"]
    unit, reward_unit = np.maximum(unit, 1e-12), np.maximum(reward_unit, 1e-12)
    none, one = blocks["rewards"][..., 0] / reward_unit, blocks["rewards"][..., 1] / reward_unit
    std = _std(release, "rewards", reward_unit) / reward_unit
    starters = float(blocks["first_users"][0])
    return ReleasedTables(
        moves=blocks["moves"] / unit[..., None],
        moves_std=_std(release, "moves", unit) / unit,
        visits=none + one,
        visits_std=std * 2**0.5,
        extra=0.5 * (one - none),
        extra_std=std * 0.5**0.5,
        first=blocks["first"] / starters if starters > 0 else None,
        first_std=float(np.sqrt(release.variances["first"])) / max(starters, 1.0),
        starters=starters,
    )


def _visit_counts(task: Task, release: Noisy) -> ReleasedTables:
    """Stages are pooled, so nothing is said about the first one."""
    blocks = release.blocks
    visits = blocks["visits"]
    return ReleasedTables(
        moves=blocks["transitions"],
        moves_std=_std(release, "transitions", visits),
        visits=visits,
        visits_std=_std(release, "visits", visits),
        extra=blocks["reward"],
        extra_std=_std(release, "reward", visits),
        base=0.0,
        known_reward=task.known.get("reward"),
    )


def _first_visits(task: Task, release: Noisy) -> ReleasedTables:
    """Totals count half a visit, rewards come centred at 1/2; start states count as they weigh."""
    blocks = release.blocks
    shape = (1, task.sizes["states"], task.sizes["actions"])
    visits = 2.0 * blocks["totals"].reshape(shape)
    extra, extra_std = np.zeros(shape), np.zeros(shape)
    if "gains" in blocks:
        extra, extra_std = blocks["gains"].reshape(shape), _std(release, "gains", visits)
    first, first_std, starters = task.known.get("initial"), 0.0, float(release.users)
    if "starts" in blocks and blocks["starts"].sum() > 0.0:
        starters = float(blocks["starts"].sum())
        first = blocks["starts"] / starters
        first_std = float(np.sqrt(release.variances["starts"])) / starters
    return ReleasedTables(
        moves=blocks["transitions"].reshape(*shape, -1),
        moves_std=_std(release, "transitions", visits),
        visits=visits,
        visits_std=2.0 * _std(release, "totals", visits),
        extra=extra,
        extra_std=extra_std,
        known_reward=task.known.get("reward"),
        first=first,
        first_std=first_std,
        starters=starters,
    )


def _joint_counts(task: Task, release: Noisy, planner: JointCountsPlanner) -> ReleasedTables:
    """Rewards come centred at 1/2; who made the first move says where people start."""
    moves = release.blocks["transitions"] / planner.transition_scale
    visits = moves.sum(axis=-1)
    _, S, A, _ = moves.shape
    std = _std(release, "transitions", visits) / planner.transition_scale
    extra, extra_std = np.zeros(visits.shape), np.zeros(visits.shape)
    if "reward" in release.blocks:
        extra = release.blocks["reward"] / planner.reward_scale
        extra_std = _std(release, "reward", visits) / planner.reward_scale
    return ReleasedTables(
        moves=moves,
        moves_std=std,
        visits=visits,
        visits_std=std * S**0.5,
        extra=extra,
        extra_std=extra_std,
        known_reward=task.known.get("reward"),
        first=None if task.homogeneous else visits[0].sum(axis=-1) / release.users,
        first_std=float(std.max()) * (S * A) ** 0.5 / release.users,
        starters=float(release.users),
    )


def _std(release: Noisy, block: str, like: Array) -> Array:
    return np.broadcast_to(np.sqrt(release.variances[block]), like.shape)
