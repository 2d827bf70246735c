"""One step of a trajectory as one cell, and where a report about it is added up.

A step h < H is the cell (s_h, rho, s_{h+1}) of 2 S^2, the last step the cell (s_H, rho) of 2 S, rho
being the reward rounded to 0 or 1 at random (spec tabular_ldp B1). The action is not in the cell:
the policy is public, so a_h = pi_h(s_h) says nothing more (B2), and nothing here reads an action.
"""

from __future__ import annotations

from typing import NamedTuple

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.counts import REWARD_STEPS, clip_index, clip_reward
from tacit.kernels.noisy_posterior import WEIGHT_STEPS


class CellSums(NamedTuple):
    """Integer sums over reports: of weighted hits, of weights and squared weights, of first steps.

    Weights count in steps of 1 / WEIGHT_STEPS.
    """

    transitions: IntArray  # weighted hits of (s, a, rho, s') before the last step [G, S, A, 2, S]
    last: IntArray  # weighted hits of (s, a, rho) at the last step [S, A, 2]
    weight: IntArray  # sum w n [G, S, A]
    last_weight: IntArray  # [S, A]
    square: IntArray  # sum w^2 n [G, S, A]
    last_square: IntArray  # [S, A]
    first: IntArray  # unweighted hits of s at step 1 [S]
    first_users: IntArray  # reports about step 1 [1]


class CellEstimates(NamedTuple):
    """Unbiased weighted counts, and the variance of the noise in one cell of them."""

    transitions: Array  # [G, S, A, 2, S]
    last: Array  # [S, A, 2]
    variance: Array  # [G, S, A]
    last_variance: Array  # [S, A]
    first: Array  # start states [S]


class Chances(NamedTuple):
    """What undoes an oracle: p, q, and the variance v of one report outside a cell."""

    p: float
    q: float
    v: float


@kernel
def step_state(states: IntArray, h: int, S: int) -> int:
    """State at step h, clipped into range; a missing one counts as state 0."""
    return clip_index(states[h], S) if h < states.shape[0] else 0


@kernel
def step_reward(rewards: Array, h: int) -> int:
    """Reward of step h, clipped into [0, 1], in whole steps; a missing one counts as 0."""
    if h >= rewards.shape[0]:
        return 0
    return int(clip_reward(rewards[h]) * REWARD_STEPS + 0.5)


@kernel
def cell_index(s: int, rho: int, following: int, S: int, last: bool) -> int:
    """Number of the cell (s, rho, s'), or of (s, rho) at the last step."""
    return 2 * s + rho if last else (2 * s + rho) * S + following


@kernel
def add_hits(
    hits: IntArray, n: int, h: int, policy: IntArray, weights: IntArray, sums: CellSums
) -> None:
    """Add the summed reports ``hits`` [D] of n users about step h where their policy puts them.

    State s at step h was met with action pi_h(s) and counts with weight w_h(s).
    """
    G, S = sums.transitions.shape[0], sums.transitions.shape[1]
    final = h == policy.shape[0] - 1
    g = h if G > 1 else 0
    cells = 1 if final else S
    for s in range(S):
        a = policy[h, s]
        w = weights[h, s]
        if final:
            sums.last_weight[s, a] += w * n
            sums.last_square[s, a] += w * w * n
        else:
            sums.weight[g, s, a] += w * n
            sums.square[g, s, a] += w * w * n
        for rho in range(2):
            for following in range(cells):
                count = hits[cell_index(s, rho, following, S, final)]
                if final:
                    sums.last[s, a, rho] += w * count
                else:
                    sums.transitions[g, s, a, rho, following] += w * count
                if h == 0:
                    sums.first[s] += count
    if h == 0:
        sums.first_users[0] += n


@kernel
def unbiased(hits: float, reports: float, oracle: Chances) -> float:
    """(hits - q n) / (p - q): how many of n users have the cell, without bias."""
    return (hits - oracle.q * reports) / (oracle.p - oracle.q)


@kernel
def estimate_cells(
    sums: CellSums, step: Chances, end: Chances, one_step: bool, out: CellEstimates
) -> None:
    """Overwrite ``out`` with what the sums of reports estimate.

    Reports are about a cell by the oracle ``step``, at the last step by ``end``; ``one_step`` says
    that the first step is the last one too (H = 1).
    """
    G, S, A = sums.weight.shape
    unit = 1.0 / WEIGHT_STEPS
    for s in range(S):
        for a in range(A):
            for g in range(G):
                reports = sums.weight[g, s, a] * unit
                out.variance[g, s, a] = step.v * sums.square[g, s, a] * unit * unit
                for rho in range(2):
                    for n in range(S):
                        hits = sums.transitions[g, s, a, rho, n] * unit
                        out.transitions[g, s, a, rho, n] = unbiased(hits, reports, step)
            reports = sums.last_weight[s, a] * unit
            out.last_variance[s, a] = end.v * sums.last_square[s, a] * unit * unit
            for rho in range(2):
                out.last[s, a, rho] = unbiased(sums.last[s, a, rho] * unit, reports, end)
        cells = 2.0 if one_step else 2.0 * S
        reports = cells * sums.first_users[0]
        out.first[s] = unbiased(float(sums.first[s]), reports, end if one_step else step)
