"""How good a published policy is, as far as the release and the law of its noise can tell.

The policy is evaluated in many models that the release allows: each draw adds the released noise
once more to the counts, projects counts of moves to what they can be, and draws a model given those
counts. Rewards and start shares enter the value linearly and stay as they are: negative ones keep
it unbiased. The band runs from the 1% to the 99% quantile of these values, and
over the same interval mirrored at the value of the model the release itself gives: noise that is
projected away shifts a value, drawn noise shifts it again, and mirroring takes that shift back.

Pairs (s, a) that noise hides (their visits are within two standard deviations of zero) count as
the worst possible for the low end, and as the best possible for the high end.

What is promised: the band holds the true value of the policy in at least nine of ten releases. That
is checked by simulation (tests/service/dashboard), not proved. Nothing but the release, its law and
the policy is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.planners.base import Planner
from tacit.planners.tacit_joint import JointCountsPlanner
from tacit.policy import Policy, StochasticPolicy, TabularPolicy
from tacit.publication import Publication
from tacit.task import Task

COVERAGE = 0.9
"""Share of releases whose band holds the true value, at least."""

DRAWS = 200
TAIL = 0.01
"""Quantiles are taken at TAIL and 1 - TAIL: further out than COVERAGE asks for, because a policy is
chosen where the noise happens to look good."""

HIDDEN = 2.0
"""Visits within so many standard deviations of zero say nothing."""

ROOM = 2_000_000
"""Most numbers drawn at once."""

Kind = Literal["start", "even", "optimistic", "none"]


@dataclass(frozen=True)
class Estimate:
    """An estimate of the value of a policy, in summed rewards of [0, 1] over an episode.

    Attributes:
        kind: "start": over the start law the release tells; "even": over all start states alike,
            because it does not; "optimistic": the planner's own optimistic value (no band); "none".
        low: lower end of the band.
        middle: value in the model the release itself gives.
        high: upper end.
        states: low, middle and high by start state, where there is a band.
    """

    kind: Kind
    low: float = 0.0
    middle: float = 0.0
    high: float = 0.0
    states: tuple[tuple[float, float, float], ...] = ()


class _Models(NamedTuple):
    """Draws of a model, which of its rows are hidden by noise, and start laws."""

    P: Array  # [B, G, S, A, S]
    R: Array  # [B, G', S, A]
    move_seen: npt.NDArray[np.bool_]  # [B, G, S, A]
    reward_seen: npt.NDArray[np.bool_]  # [B, G', S, A]
    start: Array  # [B, S]


def estimate(
    task: Task, planner: Planner, release: Noisy, publication: Publication, seed: int
) -> Estimate:
    """The value of a publication's policy, from the release it was planned from."""
    found = tables(task, release, planner)
    chances = _chances(publication.policy, task.sizes["actions"])
    if found is None or chances is None or found.moves.size > ROOM:
        return _optimistic(task, release, publication)
    rng = np.random.default_rng(seed)
    lows, highs = [], []
    per_round = max(1, min(DRAWS, ROOM // found.moves.size))
    for done in range(0, DRAWS, per_round):
        models = _draw(found, min(per_round, DRAWS - done), rng)
        lows.append(_values(models, chances, 0.0))
        highs.append(_values(models, chances, 1.0))
    plain = _plain(found)
    plain_low, plain_high = _values(plain, chances, 0.0)[0], _values(plain, chances, 1.0)[0]
    low, high = _band(np.concatenate(lows), np.concatenate(highs), plain_low, plain_high)
    low, high = np.maximum(low, 0.0), np.minimum(high, float(task.horizon))
    middle = np.clip(0.5 * (plain_low + plain_high), low, high)
    ends = [(float(a), float(b), float(c)) for a, b, c in zip(low, middle, high, strict=True)]
    kind: Kind = "even" if found.first is None else "start"
    return Estimate(kind, *ends[0], states=tuple(ends[1:]))


def _optimistic(task: Task, release: Noisy, publication: Publication) -> Estimate:
    """What optimistic planners publish: a number above the truth, with no band."""
    V = publication.context.get("V")
    if V is None or release.users == 0 or V.shape != (task.horizon + 1, task.sizes["states"]):
        return Estimate("none")
    value = float(V[0].mean())
    return Estimate("optimistic", value, value, value)


def _band(lows: Array, highs: Array, plain_low: Array, plain_high: Array) -> tuple[Array, Array]:
    """Quantiles, and the same mirrored at the plain value; column by column."""
    low = np.quantile(lows, TAIL, axis=0)
    high = np.quantile(highs, 1 - TAIL, axis=0)
    mirrored_low = 2 * plain_low - np.quantile(lows, 1 - TAIL, axis=0)
    mirrored_high = 2 * plain_high - np.quantile(highs, TAIL, axis=0)
    return np.minimum(low, mirrored_low), np.maximum(high, mirrored_high)


def _chances(policy: Policy, actions: int) -> Array | None:
    """Action probabilities [H, S, A]."""
    if isinstance(policy, TabularPolicy):
        return np.eye(actions)[policy.actions]
    return policy.probabilities if isinstance(policy, StochasticPolicy) else None


def _draw(t: Tables, draws: int, rng: np.random.Generator) -> _Models:
    """Models that the release and its noise allow."""
    S = t.moves.shape[-1]
    moves = t.moves + t.moves_std[..., None] * rng.standard_normal((draws, *t.moves.shape))
    total, seen = _totals(moves.sum(axis=-1), t.moves_std * S**0.5)
    P = _dirichlet(project(moves, total) + 1.0 / S, rng)
    visits, paid_for = _totals(
        t.visits + t.visits_std * _normals(t.visits, draws, rng), t.visits_std
    )
    extra = t.extra + t.extra_std * _normals(t.extra, draws, rng)
    R = _sampled(t.base + extra / visits, visits, rng)
    first = np.full((draws, S), 1.0 / S)
    if t.first is not None:
        first = t.first + t.first_std * _normals(t.first, draws, rng)
        first = _whole(_sampled(first, np.asarray(t.starters), rng))
    return _with_known(t, _Models(P, R, seen, paid_for, first))


def _plain(t: Tables) -> _Models:
    """The one model that the released numbers themselves give."""
    S = t.moves.shape[-1]
    total, seen = _totals(t.moves.sum(axis=-1)[None], t.moves_std * S**0.5)
    visits, paid_for = _totals(t.visits[None], t.visits_std)
    R = t.base + t.extra / visits
    first = np.full((1, S), 1.0 / S) if t.first is None else _whole(t.first[None])
    P = project(t.moves[None], total) / total[..., None]
    return _with_known(t, _Models(P, R, seen, paid_for, first))


def _with_known(t: Tables, models: _Models) -> _Models:
    if t.known_reward is None:
        return models
    R = np.broadcast_to(t.known_reward, models.R.shape)
    return models._replace(R=R, reward_seen=np.ones_like(models.reward_seen))


def _whole(share: Array) -> Array:
    """Shares that add up to 1, moved by the same amount each."""
    return np.asarray(share + (1.0 - share.sum(axis=-1, keepdims=True)) / share.shape[-1])


def _sampled(share: Array, visits: Array, rng: np.random.Generator) -> Array:
    """A share as another sample of so many visits would have shown it."""
    p = np.clip(share, 0.0, 1.0)
    return share + np.sqrt(p * (1.0 - p) / visits) * rng.standard_normal(share.shape)


def _normals(like: Array, draws: int, rng: np.random.Generator) -> Array:
    return rng.standard_normal((draws, *like.shape))


def _totals(total: Array, std: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Totals that noise does not hide, 1 in place of the others; and which those are."""
    seen = total > np.maximum(HIDDEN * std, 1e-9)
    return np.where(seen, total, 1.0), seen


def project(y: Array, total: Array) -> Array:
    """The nearest point with entries >= 0 that add up to ``total``, along the last axis."""
    falling = -np.sort(-y, axis=-1)
    over = np.cumsum(falling, axis=-1) - total[..., None]
    kept = np.maximum((falling * np.arange(1, y.shape[-1] + 1) > over).sum(axis=-1), 1)[..., None]
    shift = np.take_along_axis(over, kept - 1, axis=-1) / kept
    return np.asarray(np.maximum(y - shift, 0.0))


def _dirichlet(alpha: Array, rng: np.random.Generator) -> Array:
    """Draws of Dirichlet(alpha) along the last axis, by logarithms: alpha may be small."""
    logs = np.log(rng.standard_gamma(alpha + 1.0)) - rng.standard_exponential(alpha.shape) / alpha
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _values(models: _Models, chances: Array, unseen: float) -> Array:
    """Exact values [B, 1 + S]: over the start law, and from every state.

    A hidden reward counts as ``unseen``, and so does every step after a hidden move.
    """
    H, S, _ = chances.shape
    V = np.zeros((len(models.P), S))
    for h in range(H - 1, -1, -1):
        g = h if models.P.shape[1] > 1 else 0
        r = h if models.R.shape[1] > 1 else 0
        Q = np.where(models.reward_seen[:, r], models.R[:, r], unseen)
        if h < H - 1:
            onward = np.einsum("bsan,bn->bsa", models.P[:, g], V, optimize=True)
            Q = Q + np.where(models.move_seen[:, g], onward, unseen * (H - 1 - h))
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


class Tables(NamedTuple):
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
    base: float
    known_reward: Array | None  # [G', S, A], where nothing has to be learned
    first: Array | None  # [S]
    first_std: float
    starters: float


def tables(task: Task, release: Noisy, planner: Planner) -> Tables | None:
    """The release as tables; None where nobody is in it, or it holds regressions."""
    if release.users == 0:
        return None
    if "moves" in release.blocks:
        return _one_cell(release)
    if "visits" in release.blocks:
        return _visit_counts(task, release)
    if isinstance(planner, JointCountsPlanner):
        return _joint_counts(task, release, planner)
    return None


def _one_cell(release: Noisy) -> Tables:
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
    return Tables(
        moves=blocks["moves"] / unit[..., None],
        moves_std=_std(release, "moves", unit) / unit,
        visits=none + one,
        visits_std=std * 2**0.5,
        extra=0.5 * (one - none),
        extra_std=std * 0.5**0.5,
        base=0.5,
        known_reward=None,
        first=blocks["first"] / starters if starters > 0 else None,
        first_std=float(np.sqrt(release.variances["first"])) / max(starters, 1.0),
        starters=starters,
    )


def _visit_counts(task: Task, release: Noisy) -> Tables:
    """Stages are pooled, so nothing is said about the first one."""
    blocks = release.blocks
    visits = blocks["visits"]
    return Tables(
        moves=blocks["transitions"],
        moves_std=_std(release, "transitions", visits),
        visits=visits,
        visits_std=_std(release, "visits", visits),
        extra=blocks["reward"],
        extra_std=_std(release, "reward", visits),
        base=0.0,
        known_reward=task.known.get("reward"),
        first=None,
        first_std=0.0,
        starters=0.0,
    )


def _joint_counts(task: Task, release: Noisy, planner: JointCountsPlanner) -> Tables:
    """Rewards come centred at 1/2; who made the first move says where people start."""
    moves = release.blocks["transitions"] / planner.transition_scale
    visits = moves.sum(axis=-1)
    _, S, A, _ = moves.shape
    std = _std(release, "transitions", visits) / planner.transition_scale
    extra, extra_std = np.zeros(visits.shape), np.zeros(visits.shape)
    if "reward" in release.blocks:
        extra = release.blocks["reward"] / planner.reward_scale
        extra_std = _std(release, "reward", visits) / planner.reward_scale
    return Tables(
        moves=moves,
        moves_std=std,
        visits=visits,
        visits_std=std * S**0.5,
        extra=extra,
        extra_std=extra_std,
        base=0.5,
        known_reward=task.known.get("reward"),
        first=None if task.homogeneous else visits[0].sum(axis=-1) / release.users,
        first_std=float(std.max()) * (S * A) ** 0.5 / release.users,
        starters=float(release.users),
    )


def _std(release: Noisy, block: str, like: Array) -> Array:
    return np.broadcast_to(np.sqrt(release.variances[block]), like.shape)
