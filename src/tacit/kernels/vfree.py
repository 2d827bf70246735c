"""Planning on V-free regressions: one estimate of the weights serves every value function."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.mixture import (
    Regression,
    Widths,
    Work,
    bonus,
    estimate,
    middle,
    mixed,
    prepare,
)


@kernel
def vfree_induction(
    transitions: Regression,
    p_widths: Widths,
    phi: Array,
    full: Array,
    origin: Array,
    rewards: Regression,
    r_widths: Widths,
    varphi: Array,
    offset: float,
    known_reward: Array,
    simplex: bool,
    pooled: bool,
    p_work: Work,
    r_work: Work,
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
                p_radius = prepare(transitions, p, p_widths, p_work)
            mid = middle(V[h + 1], True)
            low = np.min(V[h + 1])
            high = np.max(V[h + 1])
        if learn and (not pooled or h == H - 1):
            r_radius = prepare(rewards, p, r_widths, r_work)
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
                    mixed(phi[pair], V[h + 1], mid, p_work.x[pair])
                    after += estimate(p_work.x[pair], 0, p_work)
                    after += bonus(p_work.x[pair], 0, p, p_radius, p_widths, p_work)
                    value += min(max(after, least), most)
                Q[h, s, a] = value
                best = max(best, value)
            V[h, s] = best
