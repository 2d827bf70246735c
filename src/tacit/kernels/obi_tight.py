"""The tighter widths of LDP-OBI (docs/papers/tabular_ldp.md#b7).

No shift of the denominators: the statistic R~ - r N~ has mean 0 at the true reward r, whatever the
noise in N~, so r <= (R~ + width) / N~ wherever N~ > 0; the same for the transitions in the one
direction V_{h+1} that planning asks about. Noise is bounded by its sub-gamma tail, uniformly in
time: within an epoch, in which the number of reports grows by the factor GROWTH, one exponential
martingale serves all of them, so the union runs over epochs and not over users.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.obi import BOUNDED, EXACT, LAPLACE, RESPONSE, CellNoise

GROWTH = 1.1
"""By how much counts grow in an epoch: longer epochs need a smaller logarithm but a wider bound.
This one gives widths within 0.5% of the best, for 10^4 to 10^8 users of
random-mdp (S = A = H = 2) and river-swim (S = 6, H = 20)."""


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
    epoch = 1.0 + np.floor(np.log(max(1.0, float(n * H))) / np.log(GROWTH))
    log = np.log(4.0 * S * A * H * epoch * (epoch + 1.0) / beta)
    return Tails(GROWTH * n * one, GROWTH * n * each, linear, log)


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
    scatter = span * np.sqrt(0.5 * GROWTH * max(1.0, count + count_noise) * log)
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
    reward: Array, visits: Array, transitions: Array, tails: Tails, Q: Array, V: Array
) -> None:
    """Fill Q [H, S, A] (not clipped: the policy is its argmax) and V = min(H-h+1, max_a Q).

    Q_h = upper bound on r + upper bound on p V_{h+1}; the last step has no second part. Where a
    count that would be divided by is not positive, Q_h is its largest value H-h+1. The width of
    p V_{h+1} is that of a fixed direction. Pooled tables only [1, S, A].
    """
    H, S, A = Q.shape
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
            best = -np.inf
            for a in range(A):
                count = 0.0
                total = 0.0
                for n in range(S):
                    count += transitions[0, s, a, n]
                    total += transitions[0, s, a, n] * V[h + 1, n]
                value = most
                if visits[0, s, a] > 0.0 and (count > 0.0 or h == H - 1):
                    value = reward_bound(reward[0, s, a], visits[0, s, a], tails)
                    if h < H - 1:
                        value += value_bound(total, count, S, high - low, spread, tails)
                Q[h, s, a] = value
                if value > best:
                    best = value
            V[h, s] = min(best, most)
