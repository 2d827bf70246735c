"""Optimistic backward induction on noisy counts: LDP-OBI by whichever widths are chosen.

The paper's and the corrected widths are those of docs/papers/tabular_ldp.md#ldp-obi. The tight ones
(docs/papers/tabular_ldp.md#b7) do not shift denominators: the statistic R~ - r N~ has mean 0 at the
true reward r, whatever the noise in N~, so r <= (R~ + width) / N~ wherever N~ > 0; the same for the
transitions in the one direction V_{h+1} that planning asks about. Noise is bounded by its sub-gamma
tail, uniformly in time: within an epoch, in which the number of reports grows by the factor GROWTH,
one exponential martingale serves all of them, so the union runs over epochs and not over users.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray, Rows, VisitTables
from tacit.kernels import kernel

LAPLACE, GAUSSIAN, BOUNDED, RESPONSE, EXACT = range(5)

KINDS = {
    "laplace": LAPLACE,
    "gaussian": GAUSSIAN,
    "bounded": BOUNDED,
    "randomized-response": RESPONSE,
    "none": EXACT,
}
"""Noise laws by name, as kernels know them."""


PAPER, CORRECTED, TIGHT, BERNSTEIN = range(4)

WIDTHS = {"paper": PAPER, "corrected": CORRECTED, "tight": TIGHT, "bernstein": BERNSTEIN}
"""Widths by name, as kernels know them."""

EPOCH_GROWTH = 1.1
"""By how much counts grow in an epoch: longer epochs need a smaller logarithm but a wider bound.
This one gives widths within 0.5% of the best, for 10^4 to 10^8 users of
random-mdp (S = A = H = 2) and river-swim (S = 6, H = 20); no script of it is kept."""


class CellNoise(NamedTuple):
    """The law of one report's noise, as much as widths need of it.

    ``scale`` is that of a cell of R~ and N_r~, ``next_scale`` that of a cell of N_p~: the b of
    Laplace noise, a standard deviation, a radius, or the range 1 / (p - q) of a debiased bit.
    """

    kind: int
    scale: float
    next_scale: float


class Precision(NamedTuple):
    """How far the released tables may be from the truth, and the constants of the bonus.

    ``c1`` to ``c4`` bound the noise of R~, N_r~, sum_s' N_p~ and one cell of N_p~; ``alpha`` > 1
    shifts denominators, which are then raised to ``least``; ``log`` is
    ln(4 pi^2 S A H k^3 / (3 beta)).
    """

    c1: float
    c2: float
    c3: float
    c4: float
    alpha: float
    log: float
    least: float


@kernel
def noise_bounds(
    noise: CellNoise, n: int, sizes: tuple[int, int, int], confidence: float, width: int
) -> tuple[float, float, float]:
    """c1 = c2, c3 and c4: bounds on the noise of n reports that hold with that confidence d.

    See docs/papers/tabular_ldp.md#precisions. Laplace: c1 = c2 = max(sqrt k, L1) sqrt(8 L1) b, c3 =
    max(sqrt(kS), L2) sqrt(8 L2) b, c4 = c3 / sqrt S. Gaussian: sigma sqrt(2 n L), at least 1; as in
    the paper without the 2 and with L1 throughout (docs/papers/tabular_ldp.md#e4). Randomized
    response: w sqrt(n H / 2 ln(8SA / d)), at least 1, with the range w = (e+1) / (e-1) of a
    debiased bit; in the paper (2e-1) / (e-1) = (w+3) / 2 and 4SA (docs/papers/tabular_ldp.md#e5).
    Bounded: R sqrt(2 n L), which is 0 before the first report. Bernstein widths are those of bits
    in the shuffle appendix (docs/papers/tabular_ldp.md#shuffling): w (sqrt(n H p (1 - p/2) L) + 2 L
    / 3), where a bit is a fair coin with chance p = 1 - 1 / w; for the sum over s' S times that.
    """
    S, A, H = sizes
    k = n + 1.0
    paper = width == PAPER
    c1 = c3 = c4 = 0.0
    if noise.kind == RESPONSE and width == BERNSTEIN:
        spread = 0.5 * n * H * (1.0 - 1.0 / noise.scale**2)
        one = np.log(6.0 * S * A / confidence)
        every = np.log(6.0 * S * S * A / confidence)
        c1 = noise.scale * (np.sqrt(spread * one) + 2.0 * one / 3.0)
        c4 = noise.scale * (np.sqrt(spread * every) + 2.0 * every / 3.0)
        c3 = float(S) * c4
    elif noise.kind == RESPONSE:
        family = (4.0 if paper else 8.0) * S * A / confidence
        span = 0.5 * (noise.scale + 3.0) if paper else noise.scale
        sums = span * np.sqrt(0.5 * n * H * np.log(family))
        c1 = max(1.0, sums)
        c3 = max(1.0, S * sums)
        c4 = max(1.0, span * np.sqrt(0.5 * n * H * np.log(S * family)))
    elif noise.kind != EXACT:
        one = np.log(6.0 * S * A / confidence)
        every = np.log(6.0 * S * S * A / confidence)
        if noise.kind == GAUSSIAN:
            factor = 1.0 if paper else 2.0
            wide = one if paper else every
            c1 = max(noise.scale * np.sqrt(factor * n * one), 1.0)
            c3 = max(noise.scale * np.sqrt(factor * n * S * wide), 1.0)
            c4 = max(noise.scale * np.sqrt(factor * n * wide), 1.0)
        elif noise.kind == BOUNDED:
            c1 = noise.scale * np.sqrt(2.0 * n * one)
            c4 = noise.next_scale * np.sqrt(2.0 * n * every)
            c3 = c4 * np.sqrt(float(S))
        else:
            c1 = max(np.sqrt(k), one) * np.sqrt(8.0 * one) * noise.scale
            c3 = max(np.sqrt(k * S), every) * np.sqrt(8.0 * every) * noise.scale
            c4 = c3 / np.sqrt(float(S))
    return c1, c3, c4


@kernel
def obi_precision(
    noise: CellNoise,
    n: int,
    sizes: tuple[int, int, int],
    alpha: float,
    beta: float,
    width: int,
) -> Precision:
    """Widths before episode k = n + 1, from n reports with noise of that law.

    Without noise all bounds are 0, and the least denominator is 1.

    Args:
        noise: of one report.
        n: number of reports.
        sizes: S, A, H.
        alpha: shift of the denominators.
        beta: failure probability.
        width: which of ``WIDTHS``.
    """
    S, A, H = sizes
    k = n + 1.0
    confidence = 3.0 * beta / (2.0 * np.pi**2 * k**2)
    log = np.log(4.0 * np.pi**2 * S * A * H * k**3 / (3.0 * beta))
    c1, c3, c4 = noise_bounds(noise, n, sizes, confidence, width)
    least = 1.0 if noise.kind == EXACT else -np.inf
    return Precision(c1, c1, c3, c4, alpha, log, least)


@kernel
def denominators(visits: float, count: float, precision: Precision) -> tuple[float, float]:
    """N_r~ and the sum of N_p~ of a pair, shifted and raised to the least denominator."""
    dr = max(visits + precision.alpha * precision.c2, precision.least)
    dp = max(count + precision.alpha * precision.c3, precision.least)
    return dr, dp


@kernel
def optimistic_reward(reward: float, dr: float, precision: Precision) -> float:
    """r~ + beta_r of a pair with shifted denominator dr > 0."""
    noise = (precision.alpha + 1.0) * precision.c2
    return float((reward + noise + precision.c1) / dr + np.sqrt(2.0 * precision.log / dr))


@kernel
def transition_bonus(dp: float, S: int, precision: Precision) -> float:
    """beta_p of a pair with shifted denominator dp > 0."""
    noise = S * precision.c4 + (precision.alpha + 1.0) * precision.c3
    return float(np.sqrt(14.0 * S * precision.log / dp) + noise / dp)


@kernel
def obi_induction(
    first: IntArray,
    rows: Rows,
    counts: VisitTables,
    end_reward: float,
    precision: Precision,
    paper: bool,
    Q: Array,
    V: Array,
) -> None:
    """Fill Q [H, X] (not clipped: the policy is its argmax) and V = min(H-h+1, max_a Q).

    Q_h = r~ + beta_r + w_h beta_p + p~ V_{h+1} with signed, sub-normalised p~. In the paper
    w_h = H-h+1; corrected (docs/papers/tabular_ldp.md#e8) w_h = H-h, so that the last step pays no
    transition bonus. Where a denominator is not positive Q_h is its largest value H-h+1. Pairs and
    lists of next states, which have every state whose count is not 0, are those of
    ``kernels.public.planning``; one stage for all: counts are [1, X] and [1, X, S].
    """
    begin, end, succ = rows
    reward, _, visits, transitions = counts
    H, X, S = Q.shape[0], Q.shape[1], first.shape[0] - 1
    totals = np.zeros(X)
    for s in range(S):
        V[H, s] = 0.0
    for x in range(X):  # what does not depend on V, once for all steps
        for i in range(np.uint64(begin[0, x]), np.uint64(end[0, x])):
            totals[x] += transitions[0, x, succ[i]]
        dr, dp = denominators(visits[0, x], totals[x], precision)
        gain = optimistic_reward(reward[0, x], dr, precision) if dr > 0.0 else 0.0
        bonus = transition_bonus(dp, S, precision) if dp > 0.0 else 0.0
        for h in range(H):
            most = float(H - h)
            weight = most if paper else most - 1.0
            known = dr > 0.0 and (dp > 0.0 or weight == 0.0)
            Q[h, x] = gain + weight * bonus if known else most
    for h in range(H - 1, -1, -1):
        for s in range(S):
            if first[s] == first[s + 1]:
                V[h, s] = (H - h) * end_reward
                continue
            best = -np.inf
            for x in range(first[s], first[s + 1]):
                value = Q[h, x]
                dr, dp = denominators(visits[0, x], totals[x], precision)
                if h < H - 1 and dr > 0.0 and dp > 0.0:
                    for i in range(np.uint64(begin[0, x]), np.uint64(end[0, x])):
                        value += transitions[0, x, succ[i]] / dp * V[h + 1, succ[i]]
                    Q[h, x] = value
                if value > best:
                    best = value
            V[h, s] = min(best, float(H - h))


class Tails(NamedTuple):
    """Sub-gamma tails of the released tables: |noise| <= sqrt(2 v log) + linear * log.

    ``visits`` and ``cell`` are the variance proxies v of a cell of R~ and N_r~, and of N_p~, summed
    over the reports; ``log`` is the logarithm of the union bound.
    """

    visits: float
    cell: float
    linear: float
    log: float


@kernel
def obi_tails(noise: CellNoise, n: int, sizes: tuple[int, int, int], beta: float) -> Tails:
    """Tails of n reports; valid at all n together with probability 1 - beta.

    Variance proxy of one report: 2 b^2 with linear term b (Laplace), sigma^2, bits w^2 / 4
    (Hoeffding), R^2 / (2e) (bounded noise: its potential has second derivative >= 2e / R^2).
    The union is over 4 S A H families and over epochs e: log = ln(4 S A H e (e+1) / beta).
    """
    S, A, H = sizes
    linear = 0.0
    if noise.kind == LAPLACE:
        one = 2.0 * noise.scale**2
        each = 2.0 * noise.next_scale**2
        linear = max(noise.scale, noise.next_scale)
    elif noise.kind == BOUNDED:
        one = noise.scale**2 / (2.0 * np.e)
        each = noise.next_scale**2 / (2.0 * np.e)
    elif noise.kind == RESPONSE:
        one = 0.25 * H * noise.scale**2
        each = 0.25 * (H - 1) * noise.next_scale**2
    elif noise.kind == EXACT:
        one = 0.0
        each = 0.0
    else:
        one = noise.scale**2
        each = noise.next_scale**2
    epoch = 1.0 + np.floor(np.log(max(1.0, float(n * H))) / np.log(EPOCH_GROWTH))
    log = np.log(4.0 * S * A * H * epoch * (epoch + 1.0) / beta)
    return Tails(EPOCH_GROWTH * n * one, EPOCH_GROWTH * n * each, linear, log)


@kernel
def tail(proxy: float, linear: float, log: float) -> float:
    """Width of a sub-gamma variable at error probability e^-log."""
    return float(np.sqrt(2.0 * proxy * log) + linear * log)


@kernel
def mean_bound(
    total: float, count: float, span: float, count_noise: float, noise: float, log: float
) -> float:
    """Upper bound on a mean from a noisy sum and a noisy count > 0 of terms of range ``span``.

    The terms scatter like sqrt(count log / 2), for the largest count that the noise allows.
    """
    scatter = span * np.sqrt(0.5 * EPOCH_GROWTH * max(1.0, count + count_noise) * log)
    return float((total + scatter + noise) / count)


@kernel
def reward_bound(reward: float, count: float, tails: Tails) -> float:
    """Upper bound on the mean reward of a pair; the noise of R~ - r N~ is worst at r = 1."""
    noise = tail(2.0 * tails.visits, tails.linear, tails.log)
    count_noise = tail(tails.visits, tails.linear, tails.log)
    return mean_bound(reward, count, 1.0, count_noise, noise, tails.log)


@kernel
def value_bound(
    total: float, count: float, S: int, span: float, spread: float, tails: Tails
) -> float:
    """Upper bound on p V from sum N_p~ V; ``spread`` >= sum (V - pV)^2, ``span`` the range of V."""
    noise = tail(spread * tails.cell, span * tails.linear, tails.log)
    count_noise = tail(S * tails.cell, tails.linear, tails.log)
    return mean_bound(total, count, span, count_noise, noise, tails.log)


@kernel
def tight_induction(
    first: IntArray,
    rows: Rows,
    counts: VisitTables,
    end_reward: float,
    tails: Tails,
    Q: Array,
    V: Array,
) -> None:
    """Fill Q [H, X] (not clipped: the policy is its argmax) and V = min(H-h+1, max_a Q).

    Q_h = upper bound on r + upper bound on p V_{h+1}; the last step has no second part. Where a
    count that would be divided by is not positive, Q_h is its largest value H-h+1. The width of
    p V_{h+1} is that of a fixed direction. One stage for all, as in ``obi_induction``.
    """
    begin, end, succ = rows
    reward, _, visits, transitions = counts
    H, S = Q.shape[0], first.shape[0] - 1
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        most = float(H - h)
        low = V[h + 1, 0]
        high = V[h + 1, 0]
        for n in range(1, S):
            low = min(low, V[h + 1, n])
            high = max(high, V[h + 1, n])
        above = 0.0
        below = 0.0
        for n in range(S):
            above += (V[h + 1, n] - low) ** 2
            below += (V[h + 1, n] - high) ** 2
        spread = max(above, below)
        for s in range(S):
            if first[s] == first[s + 1]:
                V[h, s] = most * end_reward
                continue
            best = -np.inf
            for x in range(first[s], first[s + 1]):
                count = 0.0
                total = 0.0
                for i in range(np.uint64(begin[0, x]), np.uint64(end[0, x])):
                    seen = transitions[0, x, succ[i]]
                    count += seen
                    total += seen * V[h + 1, succ[i]]
                value = most
                if visits[0, x] > 0.0 and (count > 0.0 or h == H - 1):
                    value = reward_bound(reward[0, x], visits[0, x], tails)
                    if h < H - 1:
                        value += value_bound(total, count, S, high - low, spread, tails)
                Q[h, x] = value
                if value > best:
                    best = value
            V[h, s] = min(best, most)


class BonusRule(NamedTuple):
    """How optimistic LDP-OBI is: which widths, shift of denominators, failure probability."""

    width: int
    alpha: float
    beta: float


@kernel
def obi_values(
    first: IntArray,
    rows: Rows,
    counts: VisitTables,
    end_reward: float,
    noise: CellNoise,
    n: int,
    actions: int,
    rule: BonusRule,
    Q: Array,
    V: Array,
) -> None:
    """Fill Q [H, X] and V [H+1, S] from the release of n reports.

    The union bounds count S A pairs, A being the number of ``actions``, whatever is allowed.
    """
    H, S = Q.shape[0], first.shape[0] - 1
    sizes = (S, actions, H)
    if rule.width == TIGHT:
        tails = obi_tails(noise, n, sizes, rule.beta)
        tight_induction(first, rows, counts, end_reward, tails, Q, V)
    else:
        precision = obi_precision(noise, n, sizes, rule.alpha, rule.beta, rule.width)
        paper = rule.width == PAPER
        obi_induction(first, rows, counts, end_reward, precision, paper, Q, V)


@kernel
def first_bonus(noise: CellNoise, n: int, sizes: tuple[int, int, int], rule: BonusRule) -> float:
    """Bonus of step 1 for a pair (s, a) that all n users visited at all of their steps.

    For the tight widths, in the direction of one state worth H - 1 and the others nothing.
    """
    S, A, H = sizes
    if rule.width == TIGHT:
        tails = obi_tails(noise, n, sizes, rule.beta)
        bonus = reward_bound(0.0, float(n * H), tails)
        if H > 1:
            most = H - 1.0
            spread = max(1.0, S - 1.0) * most**2
            bonus += value_bound(0.0, float(n * (H - 1)), S, most, spread, tails)
        return bonus
    precision = obi_precision(noise, n, sizes, rule.alpha, rule.beta, rule.width)
    bonus = optimistic_reward(0.0, n * H + precision.alpha * precision.c2, precision)
    weight = H if rule.width == PAPER else H - 1
    if weight > 0:
        dp = n * (H - 1) + precision.alpha * precision.c3
        bonus += weight * transition_bonus(dp, S, precision)
    return bonus
