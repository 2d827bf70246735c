"""How to learn from the next batch: what to project on, how to clip, how much to excite.

All of it is computed from the belief, the declared bounds and the planner's own random draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels.excitation import directions
from tacit.kernels.public import lq_learning as learning
from tacit.planners.lq_model import LinearTask, lower_root
from tacit.planners.lq_posterior import Belief, moments_under

GAIN_MODELS, INFORMATION_MODELS, IMAGINED_USERS = 128, 32, 200
"""Models drawn to judge gains, to judge information, and imagined users to set clipping by."""

GAIN_SCALES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
AMPLITUDES = np.array(
    [0.001, 0.0014, 0.002, 0.003, 0.0045, 0.0065]
    + [0.01, 0.014, 0.02, 0.03, 0.045, 0.06, 0.08, 0.1, 0.14, 0.2]
)
BATCH_LENGTHS = 10
UNEXCITED_SHARES = ((0.5, 0.5, 0.0), (0.9, 0.1, 0.0), (0.1, 0.9, 0.0))
EXCITED_SHARES = ((0.2, 0.2, 0.6), (0.4, 0.1, 0.5), (0.1, 0.4, 0.5), (0.1, 0.1, 0.8))
"""Shares of the squared clipping norm that responses, cross moments and excited responses get, to
choose from. Not measured: other lists, here and above."""
RESIDUAL_SHARE = 0.05
"""Share taken from these for the residuals' second moment, where it is collected. Not measured:
others."""


class ControlTuning(NamedTuple):
    """Constants of the learner.

    Caution and budget were chosen on random systems (``random-lq``, seeds 100 to 107 and 200 to
    299), the others partly on named ones (proofs/lq.md says which, and what stood beside them). No
    script of it is kept; ``benchmarks/control.py harm`` measures them on seeds 100 to 149.

    Attributes:
        caution: standard deviations of predicted harm that gains must make up for.
        budget: largest share of what doing nothing costs the users met that exciting them may cost.
        quantile: of imagined users who are not clipped.
        widening: factor on the belief's spread when users are imagined for clipping.
        growth: longest excited batch, in multiples of the users already served.
        first: users of the first batch, times mu.
    """

    caution: float = 1.0
    budget: float = 0.15
    quantile: float = 0.97
    widening: float = 2.0
    growth: float = 2.0
    first: float = 12.0


class Prospect(NamedTuple):
    """What models from the belief say about acting on some gains."""

    scale: float  # the multiple of the gains to act on
    loss: float  # expected regret per user of doing so
    idle: float  # expected regret per user of doing nothing
    price: float  # cost per user of excitation of amplitude 1
    curvature: Array  # [CURVED, D, D]
    idle_regrets: Array  # [CURVED]

    def loss_after(self, sigmas: Array) -> Array:
        """Expected regret per user once the belief has covariance sigma, for several of them.

        Quadratic in the error while it is small, and never above doing nothing.
        """
        errors = np.einsum("sij,cij->cs", self.curvature, sigmas) / self.idle_regrets
        loss: Array = (self.idle_regrets * -np.expm1(-errors)).mean(axis=1)
        return loss


def prospect(
    facts: LinearTask, belief: Belief, gains: Array, tuning: ControlTuning, rng: np.random.Generator
) -> Prospect:
    """Judge gains on models drawn from the belief: act only where it is predicted to pay."""
    normals = rng.standard_normal((GAIN_MODELS, facts.D, facts.n))
    models, lower = np.empty_like(normals), lower_root(belief.sigma)
    learning.draw_models(belief.theta, lower, normals, facts.C_A, facts.C_B, models)
    costs, optimum = np.empty((GAIN_MODELS, len(GAIN_SCALES))), np.empty(GAIN_MODELS)
    excited = np.empty(GAIN_MODELS)
    setting = facts.setting._replace(W=belief.W)
    learning.scaled_costs(models, gains, GAIN_SCALES, setting, costs, optimum, excited)
    change = costs - costs[:, :1]
    predicted = change.mean(axis=0) + tuning.caution * change.std(axis=0)
    chosen = int(predicted.argmin()) if predicted.min() < 0.0 else 0
    regret = costs - optimum[:, np.newaxis]
    curvature = np.empty((INFORMATION_MODELS, facts.D, facts.D))
    for model, out in zip(models, curvature, strict=False):
        learning.regret_curvature(model, facts.H, setting, 1e-4, out)
    return Prospect(
        scale=float(GAIN_SCALES[chosen]),
        loss=float(regret[:, chosen].mean()),
        idle=float(regret[:, 0].mean()),
        price=float(excited.mean()),
        curvature=curvature,
        idle_regrets=np.maximum(regret[:INFORMATION_MODELS, 0], 1e-12),
    )


class Design(NamedTuple):
    """Public projections for the next batch, and how its users' responses are spread."""

    mean: Array  # expected z_h [H, D]
    whitener: Array  # [n, n]
    instruments: Array  # [H, n]
    usual: Array  # expected sum_h e e^T of a user [n, n]
    spread: Array  # sum_h Cov(x_h) [I, K^T] [n, D]
    misfit: float
    noise: float  # mean variance of a residual's entry
    sizes: Array  # norms of the blocks of imagined users, by amplitude (0 first) [1 + a, USERS, 4]
    quantile: float

    def weights(self, amplitude: int, shares: tuple[float, float, float], residual: bool) -> Array:
        """Block weights of those shares that leave the quantile of imagined users unclipped."""
        sizes = self.sizes[amplitude]
        kept = 1.0 - RESIDUAL_SHARE if residual else 1.0
        parts = np.array([*(kept * share for share in shares), RESIDUAL_SHARE if residual else 0.0])
        each = np.quantile(sizes, self.quantile, axis=0)
        weights: Array = np.sqrt(parts) / np.maximum(each, 1e-12)
        together = np.sqrt(((weights * sizes) ** 2).sum(axis=1))
        return weights / float(np.quantile(together, self.quantile))


def design(
    facts: LinearTask, belief: Belief, gains: Array, tuning: ControlTuning, rng: np.random.Generator
) -> Design:
    """Instruments along the expected path, and clipping from imagined users.

    The expected path's principal directions in time, made orthonormal, are the best public
    instruments for A; where they fade away, single early steps take their place.
    """
    mean, spread = moments_under(facts, belief.theta, belief.W, gains)
    path = mean[:, : facts.n]
    _, sizes, axes = np.linalg.svd(path, full_matrices=False)
    along = path @ axes.T + 0.1 * max(float(sizes[0]), 1e-6) * np.eye(facts.H, facts.n)
    instruments = np.linalg.qr(along)[0]
    values, vectors = np.linalg.eigh(spread[:, : facts.n])
    least = 0.1 * max(float(values[-1]), 1e-12)
    whitener = (vectors / np.sqrt(np.maximum(values, least))) @ vectors.T
    misfit = float(np.trace(belief.sigma[: facts.n, : facts.n] @ spread[:, : facts.n])) / facts.H
    projection = learning.Projection(belief.theta, path, whitener, instruments)
    usual, norms = _imagine(facts, belief, gains, projection, tuning, rng)
    return Design(
        mean=mean,
        whitener=whitener,
        instruments=instruments,
        usual=usual,
        spread=spread,
        misfit=misfit,
        noise=float(np.trace(belief.W)) / facts.n + misfit,
        sizes=norms,
        quantile=tuning.quantile,
    )


def _norm(blocks: Array) -> Array:
    size: Array = np.sqrt((blocks**2).sum(axis=(1, 2)))
    return size


def _imagine(
    facts: LinearTask,
    belief: Belief,
    gains: Array,
    projection: learning.Projection,
    tuning: ControlTuning,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Expected residuals [n, n], and norms of the four unweighted blocks at every amplitude."""
    H, n, d = facts.H, facts.n, facts.d
    normals = rng.standard_normal((IMAGINED_USERS, facts.D, n))
    models = np.empty_like(normals)
    lower = tuning.widening * lower_root(belief.sigma)
    learning.draw_models(belief.theta, lower, normals, facts.C_A, facts.C_B, models)
    q, key = np.empty((IMAGINED_USERS, H, d)), int(rng.integers(2**62))
    for user in range(IMAGINED_USERS):
        directions(key, user, q[user])
    factor = lower_root(belief.W * (n + 2))
    shapes = (n, n), (n, n), (d, n), (d, d), (n, n)
    blocks = learning.ResponseBlocks(*(np.zeros((IMAGINED_USERS, *shape)) for shape in shapes))
    luck = rng.standard_normal((IMAGINED_USERS, H, n + 2))
    learning.model_responses(models, projection, gains, facts.starts, factor, q, luck, blocks)
    wrong = models[:, n:] - belief.theta[n:]  # what excitation adds is by errors of the B part
    pushed = np.einsum("hk,shd->skd", projection.instruments, q) @ wrong
    stirred, usual = blocks.squares @ wrong, blocks.residual.mean(axis=0)
    cross, off = _norm(blocks.cross), _norm(blocks.residual - usual)
    norms = [
        (_norm(blocks.response + a * pushed), cross, _norm(blocks.excited + a * stirred), off)
        for a in (0.0, *AMPLITUDES)
    ]
    return usual, np.array([np.stack(table, axis=1) for table in norms])
