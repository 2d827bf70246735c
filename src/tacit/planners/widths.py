"""Widths of linear estimates, from public quantities only: the law of the noise and the task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from tacit.arrays import Array
from tacit.kernels.public.mixture import Widths
from tacit.kernels.public.widths import fill_paper, fill_tight
from tacit.release import Release
from tacit.task.features import Norm, RewardFeatures, TransitionFeatures, value_caps
from tacit.task.task import Task


class Units(NamedTuple):
    """Natural sums = factor * released sums, by family and stage; ``off`` packs the matrices."""

    gram: Array
    target: Array
    reward_gram: Array
    reward_target: Array
    off: float


class Sums(NamedTuple):
    """What released sums are about: features of transitions and of rewards, and their units."""

    transitions: TransitionFeatures
    rewards: RewardFeatures
    units: Units


class WidthRule(Protocol):
    """How wide the estimates of a release are."""

    def widths(self, task: Task, release: Release, sums: Sums) -> tuple[Widths, Widths]:
        """Widths of transition and of reward estimates."""


def stage_std(release: Release, block: str, factor: Array) -> Array:
    """Largest std of the noise in a cell of every stage, natural units; 0 where it has no cells."""
    if block not in release.blocks:
        return np.zeros(len(factor))
    variance = release.law.variance(block)
    if variance.ndim == 0:
        worst: Array = np.full(len(factor), float(variance))
    else:
        worst = variance.max(axis=tuple(range(1, variance.ndim)), initial=0.0)
    std: Array = np.sqrt(worst) * factor
    return std


def block_theta(features: TransitionFeatures | RewardFeatures) -> float:
    """Bound on the parameter within a block; where one-hot features are split it is 1."""
    return 1.0 if features.blocks > 1 else features.theta_norm


def reaches(
    task: Task, p: TransitionFeatures, r: RewardFeatures
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Half the range of a target and the largest norm of a feature, by stage, for both families."""
    H = task.horizon
    caps = value_caps(task)[1:H]
    return (0.5 * caps, p.reach * caps), (np.full(H, 0.5), np.full(H, r.norm))


@dataclass(frozen=True)
class TightWidths:
    """Those of docs/papers/mixture_jdp.md#tight-widths, the statistical term by a determinant.

    With no noise this is the radius of UCRL-VTR: sqrt(lambda) |theta| + R sqrt(2 ln(H / beta) + ln
    det), R = (largest V) / 2.

    Attributes:
        bonus_scale: c, multiplies the whole width; 1 is the theorem.
        beta: failure probability; None for 1 / K.
        ridge: lambda.
        releases: number of releases the statement is about, at most.
    """

    bonus_scale: float
    beta: float | None
    ridge: float
    releases: int

    def widths(self, task: Task, release: Release, sums: Sums) -> tuple[Widths, Widths]:
        """Privacy costs an additive term that decays like 1 / n, called W there."""
        p, r, units = sums
        noises = [stage_std(release, name, getattr(units, name)) for name in Units._fields[:4]]
        p_reach, r_reach = reaches(task, p, r)
        return (
            self._family(task, p, p_reach, *noises[:2]),
            self._family(task, r, r_reach, *noises[2:]),
        )

    def _family(
        self,
        task: Task,
        features: TransitionFeatures | RewardFeatures,
        reach: tuple[Array, Array],
        gram_std: Array,
        target_std: Array,
    ) -> Widths:
        width, blocks = features.width, features.blocks
        widths = self.blank(task, width, blocks, *reach)
        fill_tight(
            gram_std,
            target_std,
            *self.roots(task, width, blocks),
            block_theta(features),
            self.ridge,
            widths.shift,
            widths.fixed,
            widths.direct,
        )
        return widths

    def roots(self, task: Task, width: int, blocks: int) -> tuple[float, float]:
        """Bounds on the spectral norm of a unit noise matrix, and on a unit noise vector."""
        union = self.releases * task.horizon * blocks / self._beta(task)
        return (
            math.sqrt(2 * width) + math.sqrt(2 * math.log(8 * union)),
            math.sqrt(width) + math.sqrt(2 * math.log(4 * union)),
        )

    def blank(self, task: Task, width: int, blocks: int, spread: Array, longest: Array) -> Widths:
        """Widths whose noise terms are still to be filled in."""
        ridge, stages = self.ridge, len(spread)
        return Widths(
            scale=float(self.bonus_scale),
            ridge=float(ridge),
            shift=np.zeros(stages),
            spread=spread,
            log=2 * math.log(task.horizon * blocks / self._beta(task)),
            most=width * np.log1p(task.users * longest**2 / (width * ridge)),
            fixed=np.zeros(stages),
            direct=np.zeros(stages),
        )

    def _beta(self, task: Task) -> float:
        return 1.0 / max(task.users, 2) if self.beta is None else self.beta


def _flat(scale: float, ridge: float, shift: Array, radius: Array) -> Widths:
    """A width of radius |f|_{Lambda^-1} and nothing else."""
    zero, infinite = np.zeros(len(shift)), np.full(len(shift), np.inf)
    return Widths(float(scale), ridge, shift, zero, 0.0, zero, radius, infinite)


Radius = Literal["theorem", "experiment"]
"""Which of the two that the paper on local privacy has for its own algorithm and for UCRL-VTR."""


@dataclass(frozen=True)
class PaperLocal:
    """LDP-UCRL-VTR as in the paper: shift 2 Gamma, and a radius.

    Without noise Gamma is 0, and this is UCRL-VTR. See docs/papers/mixture_ldp.md#radius.

    Attributes:
        bonus_scale: c, the paper tunes it by grid search.
        beta: alpha of the paper.
        radius: the three terms of the proof, or the one term of the experiment.
    """

    bonus_scale: float
    beta: float
    radius: Radius = "theorem"

    def widths(self, task: Task, release: Release, sums: Sums) -> tuple[Widths, Widths]:
        """Transitions have values up to V_1; rewards (the bandit) are rescaled to [-1, 1]."""
        p, r, _ = sums
        H, most = task.horizon, float(value_caps(task)[0])
        return (
            self._family(task, release, p.dimension, p.theta_norm, most, np.ones(H - 1)),
            self._family(
                task, release, r.dimension, r.theta_norm / r.span, 1.0, np.full(H, r.span)
            ),
        )

    def _family(
        self, task: Task, release: Release, d: int, theta: float, most: float, spans: Array
    ) -> Widths:
        shift, fixed = np.zeros(len(spans)), np.zeros(len(spans))
        if len(spans):
            sigma = max((float(release.law.scale(block)) for block in release.blocks), default=0.0)
            fill_paper(
                release.users,
                sigma,
                d,
                float(theta),
                most,
                task.horizon,
                float(self.beta),
                float(spans[0]),
                self.radius == "experiment",
                shift,
                fixed,
            )
        return _flat(self.bonus_scale, 1.0, shift, fixed)


@dataclass(frozen=True)
class PaperExperiment:
    """UCRL-VTR in the experiment: c sqrt(SA) + (H - h + 1) sqrt(2 log K + log det Lambda).

    See docs/papers/mixture_ldp.md#ucrl-vtr. sqrt(SA) is the declared bound on the parameter, which
    it is for a table; H - h + 1 is the largest V_h, which is less where rewards are. The paper has
    lambda = 1.

    Attributes:
        bonus_scale: c, of the first term alone; the paper tunes it by grid search.
        beta: failure probability; None for 1 / K.
        ridge: lambda.
    """

    bonus_scale: float
    beta: float | None
    ridge: float

    def widths(self, task: Task, release: Release, sums: Sums) -> tuple[Widths, Widths]:
        """They change with the determinant only; rewards are known."""
        H, none = task.horizon, np.zeros(task.horizon)
        first = self.bonus_scale * sums.transitions.theta_norm
        transitions = Widths(
            scale=1.0,
            ridge=float(self.ridge),
            shift=np.full(H - 1, float(self.ridge)),
            spread=1.0 * value_caps(task)[: H - 1],
            log=-2 * math.log(1.0 / max(task.users, 2) if self.beta is None else self.beta),
            most=np.full(H - 1, np.inf),
            fixed=np.full(H - 1, first),
            direct=np.full(H - 1, np.inf),
        )
        return transitions, _flat(1.0, float(self.ridge), none, none)


@dataclass(frozen=True)
class PaperJoint:
    """LinOpt and Private-LinOpt as in the paper: widths beta_p and beta_r of its Lemma 3.1.

    With noise the shift is 2 Sigma, without it is lambda. See
    docs/papers/mixture_jdp.md#regularizer and docs/papers/mixture_jdp.md#private-linopt.

    Attributes:
        bonus_scale: c; 1 is the theorem.
        beta: alpha of the paper.
        node_std: noise of a node (or of one user) per unit norm Delta_x; 0 for exact sums.
        terms: number m of noises assumed in a sum: levels of the tree, or K in the local model.
        ridge: lambda, of exact sums.
        norm: bound on the features of values: sqrt(d1) H of the "assumption", or H of the "remark".
    """

    bonus_scale: float
    beta: float
    node_std: float = 0.0
    terms: int = 1
    ridge: float = 1.0
    norm: Norm = "assumption"

    def widths(self, task: Task, release: Release, sums: Sums) -> tuple[Widths, Widths]:
        """Constant over the run: the paper assumes all m noises at every k."""
        p, r, _ = sums
        H, K, d1 = task.horizon, task.users, p.dimension
        d = d1 if self.norm == "assumption" else 1
        p_norms = d * H**2, math.sqrt(d) * H**2
        return (
            self._family(H - 1, K, H, d1, p_norms, H / 2, K * H**2 * d / d1),
            self._family(H, K, H, r.dimension, (1.0, 1.0), 0.5, K / r.dimension),
        )

    def _family(
        self,
        stages: int,
        K: int,
        H: int,
        d: int,
        norms: tuple[float, float],
        spread: float,
        mass: float,
    ) -> Widths:
        root, alpha = math.sqrt(self.terms) * self.node_std, self.beta
        largest = root * norms[0] * (4 * math.sqrt(d) + math.sqrt(8 * math.log(8 * K * H / alpha)))
        nu = root * norms[1] * (math.sqrt(d) + math.sqrt(2 * math.log(4 * K * H / alpha)))
        least, shift, most = (largest, 2, 3) if self.node_std else (float(self.ridge), 1, 1)
        radius = spread * math.sqrt(2 * math.log(H / alpha) + d * math.log1p(mass / least))
        radius += math.sqrt(most * d * least) + nu / math.sqrt(least)
        ones = np.ones(stages)
        return _flat(self.bonus_scale, least, shift * least * ones, radius * ones)
