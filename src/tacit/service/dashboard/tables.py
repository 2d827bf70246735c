"""What a release says about a tabular model: noisy moves, visits and rewards, and their noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.planners import JointCountsPlanner
from tacit.planners.base import Planner
from tacit.task import Task


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
