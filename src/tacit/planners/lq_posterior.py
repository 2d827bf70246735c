"""What released responses say about a linear system: a Gaussian posterior, on the billboard.

What a batch is expected to release is a public function of the model
(``kernels.public.lq_learning.misfits``). The model that fits all batches best is found by damped
Gauss-Newton steps, with the noise covariance estimated anew after each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.kernels.excitation import direction_sums
from tacit.kernels.public.lq_learning import (
    Served,
    Start,
    expected_moments,
    misfit_slopes,
    misfits,
)
from tacit.planners.lq_model import LinearTask, inverted, within_unit
from tacit.policies.linear import LinearPolicy
from tacit.publication import Publication
from tacit.release import Release

FIT_STEPS = 20
"""Damped steps towards the best fit, kept or not. Not measured: other numbers."""


class Belief(NamedTuple):
    """Columns of Theta are N(theta, sigma) [D, n], [D, D]; noise has covariance W."""

    theta: Array
    sigma: Array
    W: Array


def prior(facts: LinearTask) -> Belief:
    """Mean zero; A and B as large as the declared bounds and |Theta|_F <= 1 allow."""
    widest = 1.0 / (facts.n * facts.D + 2)
    A = min(widest, facts.C_A**2 / (facts.n + 2))
    B = min(widest, facts.C_B**2 / (facts.n + 2))
    sigma = np.diag([A] * facts.n + [B] * facts.d)
    return Belief(np.zeros((facts.D, facts.n)), sigma, facts.W)


def start_law(facts: LinearTask) -> Start:
    """Mean and covariance of the first state."""
    mean = facts.starts.mean(axis=0)
    return Start(mean, facts.X1 - np.outer(mean, mean))


def moments_under(facts: LinearTask, theta: Array, W: Array, gains: Array) -> tuple[Array, Array]:
    """Expected z_h [H, D] and sum_h Cov(x_h) [I, K_h^T] [n, D] without excitation."""
    mean, spread = np.empty((facts.H, facts.D)), np.empty((facts.n, facts.D))
    pushes = np.zeros((facts.H, facts.d))
    # Copies can be written to, as elsewhere: kernels are compiled for one kind of array only.
    model, acting, noise = theta.copy(), gains.copy(), W.copy()
    expected_moments(model, acting, pushes, 0.0, start_law(facts), noise, mean, spread)
    return mean, spread


def served_so_far(facts: LinearTask, release: Release, previous: Publication, first: int) -> Served:
    """The log of the previous publication with the batch that has just been released.

    Args:
        facts: the task.
        release: the batch's noisy sums.
        previous: what its users acted on.
        first: number of the batch's first user.
    """
    policy, context = previous.policy, previous.context
    assert isinstance(policy, LinearPolicy)
    pushes, squares = np.zeros((facts.H, facts.d)), np.zeros((facts.d, facts.d))
    if policy.amplitude > 0.0:
        direction_sums(policy.key, first, release.users, pushes, squares)
    weights = context["weights"]
    blocks = release.blocks
    new = Served(
        users=np.array(float(release.users)),
        gains=policy.gains,
        amplitude=np.array(policy.amplitude),
        pushes=pushes,
        squares=squares,
        reference=context["reference"],
        path=context["path"],
        whitener=context["whitener"],
        instruments=context["instruments"],
        weights=weights,
        misfit=context["misfit"],
        response=blocks["response"] / weights[0],
        cross=blocks["cross"] / weights[1],
        excited=blocks["excited"] / weights[2] if weights[2] else np.zeros((facts.d, facts.n)),
        residual=_residual(facts, blocks, context, release.users),
    )
    if LOG + "users" not in context:
        return Served(*(item[np.newaxis].copy() for item in new))
    old = (context[LOG + name] for name in Served._fields)
    return Served(*(np.concatenate([a, b[np.newaxis]]) for a, b in zip(old, new, strict=True)))


def _residual(
    facts: LinearTask,
    blocks: Mapping[str, npt.NDArray[Any]],
    context: Mapping[str, npt.NDArray[Any]],
    users: int,
) -> Array:
    """sum e e^T over the batch, unpacked; empty where it was not collected."""
    if "residual" not in blocks:
        return np.zeros((0, 0))
    total = np.zeros((facts.n, facts.n))
    rows, columns = np.triu_indices(facts.n)
    isometric = np.where(rows == columns, 1.0, 2.0**0.5)
    values = blocks["residual"] / (context["weights"][3] * isometric)
    total[rows, columns] = total[columns, rows] = values
    whole: Array = total + users * context["usual"]
    return whole


LOG = "served "


def as_context(served: Served | None) -> dict[str, npt.NDArray[Any]]:
    """The log as entries of a context."""
    if served is None:
        return {}
    return {LOG + name: value for name, value in zip(Served._fields, served, strict=True)}


def posterior(facts: LinearTask, served: Served, before: Belief, noise_std: float) -> Belief:
    """What all batches together say, starting the rounds at the belief before.

    Where the releases lie further from the best fit than their variances allow (users were clipped,
    or a reference was far off), the covariance grows with them.
    """
    start, info = start_law(facts), np.repeat(1.0 / np.diag(prior(facts).sigma), facts.n)
    theta, W, damping = before.theta.copy(), before.W.copy(), 1e-3
    shape = (len(served.users), facts.n + facts.D, facts.n)
    slopes = np.empty((facts.D, facts.n, *shape))

    def released(model: Array) -> Array:
        out = np.empty(shape)
        misfits(model, served, start, W, noise_std, out)
        return out.ravel()

    for _ in range(FIT_STEPS):
        off = released(theta)
        misfit_slopes(theta, served, start, W, noise_std, 1e-5, slopes)
        J = slopes.reshape(theta.size, -1)
        normal = J @ J.T + np.diag(info)
        step = np.linalg.solve(
            normal + damping * np.diag(np.diag(normal)), J @ off + info * theta.ravel()
        )
        moved = within_unit(theta - step.reshape(theta.shape))
        new = released(moved)
        if new @ new + info @ moved.ravel() ** 2 < off @ off + info @ theta.ravel() ** 2:
            theta, damping = moved, damping / 10.0
        else:
            damping *= 10.0
        W = noise_covariance(facts, served, theta, W, noise_std)
    each = np.einsum("ikjk->ij", inverted(normal).reshape(facts.D, facts.n, facts.D, facts.n))
    off = released(theta)
    excess = max(1.0, float(off @ off) / off.size)
    return Belief(theta, excess * each / facts.n, W)


def noise_covariance(
    facts: LinearTask, served: Served, theta: Array, W: Array, noise_std: float
) -> Array:
    """W from the released second moments of residuals, where its law was not revealed.

    A batch's mean residual moment is W plus what its reference was wrong by. Batches are weighted
    by precision, with the declared ball as a prior worth one episode; eigenvalues stay between a
    hundredth of the declared ones and what the declared radius allows.
    """
    if served.residual.shape[1] == 0:
        return facts.W.copy()
    declared = float(np.trace(facts.W)) / facts.n
    weight = facts.H / (2.0 * declared**2)
    total = weight * facts.W
    for b, users in enumerate(served.users):
        steps = users * facts.H
        mean, spread = moments_under(facts, theta, W, served.gains[b])
        second = mean.T @ mean / facts.H
        second[: facts.n] += spread / facts.H
        off = theta - served.reference[b]
        wrong = off.T @ ((second + second.T) / 2.0) @ off
        size = declared + float(np.trace(wrong)) / facts.n
        variance = (noise_std / (served.weights[b, 3] * steps)) ** 2 + 2.0 * size**2 / steps
        total += (served.residual[b] / steps - wrong) / variance
        weight += 1.0 / variance
    values, vectors = np.linalg.eigh(total / weight)
    values = np.clip(values, 0.01 * declared, facts.C_w**2)
    estimate: Array = (vectors * values) @ vectors.T
    return estimate
