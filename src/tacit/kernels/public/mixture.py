"""Linear mixtures on released sums: estimates, widths, optimistic backward induction.

By value-targeted regression, by V-free regression (one estimate of the weights serves every value
function), and on noisy transition counts with known rewards. Planning only: nothing here may
import rollout, counts or sums. Statistics share the first kernels, so that
user and planner mean the same by phi_V.

Shapes: phi [SA, S, w] within a block, block [SA]; packed matrices [stages, blocks, w (w + 1) / 2]
hold the lower triangle row by row, off-diagonal entries times ``off`` (sqrt 2 is isometric).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.cholesky import (
    factor_or_floor,
    log_determinant,
    solve_lower,
    solve_transposed,
)
from tacit.kernels.public.posterior import project


class StageRegressions(NamedTuple):
    """One ridge regression per stage, as released: natural sums = factor * released sums."""

    gram: Array
    target: Array
    gram_factor: Array  # [stages]
    target_factor: Array  # [stages]
    off: float


class Widths(NamedTuple):
    """Width of <f, theta> at stage h, from public numbers.

    docs/papers/mixture_jdp.md#tight-widths:
    c (spread sqrt(log + min(log det(Lambda / ridge), most)) |f| + min(fixed |f|, direct |Lambda^-1
    f|_2)) with |f| the norm in Lambda^-1 and Lambda = released Gram + shift I.
    """

    scale: float  # c
    ridge: float  # lambda, and the floor of the spectrum
    shift: Array
    spread: Array
    log: float
    most: Array
    fixed: Array
    direct: Array


class Work(NamedTuple):
    """Work space of one regression."""

    A: Array  # [w, w]
    L: Array  # [blocks, w, w]
    theta: Array  # [blocks, w]
    x: Array  # [w], as the next two
    y: Array
    z: Array


class FamilyRegression(NamedTuple):
    """All that estimates of one family, of transitions or of rewards, are made of."""

    sums: StageRegressions
    widths: Widths
    phi: Array  # features: [SA, S, w] of transitions, [SA, w] of rewards
    block: IntArray  # [SA]
    work: Work


def work_space(blocks: int, width: int) -> Work:
    """Fresh buffers."""
    vectors = (np.zeros(width) for _ in range(3))
    matrices = np.zeros((width, width)), np.zeros((blocks, width, width))
    return Work(*matrices, np.zeros((blocks, width)), *vectors)


@kernel
def middle(V: Array, centre: bool) -> float:
    """What is taken off a value function before regression: its midrange, or nothing."""
    if not centre:
        return 0.0
    low = V[0]
    high = V[0]
    for s in range(1, V.shape[0]):
        low = min(low, V[s])
        high = max(high, V[s])
    return float(0.5 * (low + high))


@kernel
def mixed(phi: Array, V: Array, mid: float, out: Array) -> None:
    """phi_V(s, a) = sum over s' of phi(s'|s,a) (V(s') - mid), for one pair: phi [S, w]."""
    S, w = phi.shape
    for j in range(w):
        out[j] = 0.0
    for n in range(S):
        value = V[n] - mid
        for j in range(w):
            out[j] += phi[n, j] * value


@kernel
def norm(x: Array) -> float:
    """Euclidean length."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * x[j]
    return float(np.sqrt(total))


@kernel
def prepare(regression: StageRegressions, stage: int, widths: Widths, work: Work) -> float:
    """Factor and solve one stage; returns spread sqrt(log + min(log det, most)), det of a block."""
    gram, target, gram_factor, target_factor, off = regression
    A, L, theta, _, y, _ = work
    blocks, w = theta.shape
    largest = 0.0
    for b in range(blocks):
        at = 0
        for i in range(w):
            for j in range(i):
                A[i, j] = gram_factor[stage] / off * gram[stage, b, at]
                at += 1
            A[i, i] = gram_factor[stage] * gram[stage, b, at] + widths.shift[stage]
            at += 1
        factor_or_floor(A, L[b], widths.ridge)
        for i in range(w):
            y[i] = target_factor[stage] * target[stage, b, i]
        solve_lower(L[b], y, theta[b])
        solve_transposed(L[b], theta[b], theta[b])
        largest = max(largest, log_determinant(L[b]) - w * np.log(widths.ridge))
    return float(widths.spread[stage] * np.sqrt(widths.log + min(largest, widths.most[stage])))


@kernel
def estimate(x: Array, b: int, work: Work) -> float:
    """<x, theta>."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * work.theta[b, j]
    return total


@kernel
def bonus(x: Array, b: int, stage: int, radius: float, widths: Widths, work: Work) -> float:
    """The width of <x, theta> after ``prepare``."""
    L = work.L[b]
    solve_lower(L, x, work.y)
    length = norm(work.y)
    rest = widths.fixed[stage] * length
    if widths.direct[stage] < np.inf:
        solve_transposed(L, work.y, work.z)
        rest = min(rest, widths.direct[stage] * norm(work.z))
    return float(widths.scale * (radius * length + rest))


@kernel
def value_targeted_induction(
    transitions: FamilyRegression,
    rewards: FamilyRegression,
    offset: float,
    known_reward: Array,
    caps: Array,
    centre: bool,
    weights: Array,
    Q: Array,
    V: Array,
    reach: Array,
) -> None:
    """Optimistic backward induction of UCRL-VTR and LinOpt.

    See docs/papers/mixture_ldp.md#ucrl-vtr, docs/papers/mixture_jdp.md#linopt-vi and
    docs/papers/mixture_jdp.md#linopt-po.

    Q_h = clip(r + <phi_V, theta> + bonus, 0, cap_h). V_h is max_a Q_h, or where ``weights``
    [H, S, A] have rows the mean of Q_h under them. Rewards are regressed unless ``known_reward``
    [H, S, A] has rows. ``reach`` [2, H-1] receives max |phi_V| and max |V - mid| of every stage.
    """
    p_sums, p_widths, phi, block, p_work = transitions
    r_sums, r_widths, varphi, r_block, r_work = rewards
    x, mirror = p_work.x, weights.shape[0] > 0
    H, S, A = Q.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        p_radius = 0.0
        r_radius = 0.0
        mid = 0.0
        if h < H - 1:
            p_radius = prepare(p_sums, h, p_widths, p_work)
            mid = middle(V[h + 1], centre)
            reach[0, h] = 0.0
            reach[1, h] = 0.0
            for s in range(S):
                reach[1, h] = max(reach[1, h], abs(V[h + 1, s] - mid))
        if known_reward.shape[0] == 0:
            r_radius = prepare(r_sums, h, r_widths, r_work)
        for s in range(S):
            best = -np.inf
            mean = 0.0
            for a in range(A):
                pair = s * A + a
                value = 0.0
                if known_reward.shape[0] > 0:
                    value = known_reward[h, s, a]
                else:
                    b = r_block[pair]
                    value = offset + estimate(varphi[pair], b, r_work)
                    value += bonus(varphi[pair], b, h, r_radius, r_widths, r_work)
                if h < H - 1:
                    b = block[pair]
                    mixed(phi[pair], V[h + 1], mid, x)
                    reach[0, h] = max(reach[0, h], norm(x))
                    value += mid + estimate(x, b, p_work)
                    value += bonus(x, b, h, p_radius, p_widths, p_work)
                value = min(max(value, 0.0), caps[h])
                Q[h, s, a] = value
                best = max(best, value)
                if mirror:
                    mean += weights[h, s, a] * value
            V[h, s] = mean if mirror else best


@kernel
def mirror_step(logits: Array, Q: Array, rate: Array, weights: Array) -> None:
    """pi_h(a|s) proportional to exp(logits), logits += rate_h Q_h; the largest logit is 0."""
    H, S, A = Q.shape
    for h in range(H):
        for s in range(S):
            top = -np.inf
            for a in range(A):
                logits[h, s, a] += rate[h] * Q[h, s, a]
                top = max(top, logits[h, s, a])
            total = 0.0
            for a in range(A):
                logits[h, s, a] -= top
                weights[h, s, a] = np.exp(logits[h, s, a])
                total += weights[h, s, a]
            for a in range(A):
                weights[h, s, a] /= total


@kernel
def vfree_induction(
    transitions: FamilyRegression,
    rewards: FamilyRegression,
    full: Array,
    origin: Array,
    offset: float,
    known_reward: Array,
    simplex: bool,
    pooled: bool,
    whole: Array,
    Q: Array,
    V: Array,
) -> None:
    """Q_h = clip(r + bonus) + clip(P V + bonus), each within what it can be.

    See docs/papers/mixture_jdp.md#b1 and docs/papers/mixture_jdp.md#b2.
    P V = <phi_V, origin> + <phi_V in reduced coordinates, vartheta>. With weights on the simplex it
    lies between the smallest and the largest P_i V of the base kernels, always between min V and
    max V; rewards lie in [0, 1]. ``whole`` [d0] is work space.
    """
    p_sums, p_widths, phi, _, p_work = transitions
    r_sums, r_widths, varphi, _, r_work = rewards
    x = p_work.x
    H, S, A = Q.shape
    for s in range(S):
        V[H, s] = 0.0
    p_radius = 0.0
    r_radius = 0.0
    learn = known_reward.shape[0] == 0
    for h in range(H - 1, -1, -1):
        p = 0 if pooled else h
        mid = 0.0
        low = 0.0
        high = 0.0
        if h < H - 1:
            if not pooled or h == H - 2:
                p_radius = prepare(p_sums, p, p_widths, p_work)
            mid = middle(V[h + 1], True)
            low = np.min(V[h + 1])
            high = np.max(V[h + 1])
        if learn and (not pooled or h == H - 1):
            r_radius = prepare(r_sums, p, r_widths, r_work)
        for s in range(S):
            best = -np.inf
            for a in range(A):
                pair = s * A + a
                if learn:
                    value = offset + estimate(varphi[pair], 0, r_work)
                    value += bonus(varphi[pair], 0, p, r_radius, r_widths, r_work)
                    value = min(max(value, 0.0), 1.0)
                else:
                    value = known_reward[h, s, a]
                if h < H - 1:
                    mixed(full[pair], V[h + 1], mid, whole)
                    least = low
                    most = high
                    if simplex:
                        least = mid + np.min(whole)
                        most = mid + np.max(whole)
                    after = mid
                    for i in range(origin.shape[0]):
                        after += origin[i] * whole[i]
                    mixed(phi[pair], V[h + 1], mid, x)
                    after += estimate(x, 0, p_work)
                    after += bonus(x, 0, p, p_radius, p_widths, p_work)
                    value += min(max(after, least), most)
                Q[h, s, a] = value
                best = max(best, value)
            V[h, s] = best


@kernel
def transition_induction(
    counts: Array,
    variances: Array,
    known_reward: Array,
    caps: Array,
    scale: float,
    Q: Array,
    V: Array,
) -> None:
    """Q_h = min(cap, r + (1 - q) P^ V + q max V), q = min(1, c (sqrt n + sd) / n).

    See docs/papers/mixture_ldp.md#b1.

    n is the noisy number of visits, raised to its own noise ``sd`` and to 1; P^ is the noisy row
    over n, filled up evenly where n was raised, projected onto the simplex. ``counts`` has one
    table per stage before the last, or one for all.
    """
    H, S, A = Q.shape
    row = np.empty(S)
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        g = h if counts.shape[0] > 1 else 0
        top = 0.0
        if h < H - 1:
            for s in range(S):
                top = max(top, V[h + 1, s])
        for s in range(S):
            best = -np.inf
            for a in range(A):
                value = known_reward[h, s, a]
                if h < H - 1:
                    seen = 0.0
                    noise = 0.0
                    for n in range(S):
                        seen += counts[g, s, a, n]
                        noise += variances[g, s, a, n]
                    deviation = np.sqrt(noise)
                    visits = max(max(seen, deviation), 1.0)
                    for n in range(S):
                        row[n] = counts[g, s, a, n] / visits + (1.0 - seen / visits) / S
                    project(row, 1.0)
                    mean = 0.0
                    for n in range(S):
                        mean += row[n] * V[h + 1, n]
                    q = min(1.0, scale * (np.sqrt(visits) + deviation) / visits)
                    value += (1.0 - q) * mean + q * top
                value = min(value, caps[h])
                Q[h, s, a] = value
                best = max(best, value)
            V[h, s] = best
