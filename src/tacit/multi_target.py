"""The public geometry of V-free regression: all next states are targets at once.

See docs/papers/mixture_jdp.md#b1. With p_x = phi(x|s,a) the mean of p_{s'} is M(s,a) theta, M(s,a)
= sum_x p_x p_x^T. Where all base kernels have rows that sum to one, the entries of theta do too:
theta = origin + U vartheta with U an orthonormal basis of the vectors that sum to zero, one
dimension less. Rewards are regressed around 1/2 where the features can express a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.features import reward_features, transition_features
from tacit.task import Task


@dataclass(frozen=True, eq=False)
class Geometry:
    """Everything a user and the planner need, from the task alone.

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
