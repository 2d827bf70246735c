"""Widths that change from release to release, as planner and compiled loop compute them."""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel


@kernel
def fill_tight(
    gram_std: Array,
    target_std: Array,
    root: float,
    reach: float,
    theta: float,
    ridge: float,
    shift: Array,
    fixed: Array,
    direct: Array,
) -> None:
    """Shift, A2 and W of docs/papers/mixture_jdp.md#tight-widths from the noise of every stage.

    ``root`` bounds the spectral norm of a noise matrix of unit std, ``reach`` the norm of a noise
    vector of unit std.
    """
    for h in range(shift.shape[0]):
        largest = gram_std[h] * root
        shift[h] = largest + ridge
        fixed[h] = math.sqrt(shift[h] + largest) * theta
        fixed[h] += target_std[h] * reach / math.sqrt(ridge)
        noise = target_std[h] * target_std[h] + gram_std[h] * theta * gram_std[h] * theta
        direct[h] = shift[h] * theta + math.sqrt(noise) * reach


@kernel
def paper_terms(
    users: int, sigma: float, d: int, theta: float, most: float, horizon: int, alpha: float
) -> tuple[float, float]:
    """Shift 2 Gamma + 1 and radius q1 + q2 + q3 of docs/papers/mixture_ldp.md#radius.

    There is no logarithm of 0 before the first user (docs/papers/mixture_ldp.md#e6).
    """
    gamma = math.sqrt(users) * sigma * (math.sqrt(4.0 * d) + 2.0 * math.log(6.0 * horizon / alpha))
    n = max(users, 1)
    log = math.log(24.0 * n * n * horizon / alpha)
    q1 = theta * math.sqrt(3.0 * gamma + 1.0)
    q2 = 8.0 * most * math.sqrt(d * math.log1p(n * most * most / d) * log) + 4.0 * most * log
    q3 = sigma * math.sqrt(n * d * math.log(12.0 * d * horizon / alpha)) / math.sqrt(gamma + 1.0)
    return 2.0 * gamma + 1.0, q1 + q2 + q3


@kernel
def fill_paper(
    users: int,
    sigma: float,
    d: int,
    theta: float,
    most: float,
    horizon: int,
    alpha: float,
    span: float,
    experiment: bool,
    shift: Array,
    fixed: Array,
) -> None:
    """Shift and radius of every stage; the radius of the proof, or c = 1 of the experiment's.

    The latter is d^(3/4) (H - h + 1)^(3/2) k^(1/4) for user k = users + 1
    (docs/papers/mixture_ldp.md#radius).
    """
    shift[:], radius = paper_terms(users, sigma, d, theta, most, horizon, alpha)
    for h in range(fixed.shape[0]):
        fixed[h] = span * radius
        if experiment:
            fixed[h] = d**0.75 * (horizon - h) ** 1.5 * (users + 1) ** 0.25


@kernel
def stage_noise(noise_std: float, spread: Array, factor: Array, out: Array) -> None:
    """Std of the noise in a sum of every stage, natural units, from the sum of squared weights."""
    for h in range(out.shape[0]):
        out[h] = np.sqrt(noise_std**2 * spread[h]) * factor[h]
