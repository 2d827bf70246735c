"""The statistic of value-targeted regression: Gram matrices and targets per stage."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.grid import STEPS
from tacit.kernels.raw.targets import (
    TargetFeatures,
    TargetScales,
    TargetSums,
    add_value_targets,
)
from tacit.publication import Publication
from tacit.statistics import base, distances
from tacit.statistics.counts import staying
from tacit.task.features import reward_features, transition_features, value_caps
from tacit.task.task import Task, table_sizes
from tacit.trajectory import Lives, Trajectory

FAMILIES = TargetSums._fields
LEAST_SHARE = 2.0**-6
"""Noise never falls below this share of its declared size, however flat the public values are."""

Scaling = Literal["split", "equal", "raw", "paper", "remark"]


@dataclass(frozen=True)
class Shape:
    """How the four families are laid out and scaled.

    Attributes:
        whole: one full Gram matrix, instead of known blocks.
        rewards: also regress rewards.
        centre: take the midrange off V before regression.
        public: noise in proportion to the published reach of V (local model), instead of to the
            declared bounds.
        scaling: what a contribution is divided by. "split": the sensitivity of its family, so that
            each family gets an equal share of mu^2 (docs/papers/mixture_jdp.md#composition);
            "equal": its norm (docs/papers/mixture_ldp.md#tight-noise); "raw": nothing, rewards in
            [-1, 1] (docs/papers/mixture_ldp.md#ldp-ucrl-vtr and
            docs/papers/mixture_ldp.md#bandit); "paper": Delta of
            docs/papers/mixture_jdp.md#private-linopt; "remark": the same for features of norm H
            (docs/papers/mixture_jdp.md#norm).
    """

    whole: bool
    rewards: bool
    centre: bool
    public: bool
    scaling: Scaling

    @property
    def off(self) -> float:
        """Weight of off-diagonal entries; the papers add equal noise on and off the diagonal."""
        return 1.0 if self.scaling in ("raw", "paper", "remark") else distances.ISOMETRIC


class ValueTargets(base.BoundedSum, base.BatchStatistic):
    """x x^T and x y with x = phi_V(s,a), y = V(s'), per stage; rewards likewise.

    See docs/papers/mixture_jdp.md#setting. V is that of the publication, clipped entry by entry
    into [0, cap]; x and y are clipped to declared bounds that follow from it. Stage H carries no
    transition data and is not sent.
    """

    def __init__(self, task: Task, shape: Shape) -> None:
        H = task.horizon
        self.task = task
        self.shape = shape
        self.caps = value_caps(task)  # on V_1..V_{H+1}
        if shape.scaling == "raw":  # the paper's raw messages use the largest one at every stage
            self.caps = frozen(np.full(len(self.caps), self.caps[0]))
        self.transitions = transition_features(task, whole=shape.whole)
        self.rewards = reward_features(task, whole=shape.whole)
        half = 0.5 if shape.centre else 1.0
        self.highest = np.maximum(half * self.caps[1:H], 1e-6)
        self.longest = self.transitions.reach * self.highest
        self.scales = self._scales()
        p, r = self.transitions, self.rewards
        blocks = [
            base.counted("gram", H - 1, p.blocks, distances.packed_size(p.width)),
            base.counted("target", H - 1, p.blocks, p.width),
        ]
        if shape.rewards:
            blocks += [
                base.counted("reward_gram", H, r.blocks, distances.packed_size(r.width)),
                base.counted("reward_target", H, r.blocks, r.width),
            ]
        self.layout = base.Layout(blocks)
        self.features = TargetFeatures(
            p.phi,
            p.block,
            r.varphi,
            r.block,
            float(r.offset),
            shape.centre,
            self.caps,
            self.longest,
            self.highest,
        )
        self._none = np.zeros((0, 1, 1), dtype=np.int64)
        self._declared = np.stack([self.longest, self.highest])

    def _scales(self) -> TargetScales:
        H, ones = self.task.horizon, np.ones(self.task.horizon)
        b, v, kind = self.longest, self.highest, self.shape.scaling
        norm, span = self.rewards.norm, self.rewards.span
        gram, target = 1.0 / b**2, 1.0 / (b * v)
        r_gram, r_target = ones / norm**2, ones / (norm * span)
        if kind == "raw":
            gram, target = np.ones(H - 1), np.ones(H - 1)
        elif kind in ("paper", "remark"):
            d1 = self.transitions.dimension if kind == "paper" else 1
            gram = np.full(H - 1, 1.0 / (d1 * H**2))
            target = np.full(H - 1, 1.0 / (math.sqrt(d1) * H**2))
            r_gram, r_target = ones, ones
        elif kind == "split":
            families = 4.0 if self.shape.rewards else 2.0
            p_share = math.sqrt(1.0 / (families * max(H - 1, 1)))
            r_share = math.sqrt(1.0 / (families * H))
            gram = gram * (p_share / math.sqrt(self._stage(1.0, 0.0)))
            target = target * (p_share / math.sqrt(self._stage(0.0, 1.0)))
            r_gram = r_gram * (r_share / math.sqrt(self._reward_stage(norm**-2, 0.0)))
            r_target = r_target * (r_share / math.sqrt(self._reward_stage(0.0, 1 / (norm * span))))
        return TargetScales(gram, target, r_gram, r_target, self.shape.off)

    # The statistic.

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the contributions of many users, one trajectory per row."""
        views, S = self.layout.views(out), self.task.sizes["states"]
        V = base.context_array(publication, "V", (self.task.horizon + 1, S))
        reach, scratch = self._reach(publication), (np.zeros(S), np.zeros(self.transitions.width))
        sums = TargetSums(*(views.get(name, self._none) for name in FAMILIES))
        add_value_targets(lives, V, reach, self.features, self.scales, *scratch, sums)

    def _reach(self, publication: Publication) -> Array:
        """Clipping norms of every stage [2, H-1]: published ones within bounds, or declared."""
        if not self.shape.public:
            return self._declared
        asked = np.nan_to_num(
            base.context_array(publication, "reach", self._declared.shape), nan=0.0
        )
        clipped: Array = np.clip(asked, LEAST_SHARE**0.5 * self._declared, self._declared)
        return clipped

    def weights(self, publication: Publication) -> Array:
        """Size of every cell relative to its declared bound, from the publication alone.

        Noise in proportion to these weights is enough: the declared sensitivity is that of the
        contribution divided by them, for every publication.
        """
        flat = np.ones(self.layout.size)
        if self.shape.public:
            share = self._reach(publication) / self._declared
            views = self.layout.views(flat)
            views["gram"][:] = (share[0] ** 2)[:, None, None]
            views["target"][:] = (share[0] * share[1])[:, None, None]
        return flat

    def _sensitivity(self, w: dict[str, float], norm: base.Norm, replaced: bool) -> float:
        """Jointly over families and stages, by closed forms.

        They are in docs/papers/mixture_ldp.md#sensitivities and
        docs/papers/mixture_jdp.md#sensitivities. L1 is bounded by sqrt(cells) L2. What rounding to
        the grid can add is included.
        """
        s, total = self.scales, 0.0
        for h in range(self.task.horizon - 1):
            b, v = self.longest[h], self.highest[h]
            gram, target = w["gram"] * s.gram[h] * b**2, w["target"] * s.target[h] * b * v
            total += self._stage(gram, target) if replaced else gram**2 + target**2
        if self.shape.rewards:
            gram, target = w["reward_gram"] * s.reward_gram[0], w["reward_target"]
            target = target * s.reward_target[0]
            lone = (gram * self.rewards.norm**2) ** 2
            lone += (target * self.rewards.norm * self.rewards.span) ** 2
            stage = self._reward_stage(gram, target) if replaced else lone
            total += self.task.horizon * stage
        rounding = self._rounding() * max(w.values(), default=0.0)
        l2 = math.sqrt(total) + rounding if total > 0.0 else 0.0
        return l2 if norm == "l2" else math.sqrt(self.layout.size) * l2

    def _rounding(self) -> float:
        """Half a grid step per cell that either user touches, at the least public weight."""
        H, S, _ = table_sizes(self.task)
        n = S if self.transitions.geometry == "one-hot" else self.transitions.width
        touched = (H - 1) * (n * (n + 3) // 2)
        if self.shape.rewards:
            one_hot = "reward_features" not in self.task.known
            m = 1 if one_hot else self.rewards.width
            touched += H * (m * (m + 3) // 2)
        return math.sqrt(touched) / STEPS / (LEAST_SHARE if self.shape.public else 1.0)

    def _stage(self, gram: float, target: float) -> float:
        """Squared distance of one stage whose (x x^T, x y) have norms (gram, target) at most."""
        p = self.transitions
        box = p.geometry == "box" and not self.shape.centre and not self.shape.public
        if p.geometry == "one-hot":
            if self.shape.off == 1.0:
                states = self.task.sizes["states"]
                return distances.triangle_pair(gram, target, states)
            return distances.orthogonal_pair(gram, target, signed=self.shape.centre)
        if box:
            return distances.box_pair(gram, target, p.dimension, p.reach)
        return distances.outer_pair(gram, target)

    def _reward_stage(self, gram: float, target: float) -> float:
        """The same for varphi, by enumeration of (s, a) and of rewards 0 and 1."""
        r = self.rewards
        if r.blocks > 1 or np.array_equal(r.varphi, np.eye(len(r.varphi))):
            apart = 2.0 * (gram**2 + (target * r.span) ** 2)
            return max(apart, target**2)
        matrices = gram * distances.packed(r.varphi, distances.ISOMETRIC)
        vectors = target * r.varphi
        rows = [np.hstack([matrices, y * vectors]) for y in (-r.offset, 1.0 - r.offset)]
        rows.append(np.zeros((1, rows[0].shape[1])))
        generic = distances.outer_pair(gram * r.norm**2, target * r.norm * r.span)
        return min(distances.squared_diameter(np.vstack(rows)), generic)

    def worst_contexts(self) -> dict[str, dict[str, Array]]:
        """Values at both ends of their range, in turn: no x and no y can be longer."""
        ends = np.where(np.arange(self.task.sizes["states"]) % 2 == 0, 1.0, 0.0)
        V = np.outer(self.caps, ends)
        return {"": {"V": V, "reach": self._declared}}

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Always in one pair (s, a) with reward 1, against always in another one."""
        H, S, A = table_sizes(self.task)
        return staying(H, 0, 0, 1.0), staying(H, S - 1, A - 1, 1.0)
