"""What is public about a linear mixture: features, bounds and value caps, read from the task.

A linear mixture has P_h(s'|s,a) = <phi(s'|s,a), theta_h> with known phi. Every tabular problem is
one, with one-hot features of (s, a, s'): nothing has to be revealed for that. Rewards are known,
or linear in known features, or (again) a table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.errors import InvalidInput
from tacit.task.task import Task, table_sizes

FeatureKind = Literal["one-hot", "box", "generic"]

Norm = Literal["assumption", "remark"]
"""Bound on |phi_V| in docs/papers/mixture_jdp.md#norm: sqrt(d1) H, or H."""


@dataclass(frozen=True, eq=False)
class TransitionFeatures:
    """phi as the kernels read it: a vector of ``width`` numbers inside one of ``blocks`` blocks.

    Features of different blocks do not overlap, so their Gram matrix is block-diagonal.

    Attributes:
        phi: phi(s'|s,a) within its block [SA, S, width].
        block: the block of every pair (s, a) [SA].
        blocks: number of blocks.
        geometry: "one-hot" if features of different pairs are orthogonal for every value function,
            "box" if they are non-negative base kernels (sum over s' at most 1), else "generic".
        theta_norm: declared bound on |theta_h|.
        reach: max |phi_V(s,a)| over all V with entries in [-1, 1], an upper bound.
    """

    phi: Array
    block: IntArray
    blocks: int
    geometry: FeatureKind
    theta_norm: float
    reach: float

    @property
    def width(self) -> int:
        """Numbers in a block."""
        return int(self.phi.shape[2])

    @property
    def dimension(self) -> int:
        """d, over all blocks."""
        return self.blocks * self.width


@dataclass(frozen=True, eq=False)
class RewardFeatures:
    """varphi likewise: mean reward = offset + <varphi(s,a), theta_r>.

    Attributes:
        varphi: features [SA, width].
        block: the block of every pair [SA].
        blocks: number of blocks.
        offset: public constant part.
        theta_norm: declared bound on |theta_r|.
    """

    varphi: Array
    block: IntArray
    blocks: int
    offset: float
    theta_norm: float

    @property
    def width(self) -> int:
        """Numbers in a block."""
        return int(self.varphi.shape[1])

    @property
    def dimension(self) -> int:
        """d2, over all blocks."""
        return self.blocks * self.width

    @cached_property
    def norm(self) -> float:
        """Largest |varphi(s,a)|."""
        return float(np.sqrt((self.varphi**2).sum(axis=1)).max())

    @property
    def span(self) -> float:
        """Largest |r - offset| of a reward in [0, 1]."""
        return max(self.offset, 1.0 - self.offset)


def transition_features(task: Task, *, whole: bool) -> TransitionFeatures:
    """Features of the task; one-hot where it reveals none.

    Args:
        task: the public task.
        whole: treat one-hot features like any other, as one block of S^2 A numbers.
    """
    _, S, A = table_sizes(task)
    if "features" in task.known:
        return _given_features(task, S, A)
    SA = S * A
    if not whole:
        phi = np.broadcast_to(np.eye(S), (SA, S, S))
        block = np.arange(SA)
    else:
        if (S * S * A) ** 2 > 10_000_000:
            raise InvalidInput(
                f"one-hot features of {S} states and {A} actions have {S * S * A} dimensions, too "
                "many for a full Gram matrix: use statistic = block or index"
            )
        phi = np.eye(SA * S).reshape(SA, S, SA * S)
        block = np.zeros(SA, dtype=np.int64)
    return TransitionFeatures(
        phi=frozen(phi),
        block=frozen(block.astype(np.int64)),
        blocks=1 if whole else SA,
        geometry="one-hot",
        theta_norm=math.sqrt(SA),
        reach=math.sqrt(S),
    )


def _given_features(task: Task, S: int, A: int) -> TransitionFeatures:
    phi = task.known["features"]
    if phi.ndim != 4:
        raise InvalidInput(
            "this agent learns linear mixtures, with features of transitions, but the problem "
            "declares features of a state and an action (a linear MDP); choose an agent for linear "
            "MDPs, such as tacit-linear"
        )
    phi = phi.reshape(S * A, S, -1)
    absolute = np.abs(phi).sum(axis=1)
    box = bool((phi >= 0).all() and (absolute <= 1 + 1e-9).all())
    return TransitionFeatures(
        phi=phi,
        block=frozen(np.zeros(S * A, dtype=np.int64)),
        blocks=1,
        geometry="box" if box else "generic",
        theta_norm=float(task.known["theta_norm"]),
        reach=float(np.sqrt((absolute**2).sum(axis=1)).max()),
    )


def reward_features(task: Task, *, whole: bool) -> RewardFeatures:
    """Reward features of the task; a table where it reveals none."""
    _, S, A = table_sizes(task)
    SA = S * A
    if "reward_features" in task.known:
        return RewardFeatures(
            varphi=task.known["reward_features"].reshape(SA, -1),
            block=frozen(np.zeros(SA, dtype=np.int64)),
            blocks=1,
            offset=float(task.known["reward_offset"]),
            theta_norm=float(task.known["reward_theta_norm"]),
        )
    return RewardFeatures(
        varphi=frozen(np.eye(SA) if whole else np.ones((SA, 1))),
        block=frozen(np.zeros(SA, dtype=np.int64) if whole else np.arange(SA, dtype=np.int64)),
        blocks=1 if whole else SA,
        offset=0.0,
        theta_norm=math.sqrt(SA),
    )


def value_caps(task: Task) -> Array:
    """Largest possible V_h, h = 1..H+1: the sum of the largest rewards still to come.

    H - h + 1 where rewards are unknown in [0, 1]; known rewards give the sharper public bound
    (rewards divided by H: (H - h + 1) / H).
    """
    H = task.horizon
    largest = np.ones(H)
    if "reward" in task.known:
        best = task.known["reward"].reshape(len(task.known["reward"]), -1).max(axis=1)
        largest = np.broadcast_to(best, (H,))
    caps = np.zeros(H + 1)
    caps[:H] = np.cumsum(largest[::-1])[::-1]
    return frozen(caps)


def known_rewards(task: Task) -> Array:
    """Mean rewards [H, S, A] where the task reveals them, else an empty array."""
    H, S, A = table_sizes(task)
    if "reward" not in task.known:
        return frozen(np.zeros((0, S, A)))
    return frozen(np.broadcast_to(task.known["reward"], (H, S, A)))


@dataclass(frozen=True, eq=False)
class Geometry:
    """The public geometry of V-free regression: all next states are targets at once.

    See docs/papers/mixture_jdp.md#b1. With p_x = phi(x|s,a) the mean of p_{s'} is M(s,a) theta,
    M(s,a) = sum_x p_x p_x^T. Where all base kernels have rows that sum to one, the entries of theta
    do too: theta = origin + U vartheta with U an orthonormal basis of the vectors that sum to zero,
    one dimension less. Rewards are regressed around 1/2 where the features can express a constant.

    Attributes:
        phi: features in reduced coordinates [SA, S, d].
        full: features as given [SA, S, d0].
        origin: the point of the weights that the reduced coordinates are measured from [d0].
        moments: U^T M(s,a) U [SA, d, d].
        shifts: U^T (p_x - M(s,a) origin) [SA, S, d].
        varphi: reward features [SA, d2].
        offset: rewards are regressed around it.
        simplex: weights are declared a probability vector.
        theta_norm: bound on |vartheta|.
        reward_norm: bound on the norm of the reward parameter, as regressed.
        rewards: whether rewards have to be learned.
    """

    phi: Array
    full: Array
    origin: Array
    moments: Array
    shifts: Array
    varphi: Array
    offset: float
    simplex: bool
    theta_norm: float
    reward_norm: float
    rewards: bool


def geometry(task: Task) -> Geometry:
    """The geometry of a task that reveals features."""
    p = transition_features(task, whole=True)
    d0 = p.width
    summing = bool(np.abs(p.phi.sum(axis=1) - 1.0).max() < 1e-9) and d0 > 1
    U = _zero_sum_basis(d0) if summing else np.eye(d0)
    origin = np.full(d0, 1.0 / d0) if summing else np.zeros(d0)
    M = np.einsum("kxi,kxj->kij", p.phi, p.phi)
    varphi, offset, reward_norm = _rewards(task)
    simplex = "simplex" in task.known
    far = float(np.sqrt(1.0 - 1.0 / d0)) if simplex and summing else p.theta_norm
    return Geometry(
        phi=p.phi @ U,
        full=p.phi,
        origin=origin,
        moments=np.einsum("ia,kij,jb->kab", U, M, U),
        shifts=(p.phi - (M @ origin)[:, None, :]) @ U,
        varphi=varphi,
        offset=offset,
        simplex=simplex,
        theta_norm=far,
        reward_norm=reward_norm,
        rewards="reward" not in task.known,
    )


def _zero_sum_basis(d: int) -> Array:
    """Orthonormal columns that span the vectors whose entries sum to zero [d, d-1]."""
    columns = np.zeros((d, d - 1))
    for j in range(1, d):
        columns[:j, j - 1] = 1.0
        columns[j, j - 1] = -j
        columns[:, j - 1] /= np.sqrt(j * (j + 1.0))
    return columns


def _rewards(task: Task) -> tuple[Array, float, float]:
    """Features, offset and norm bound; offset 1/2 where <varphi, u> = 1 has a solution u."""
    r = reward_features(task, whole=True)
    u = np.linalg.lstsq(r.varphi, np.ones(len(r.varphi)), rcond=None)[0]
    if np.abs(r.varphi @ u - 1.0).max() > 1e-9:
        return r.varphi, r.offset, r.theta_norm
    return r.varphi, 0.5, r.theta_norm + abs(r.offset - 0.5) * float(np.linalg.norm(u))
