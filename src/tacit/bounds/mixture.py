"""Linear mixtures: Liao, He and Gu under local privacy, Zhou under joint privacy.

See docs/papers/mixture_ldp.md and docs/papers/mixture_jdp.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.bounds.result import Statement
from tacit.kernels.public.widths import paper_terms
from tacit.learner import BoundAgent
from tacit.planners.vtr import MirrorPlanner, ValueTargetedPlanner
from tacit.planners.widths import PaperJoint, PaperLocal
from tacit.task.features import value_caps

_LOCAL, _JOINT = "docs/papers/mixture_ldp.md", "docs/papers/mixture_jdp.md"
_OWN_WIDTHS = Statement(None, erratum="the theorem is about the paper's widths, not those used")


def theorem_5_2(
    horizon: int, users: int, dimension: int, radius: float, beta: float, most: float
) -> float:
    """The end of the proof of Theorem 5.2 of Liao et al., with the constant of its radius.

    2 H beta_K sqrt(2 d K log(1 + K / lambda)) + 4 V sqrt(2 T log(2H / alpha)): the factor 2 of the
    sum before (B.4) is kept, lambda = 1, and V is the largest value, H in the paper. beta_K comes
    with its constants (docs/papers/mixture_ldp.md#radius).
    """
    bonuses = 2 * horizon * radius * math.sqrt(2 * dimension * users * math.log1p(users))
    return bonuses + 4 * most * math.sqrt(2 * users * horizon * math.log(2 * horizon / beta))


def privacy_factor(epsilon: float) -> float:
    """m = min(2, e^eps)(e^eps - 1), at most 1: a private learner is also a learner.

    See docs/papers/mixture_ldp.md#e18.
    """
    growth = math.exp(min(epsilon, 1.0))
    return min(1.0, min(2.0, growth) * (growth - 1.0))


def lemma_5_5(users: int, dimension: int, epsilon: float) -> float | None:
    """e^-32 d sqrt(K gamma) / (8 m) with gamma = 1/3, for linear bandits with rewards of 0 and 1.

    The proof needs d Delta <= gamma / 2, that is K >= 4 d^2 / (m^2 gamma); the lemma drops gamma
    (docs/papers/mixture_ldp.md#e17).
    """
    return _bandit(users, dimension, privacy_factor(epsilon), 1 / 3)


def theorem_5_6(horizon: int, users: int, dimension: int, epsilon: float) -> float | None:
    """H / 10 times H / 2 bandits of Lemma 5.5 with gamma = 1 / H, in d - 1 dimensions."""
    if dimension < 2 or horizon < 3:
        return None
    each = _bandit(users, dimension - 1, privacy_factor(epsilon), 1 / horizon)
    return None if each is None else horizon / 10 * (horizon // 2) * each


def _bandit(users: int, dimension: int, m: float, gamma: float) -> float | None:
    if users < 4 * dimension**2 / (m**2 * gamma):
        return None
    return math.exp(-32) / (8 * m) * dimension * math.sqrt(users * gamma)


def local_bound(bound: BoundAgent, users: int) -> Statement:
    """LDP-UCRL-VTR by Theorem 5.2, LDP-bandit by the same at H = 1, at the noise that is added."""
    rule, task = getattr(bound.planner, "rule", None), bound.task
    if not isinstance(rule, PaperLocal) or getattr(rule, "radius", "theorem") != "theorem":
        return _OWN_WIDTHS
    assert isinstance(bound.planner, ValueTargetedPlanner)
    p, r, _ = bound.planner.sums
    law = bound.privatizer.law(1)
    sigma = max(float(law.scale(block.name)) for block in bound.statistic.layout.blocks)
    H, K, beta = task.horizon, users, float(rule.beta)
    before: Any = K - 1.0  # theorems speak of more users than an integer of a kernel holds
    private = bound.guarantee.epsilon if bound.guarantee.delta == 0.0 else math.inf
    place = f"a logarithm has K where K H^2 / d belongs ({_LOCAL}#e14)"
    if H == 1:
        theta = float(r.theta_norm / r.span)
        _, radius = paper_terms(before, sigma, r.dimension, theta, 1.0, 1, beta)
        upper = r.span * theorem_5_2(1, K, r.dimension, radius, beta, 0.0)
        return Statement(upper, beta, lemma_5_5(K, r.dimension, private), place)
    most = float(value_caps(task)[0])
    _, radius = paper_terms(before, sigma, p.dimension, float(p.theta_norm), most, H, beta)
    upper = theorem_5_2(H, K, p.dimension, radius, beta, most)
    return Statement(upper, beta, theorem_5_6(H, K, p.dimension, private), place)


def theorem_4_1(
    horizon: int,
    users: int,
    beta: float,
    radii: Sequence[float],
    potentials: Sequence[float],
) -> float:
    """The end of the proof of Theorem 4.1 of Zhou: T_1 + T_2 + T_3, for value iteration.

    Args:
        horizon: H.
        users: K.
        beta: alpha; the bound fails with probability 4 alpha at most.
        radii: beta_p and beta_r (0 where rewards are known).
        potentials: d_1 log(1 + K H^2 / lambda_min,p) and d_2 log(1 + K / (d_2 lambda_min,r)).
    """
    martingale = horizon * math.sqrt(2 * users * horizon * math.log(1 / beta))
    return _bonus_sums(horizon, users, radii, potentials) + martingale


def theorem_5_1(
    horizon: int,
    users: int,
    beta: float,
    radii: Sequence[float],
    potentials: Sequence[float],
    actions: int,
) -> float:
    """The same for policy optimisation: (i), (ii) and (iii) of the proof of Theorem 5.1."""
    T = users * horizon
    descent = math.sqrt(2 * horizon**3 * T * math.log(actions))
    martingale = 4 * horizon * math.sqrt(2 * T * math.log(1 / beta))
    return _bonus_sums(horizon, users, radii, potentials) + descent + martingale


def _bonus_sums(H: int, K: int, radii: Sequence[float], potentials: Sequence[float]) -> float:
    """2 beta sqrt(KH) sqrt(2H potential), for rewards times H (docs/papers/mixture_jdp.md#e8)."""
    factors = (2.0, 2.0 * H)
    terms = zip(factors, radii, potentials, strict=True)
    return sum(f * radius * H * math.sqrt(2 * K * potential) for f, radius, potential in terms)


def joint_bound(bound: BoundAgent, users: int) -> Statement:
    """LinOpt by Theorems 4.1 and 5.1, at the regulariser of the noise that is added (6.5)."""
    rule, task = getattr(bound.planner, "rule", None), bound.task
    if not isinstance(rule, PaperJoint):
        return _OWN_WIDTHS
    assert isinstance(bound.planner, ValueTargetedPlanner | MirrorPlanner)
    sums = bound.planner.sums
    p, r, _ = sums
    if users != task.users:
        rule, task = _for_users(rule, bound, users), replace(task, users=users)
    H, K, alpha, d = task.horizon, users, float(rule.beta), (p.dimension, r.dimension)
    unread: Any = None  # these widths are those of every release
    widths = rule.widths(task, unread, sums)
    radii = [float(np.max(family.fixed, initial=0.0)) for family in widths]
    if "reward" in task.known:
        radii[1] = 0.0
    feature = d[0] if getattr(rule, "norm", "assumption") == "assumption" else 1
    masses = K * H**2 * feature / d[0], K / d[1]
    logs = [math.log1p(mass / w.ridge) for mass, w in zip(masses, widths, strict=True)]
    parts = H, K, alpha, radii, [size * log for size, log in zip(d, logs, strict=True)]
    erratum = (
        f"as stated it lacks a factor H in the part of the rewards, which its proof has "
        f"({_JOINT}#e8); the martingale is bounded by 2H, not H ({_JOINT}#e12)"
    )
    if isinstance(bound.planner, MirrorPlanner):
        return Statement(theorem_5_1(*parts, task.sizes["actions"]), 4 * alpha, None, erratum)
    return Statement(theorem_4_1(*parts), 4 * alpha, None, erratum)


def _for_users(rule: PaperJoint, bound: BoundAgent, users: int) -> PaperJoint:
    """The same widths for more users than those the noise was made for.

    Noise of a tree grows with the root of its levels, published or raised; that of a local report
    does not, and there are as many as users.
    """
    if bound.guarantee.model == "none":
        return rule
    if bound.guarantee.model == "local":
        return replace(rule, terms=users)
    levels = max(1, math.ceil(math.log2(users)))
    return replace(rule, node_std=rule.node_std * math.sqrt(levels / rule.terms), terms=levels)
