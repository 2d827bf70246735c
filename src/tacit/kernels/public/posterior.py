"""One draw of a tabular model from its posterior: as PSRL plans with it, and from noisy counts.

Released counts carry noise of known variance (docs/papers/tabular_ldp.md#b3). A draw of the model
first draws what the exact counts may have been (counts plus noise of that variance, projected to
what counts can be), then the model given those counts; as the noise vanishes this becomes PSRL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray, Rows, VisitTables
from tacit.kernels import kernel
from tacit.kernels.public.questions import WEIGHT_STEPS

FLOOR = 1e-9
"""Least value of a posterior parameter, and of a draw that is divided by: noisy counts can be
negative (docs/papers/tabular_ldp.md#ldp-psrl)."""


class DirichletPrior(NamedTuple):
    """Dirichlet(alpha0) transitions and normal-gamma(mu0 = 0, lambda0, nu0, beta0) rewards."""

    alpha0: float
    lambda0: float
    nu0: float
    beta0: float


@kernel
def sample_model(
    counts: VisitTables,
    rows: Rows,
    known_reward: Array,
    prior: DirichletPrior,
    rng: np.random.Generator,
    P: Array,
    rest: Array,
    R: Array,
) -> None:
    """Draw chances of the listed next states into P, mean rewards into R [G, X], of pairs x.

    Posterior of docs/papers/tabular_ldp.md#ldp-psrl with mu0 = 0: alpha = alpha0 + N_p,
    lambda = lambda0 + N_r, nu = nu0 + N_r / 2, mu = R~ / lambda, beta = beta0 + R2~ / 2 - R~^2 / (2
    lambda); then p ~ Dirichlet(alpha), tau ~ Gamma(nu, rate beta), r ~ N(mu, 1 / (lambda tau)).
    Parameters are raised to FLOOR, which exact counts never need.

    A pair may list only the next states that were seen: then
    the chance of all others together goes into ``rest`` [G, X], drawn from its own law; only how it
    is split among them is not drawn. ``rest`` may have no cells where every pair lists all states.
    """
    reward, reward_squares, visits, transitions = counts
    begin, end, succ = rows
    G, X, states = transitions.shape
    for g in range(G):
        for x in range(X):
            total = 0.0
            for i in range(np.uint64(begin[g, x]), np.uint64(end[g, x])):
                draw = rng.standard_gamma(max(prior.alpha0 + transitions[g, x, succ[i]], FLOOR))
                P[i] = draw
                total += draw
            listed = end[g, x] - begin[g, x]
            others = 0.0
            if listed < states:
                others = rng.standard_gamma(prior.alpha0 * (states - listed))
                total += others
            if total > 0.0:
                for i in range(np.uint64(begin[g, x]), np.uint64(end[g, x])):
                    P[i] /= total
                others /= total
            else:  # every gamma underflowed: the limit law puts all mass on one state
                chosen = int(rng.random() * states)
                if chosen < listed:
                    P[begin[g, x] + chosen] = 1.0
                else:
                    others = 1.0
            if rest.shape[0] > 0:
                rest[g, x] = others
            if not np.isnan(known_reward[g, x]):
                R[g, x] = known_reward[g, x]
                continue
            count = visits[g, x]
            precision = max(prior.lambda0 + count, FLOOR)
            shape = max(prior.nu0 + 0.5 * count, FLOOR)
            mean = reward[g, x] / precision
            rate = prior.beta0 + 0.5 * (reward_squares[g, x] - mean * reward[g, x])
            tau = max(rng.standard_gamma(shape), FLOOR) / max(rate, FLOOR)
            R[g, x] = mean + rng.standard_normal() / np.sqrt(precision * tau)


LEAST_TOTAL = 1e-9
"""A total below this says nothing."""

FULL_NOISE_SHARE = 0.1
"""Share of draws that perturb the counts by the whole noise and count every visit once.

A tenth keeps a learner from being stuck with an unlucky estimate. Not measured: other shares.
"""

LESS_NOISE, MORE_VISITS = 0.5, 2.0
"""All other draws perturb by this share of the noise's standard deviation and count every visit
this often. Chosen on problems other than those reported, against 0.3, 0.4, 0.7 and 1, and against
1 and 4; no script of it is kept. ``benchmarks/local.py fresh`` measures them on problems that they
were not chosen on."""


class NoisyCounts(NamedTuple):
    """Released counts of pairs x, the variance of their noise, and what they are made of.

    Weighted counts of moves and rewards; the variance of the noise in one cell of them; and the
    weight of the average visit behind them, so that count / unit is a number of visits.
    """

    moves: Array  # of (x, s') [G, X, N]
    rewards: Array  # of (x, rho) [G', X, 2]
    moves_variance: Array  # [G, X]
    rewards_variance: Array  # [G', X]
    moves_unit: Array  # [G, X]
    rewards_unit: Array  # [G', X]


def noisy_counts(
    blocks: Mapping[str, Array], moves_variance: Array, rewards_variance: Array
) -> NoisyCounts:
    """The blocks of a release and the variances of its noise, as kernels take them: by pairs."""
    moves, rewards = blocks["moves"], blocks["rewards"]
    pairs = int(np.prod(moves.shape[1:-1]))
    at, of = (len(moves), pairs), (len(rewards), pairs)
    return NoisyCounts(
        moves.reshape(*at, moves.shape[-1]),
        rewards.reshape(*of, 2),
        moves_variance.reshape(at),
        rewards_variance.reshape(of),
        blocks["moves_unit"].reshape(at),
        blocks["rewards_unit"].reshape(of),
    )


@kernel
def project(y: Array, total: float) -> None:
    """Overwrite y by the nearest point (Euclidean) with entries >= 0 that add up to total > 0.

    The point is max(y - t, 0); the shift t is found by dropping entries that fall below zero. The
    largest entry is moved to 0 first: then t < 0 whatever is rounded, and it is never dropped.
    """
    top = np.max(y)
    for i in range(y.shape[0]):
        y[i] -= top
    low = -np.inf
    while True:
        count = 0
        mass = 0.0
        for i in range(y.shape[0]):
            if y[i] > low:
                count += 1
                mass += y[i]
        shift = (mass - total) / count
        dropped = False
        for i in range(y.shape[0]):
            if low < y[i] <= shift:
                dropped = True
        if not dropped:
            break
        low = shift
    for i in range(y.shape[0]):
        y[i] = max(y[i] - shift, 0.0)


@kernel
def sample_dirichlet(alpha: Array, rng: np.random.Generator, out: Array) -> None:
    """A draw of Dirichlet(alpha) into ``out``; entries of alpha may be very small, not all 0."""
    total = 0.0
    weight = 0.0
    for i in range(alpha.shape[0]):
        out[i] = rng.standard_gamma(alpha[i])
        total += out[i]
        weight += alpha[i]
    if total > 0.0:
        for i in range(alpha.shape[0]):
            out[i] /= total
        return
    mark = rng.random() * weight  # every gamma underflowed: the limit law is all mass on one entry
    chosen = 0
    while chosen < alpha.shape[0] - 1 and mark >= alpha[chosen]:
        mark -= alpha[chosen]
        chosen += 1
    out[chosen] = 1.0


@kernel
def sample_noisy_model(
    counts: NoisyCounts,
    rng: np.random.Generator,
    y: Array,
    P: Array,
    R: Array,
) -> None:
    """Draw next-state laws into P [G, X, S] and mean rewards into R [G', X].

    With c = counts plus noise: p ~ Dirichlet(projection of c onto counts of the same total, in
    visits, plus 1 / S), r ~ Beta(m + 1/2, N - m + 1/2) with m the part of rho = 1, clipped into
    [0, N], in visits. One coin decides for the whole draw how much noise and how sure
    (``FULL_NOISE_SHARE``).

    Args:
        counts: as released.
        rng: the posterior stream.
        y: work space [S].
        P: overwritten.
        R: overwritten.
    """
    moves, rewards, moves_variance, rewards_variance, moves_unit, rewards_unit = counts
    G, X, S = P.shape
    full = rng.random() < FULL_NOISE_SHARE
    share = 1.0 if full else LESS_NOISE
    repeat = 1.0 if full else MORE_VISITS
    for g in range(G):
        for x in range(X):
            std = share * np.sqrt(moves_variance[g, x])
            total = 0.0
            for n in range(S):
                y[n] = moves[g, x, n] + std * rng.standard_normal()
                total += y[n]
            if total > LEAST_TOTAL:
                project(y, total)
                y *= repeat / moves_unit[g, x]
                y += 1.0 / S
            else:
                y[:] = 1.0
            sample_dirichlet(y, rng, P[g, x])
    for g in range(R.shape[0]):
        for x in range(X):
            std = share * np.sqrt(rewards_variance[g, x])
            none = rewards[g, x, 0] + std * rng.standard_normal()
            one = rewards[g, x, 1] + std * rng.standard_normal()
            total = none + one
            if total > LEAST_TOTAL:
                visits = repeat / rewards_unit[g, x]
                one = min(max(one, 0.0), total)
                up = rng.standard_gamma(one * visits + 0.5)
                R[g, x] = up / (up + rng.standard_gamma((total - one) * visits + 0.5))
            else:
                R[g, x] = rng.random()


@kernel
def predict_occupancy(
    first: Array,
    users: float,
    number: IntArray,
    rows: Rows,
    P: Array,
    actions: IntArray,
    floor: float,
    f: Array,
    steps: IntArray,
) -> None:
    """Chance of being in s at step h, into f [H, S]; at least ``floor``, into ``steps`` [H, S].

    The latter in whole steps of 1 / WEIGHT_STEPS. Start law: projection of ``first`` / ``users``,
    over as many states as it has, the first ones. ``number`` [S, A] is that of a pair, whose next
    states succ[i] have chance P[i], begin <= i < end; who is in a terminal state stays.
    """
    begin, end, succ = rows
    H, S = actions.shape
    f[0] = 0.0
    L = first.shape[0]
    for s in range(L):
        f[0, s] = first[s] / max(users, 1.0)
    project(f[0, :L], 1.0)
    for h in range(H):
        for s in range(S):
            steps[h, s] = np.int64(np.rint(max(f[h, s], floor) * WEIGHT_STEPS))
        if h == H - 1:
            break
        g = h if begin.shape[0] > 1 else 0
        f[h + 1] = 0.0
        for s in range(S):
            x = number[s, actions[h, s]]
            if x < 0:
                f[h + 1, s] += f[h, s]
                continue
            for i in range(np.uint64(begin[g, x]), np.uint64(end[g, x])):
                f[h + 1, succ[i]] += f[h, s] * P[i]


@kernel
def sample_joint_model(
    counts: Array,
    paid: Array,
    known_reward: Array,
    tried: IntArray,
    count_std: float,
    paid_std: float,
    rng: np.random.Generator,
    P: Array,
    R: Array,
) -> None:
    """Draw next-state laws into P [G, X, S] and mean rewards into R [G, X].

    As docs/papers/tabular_ldp.md#b3 does it. First what the exact counts may have been: counts plus
    noise of that size, with the same total, projected to be non-negative. Then the model given
    them: Dirichlet(counts + 1 / S) and Beta(m + 1/2, N - m + 1/2), m = N / 2 + paid.
    Pairs that no published policy has tried have no data: they are drawn from the prior.
    """
    G, X, S = counts.shape
    y = np.empty(S)
    for g in range(G):
        for x in range(X):
            total = 0.0
            for n in range(S):
                y[n] = counts[g, x, n] + count_std * rng.standard_normal()
                total += y[n]
            seen = total if tried[g, x] > 0 else 0.0
            if seen > LEAST_TOTAL:
                project(y, seen)
                y += 1.0 / S
            else:
                y[:] = 1.0
            sample_dirichlet(y, rng, P[g, x])
            noise = paid_std * rng.standard_normal()
            if known_reward.shape[0] > 0:
                R[g, x] = known_reward[g, x]
            elif seen > LEAST_TOTAL:
                good = min(max(0.5 * seen + paid[g, x] + noise, 0.0), seen)
                up = rng.standard_gamma(good + 0.5)
                R[g, x] = up / (up + rng.standard_gamma(seen - good + 0.5))
            else:
                R[g, x] = rng.random()
