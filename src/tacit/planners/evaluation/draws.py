"""What values of policies share, by whichever release: draws of models, projections, quantiles."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from tacit.arrays import Array
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy


def action_chances(policy: Policy, actions: int) -> Array | None:
    """Action probabilities [H, S, A] of a policy for tables; None of another one."""
    if isinstance(policy, TabularPolicy):
        return np.eye(actions)[policy.actions]
    return policy.probabilities if isinstance(policy, StochasticPolicy) else None


def normals(like: Array, draws: int, rng: np.random.Generator) -> Array:
    """So many standard normal draws of an array of this shape."""
    return rng.standard_normal((draws, *like.shape))


def resampled(share: Array, visits: Array, rng: np.random.Generator) -> Array:
    """A share as another sample of so many visits would have shown it."""
    p = np.clip(share, 0.0, 1.0)
    return share + np.sqrt(p * (1.0 - p) / visits) * rng.standard_normal(share.shape)


def project(y: Array, total: Array) -> Array:
    """The nearest point with entries >= 0 that add up to ``total``, along the last axis."""
    falling = -np.sort(-y, axis=-1)
    over = np.cumsum(falling, axis=-1) - total[..., None]
    kept = np.maximum((falling * np.arange(1, y.shape[-1] + 1) > over).sum(axis=-1), 1)[..., None]
    shift = np.take_along_axis(over, kept - 1, axis=-1) / kept
    return np.asarray(np.maximum(y - shift, 0.0))


def dirichlet(alpha: Array, rng: np.random.Generator) -> Array:
    """Draws of Dirichlet(alpha) along the last axis, by logarithms: alpha may be small."""
    logs = np.log(rng.standard_gamma(alpha + 1.0)) - rng.standard_exponential(alpha.shape) / alpha
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def two_sided(beta: float) -> float:
    """Standard deviations on either side of a mean that are left with chance beta."""
    return -float(ndtri(beta / 2))
