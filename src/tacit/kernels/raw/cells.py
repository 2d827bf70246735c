"""One question about one step of a trajectory, and where the answers are added up.

A user is asked about one step h, in one of three ways: the joint cell (s_h, rho, s_{h+1}), the move
(s_h, s_{h+1}), or the reward (s_h, rho), rho being the reward rounded to 0 or 1 at random
(docs/papers/tabular_ldp.md#b1). A smaller domain is answered with less noise. The action is not in
the cell: the policy is public, so a_h = pi_h(s_h) says nothing more
(docs/papers/tabular_ldp.md#b2), and nothing here reads an action.
"""

from __future__ import annotations

from typing import NamedTuple

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel
from tacit.kernels.public.posterior import NoisyCounts
from tacit.kernels.public.questions import (
    MOVE,
    REWARD,
    STEP,
    WEIGHT_STEPS,
    Weighing,
    report_weight,
)
from tacit.kernels.raw.counts import clip_index, clip_reward


class CellSums(NamedTuple):
    """Integer sums over reports, of what they say and of how much they weigh.

    The first axis tells who was asked: of moves the joint cells and the moves, of rewards the joint
    cells and the rewards; of first steps all three. Weights count in steps of 1 / WEIGHT_STEPS.
    Pairs x and places s, of which L go on and N can follow, are those of ``tacit.task.pairs``.
    """

    moves: IntArray  # weighted hits of (x, s') [2, G, X, N]
    rewards: IntArray  # weighted hits of (x, rho) [2, G', X, 2]
    moves_weight: IntArray  # sum w n [2, G, X]
    rewards_weight: IntArray  # [2, G', X]
    moves_square: IntArray  # sum w^2 n [2, G, X]
    rewards_square: IntArray  # [2, G', X]
    moves_seen: IntArray  # sum w^2 times the hits of x [2, G, X]
    rewards_seen: IntArray  # [2, G', X]
    first: IntArray  # unweighted hits of s at step 1 [3, L]
    first_users: IntArray  # reports about step 1 [3]


class CountedHits(NamedTuple):
    """Those of moves, or those of rewards."""

    hits: IntArray
    weight: IntArray
    square: IntArray
    seen: IntArray


class Chances(NamedTuple):
    """What undoes an oracle: p, q, and the variance v of one report outside a cell."""

    p: float
    q: float
    v: float


class Sampler(NamedTuple):
    """How the summed reports of an oracle are drawn.

    ``size`` ones in every report, which depend on each other, a share ``blanket`` of the reports
    whatever the user's cell; or size 0 for independent bits with the given chances.
    """

    domain: int
    size: int
    blanket: float
    chances: Chances


@kernel
def step_state(states: IntArray, h: int, S: int) -> int:
    """State at step h, clipped into range; a missing one counts as state 0."""
    return clip_index(states[h], S) if h < states.shape[0] else 0


@kernel
def step_reward(rewards: Array, h: int) -> int:
    """Reward of step h, clipped into [0, 1], in whole steps; a missing one counts as 0."""
    if h >= rewards.shape[0]:
        return 0
    return int(clip_reward(rewards[h]) * STEPS + 0.5)


@kernel
def cell_index(kind: int, s: int, rho: int, following: int, N: int) -> int:
    """Number of the cell in the domain of that kind of question, of N places.

    The end, if there is one, is the last place, and (end, 0, 0) the last cell: it has no others.
    """
    if kind == STEP:
        return (2 * s + rho) * N + following
    return s * N + following if kind == MOVE else 2 * s + rho


@kernel
def add_hits(
    hits: IntArray,
    n: int,
    kind: int,
    h: int,
    state: IntArray,
    number: IntArray,
    policy: IntArray,
    occupancy: IntArray,
    weighing: Weighing,
    sums: CellSums,
) -> None:
    """Add the summed reports ``hits`` [D] of n users about one question where the policy puts them.

    Place s, which is ``state`` [N] of policy and predictions, was met at step h with action pi_h;
    with it, it is pair ``number`` [N, A]. Reports about it weigh as much as its predicted
    ``occupancy`` [H, S] says (``report_weight``). About the end nothing is learned.
    """
    N = state.shape[0]
    source = 0 if kind == STEP else 1
    for s in range(sums.first.shape[1]):
        met = occupancy[h, state[s]]
        x = number[s, policy[h, state[s]]]
        place_hits = 0
        if kind != REWARD:
            g = h if sums.moves.shape[1] > 1 else 0
            w = report_weight(met, weighing.moves[source], weighing)
            for following in range(N):
                count = hits[cell_index(kind, s, 0, following, N)]
                if kind == STEP:
                    count += hits[cell_index(kind, s, 1, following, N)]
                sums.moves[source, g, x, following] += w * count
                place_hits += count
            sums.moves_weight[source, g, x] += w * n
            sums.moves_square[source, g, x] += w * w * n
            sums.moves_seen[source, g, x] += w * w * place_hits
        if kind != MOVE:
            g = h if sums.rewards.shape[1] > 1 else 0
            w = report_weight(met, weighing.rewards[source], weighing)
            place_hits = 0
            for rho in range(2):
                count = 0
                for following in range(N if kind == STEP else 1):
                    count += hits[cell_index(kind, s, rho, following, N)]
                sums.rewards[source, g, x, rho] += w * count
                place_hits += count
            sums.rewards_weight[source, g, x] += w * n
            sums.rewards_square[source, g, x] += w * w * n
            sums.rewards_seen[source, g, x] += w * w * place_hits
        if h == 0:
            sums.first[kind, s] += place_hits
    if h == 0:
        sums.first_users[kind] += n


@kernel
def unbiased(hits: float, reports: float, cells: int, oracle: Chances) -> float:
    """(hits - q n cells) / (p - q): how many of n users have one of the cells, without bias."""
    return (hits - oracle.q * cells * reports) / (oracle.p - oracle.q)


@kernel
def visit_weight(seen: float, total: float, square: float, weight: float) -> float:
    """Weight of the average visit behind a weighted count: sum w^2 n_visits / sum w n_visits.

    Both sums are noisy. Visits are likelier where reports weigh more, so the average over visits is
    at least that over reports, sum w^2 n / sum w n, which is public and exact; and at most 1.
    """
    least = square / weight if weight > 0.0 else 1.0
    return min(max(seen / total, least), 1.0) if total > 0.0 else least


@kernel
def estimate_counts(
    sums: CountedHits,
    oracles: tuple[Chances, Chances],
    joint: int,
    counts: Array,
    noise: Array,
    unit: Array,
) -> None:
    """Overwrite counts [G, X, n], the variance of their noise and the weight of a visit [G, X].

    A count adds up so many cells of the ``joint`` question, and one of the other.
    """
    hits, weight, square, seen = sums
    _, G, X, places = hits.shape
    step = 1.0 / WEIGHT_STEPS
    for x in range(X):
        for g in range(G):
            counts[g, x] = 0.0
            noise[g, x] = 0.0
            visits, total, squares, weights = 0.0, 0.0, 0.0, 0.0
            for source in range(2):
                oracle, cells = oracles[source], joint if source == 0 else 1
                reports = weight[source, g, x] * step
                squared = square[source, g, x] * step * step
                noise[g, x] += cells * oracle.v * squared
                own = seen[source, g, x] * step * step
                visits += unbiased(own, squared, cells * places, oracle)
                squares += squared
                weights += reports
                for n in range(places):
                    count = unbiased(hits[source, g, x, n] * step, reports, cells, oracle)
                    counts[g, x, n] += count
                    total += count
            unit[g, x] = visit_weight(visits, total, squares, weights)


@kernel
def estimate_cells(
    sums: CellSums, joint: Chances, move: Chances, reward: Chances, out: NoisyCounts, first: Array
) -> None:
    """Overwrite ``out`` and ``first`` [L] with what the sums of reports by the oracles estimate.

    A count of moves adds up two joint cells, a count of rewards N of them.
    """
    N = sums.moves.shape[3]
    moves = CountedHits(sums.moves, sums.moves_weight, sums.moves_square, sums.moves_seen)
    estimate_counts(moves, (joint, move), 2, out.moves, out.moves_variance, out.moves_unit)
    paid = CountedHits(sums.rewards, sums.rewards_weight, sums.rewards_square, sums.rewards_seen)
    estimate_counts(paid, (joint, reward), N, out.rewards, out.rewards_variance, out.rewards_unit)
    for s in range(sums.first.shape[1]):
        first[s] = 0.0
        for kind in range(3):
            oracle = joint if kind == STEP else (move if kind == MOVE else reward)
            cells = 2 * N if kind == STEP else (N if kind == MOVE else 2)
            hits = float(sums.first[kind, s])
            first[s] += unbiased(hits, float(sums.first_users[kind]), cells, oracle)
