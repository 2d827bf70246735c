"""The public facts of a linear task, and steps that its planners share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from tacit.arrays import Array
from tacit.kernels.public import lq
from tacit.planners.base import Context, ReleasePlanner, Streams
from tacit.policies.base import Policy
from tacit.policies.linear import LinearPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task.task import Task


class LinearTask(NamedTuple):
    """What a task of the family "lq" makes public, by the letters of docs/papers/lq_jdp.md."""

    H: int
    n: int
    d: int
    Q: Array
    R: Array
    W: Array  # noise covariance; what the declared radius allows, where it is not revealed
    C_A: float
    C_B: float
    C_w: float
    gain: float  # gamma
    starts: Array  # equally likely first states [m, n]
    X1: Array  # their second moment

    @property
    def D(self) -> int:
        """n + d."""
        return self.n + self.d

    @property
    def setting(self) -> lq.ControlCosts:
        """Costs, noise and start, as kernels read them."""
        return lq.ControlCosts(self.Q, self.R, self.W, self.X1)


def linear_task(task: Task) -> LinearTask:
    """Read the facts; without a revealed noise law, noise is uniform in the declared ball."""
    known, n = task.known, task.sizes["states"]
    C_A, C_B, C_w, gain = (float(bound) for bound in known["bounds"])
    factor = known.get("noise", C_w * np.eye(n))
    starts = known["start"]
    return LinearTask(
        H=task.horizon,
        n=n,
        d=task.sizes["inputs"],
        Q=known["state_cost"],
        R=known["input_cost"],
        W=factor @ factor.T / (n + 2),
        C_A=C_A,
        C_B=C_B,
        C_w=C_w,
        gain=gain,
        starts=starts,
        X1=starts.T @ starts / len(starts),
    )


@dataclass(frozen=True, kw_only=True)
class MomentsPlanner(ReleasePlanner):
    """Planners of linear systems that read a release of ``ControlMoments``.

    Attributes:
        weight: factor with which N was released.
        off_diagonal: factor with which entries off the diagonal of M were released.
    """

    weight: float = 1.0
    off_diagonal: float = 2.0**0.5

    def policy(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Policy, Context]:
        """A policy from the released M [D, D] and N [D, n]."""
        facts = linear_task(task)
        M = np.zeros((facts.D, facts.D))
        rows, columns = np.triu_indices(facts.D)
        scale = np.where(rows == columns, 1.0, self.off_diagonal)
        M[rows, columns] = M[columns, rows] = release.blocks["moment"] / scale
        moments = Moments(release.users, M, release.blocks["target"] / self.weight)
        return self._policy(facts, moments, previous, streams.posterior)

    @abstractmethod
    def _policy(
        self, facts: LinearTask, moments: Moments, previous: Publication | None, rng: Generator
    ) -> tuple[LinearPolicy, Context]:
        """The policy, and what is published beside it."""


class Moments(NamedTuple):
    """Released sums of that many users: M = sum z z^T and N = sum z x'^T."""

    users: int
    M: Array
    N: Array


def inverted(matrices: Array) -> Array:
    """Inverse of one matrix or of several."""
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def lower_root(matrix: Array) -> Array:
    """Cholesky factor."""
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def within_unit(theta: Array) -> Array:
    """Theta scaled to Frobenius norm at most 1."""
    scaled: Array = theta / max(1.0, float(np.linalg.norm(theta)))
    return scaled


def certainty_gains(
    facts: LinearTask, theta: Array, limit: float, sigma: Array | None = None
) -> Array:
    """Optimal gains of a model, capped; of the expected cost, where it has covariance sigma."""
    gains = np.empty((facts.H, facts.d, facts.n))
    P = np.empty((facts.H + 1, facts.n, facts.n))
    spread = np.zeros((facts.D, facts.D)) if sigma is None else sigma
    lq.riccati(theta, spread, facts.setting, gains, P)
    lq.cap_gains(gains, limit)
    return gains
