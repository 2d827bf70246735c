"""Dynamic programming on tables: the model in, values and policies out.

Shapes: P [G, S, A, S], R [G', S, A], Q [H, S, A], V [H+1, S]; G and G' are 1 or H, separately.
Nothing here may import rollout, counts or sums: a planner cannot reach raw data.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel

TIE = 1e-12
"""Relative difference below which two action values count as equal."""


@kernel
def backward_induction(P: Array, R: Array, Q: Array, V: Array) -> None:
    """Bellman's recursion Q_h = min(Q_h as given, R + P V_{h+1}), V_h = max_a Q_h, V_{H+1} = 0.

    Q is both a bound and the result: filled with infinity it gives the exact optimum; filled with
    the last plan's Q (at first: H) it gives the monotone optimistic update of UCB-VI.
    """
    H, S, A = Q.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        p = h if P.shape[0] > 1 else 0
        r = h if R.shape[0] > 1 else 0
        for s in range(S):
            best = -np.inf
            for a in range(A):
                value = R[r, s, a]
                if h < H - 1:
                    for n in range(S):
                        value += P[p, s, a, n] * V[h + 1, n]
                if value < Q[h, s, a]:
                    Q[h, s, a] = value
                else:
                    value = Q[h, s, a]
                if value > best:
                    best = value
            V[h, s] = best


@kernel
def greedy(Q: Array, ties: np.random.Generator, actions: IntArray) -> bool:
    """Write argmax_a Q_h(s, a) into ``actions`` [H, S]; ties are drawn uniformly.

    Returns:
        Whether any entry of ``actions`` changed.
    """
    H, S, A = Q.shape
    changed = False
    for h in range(H):
        for s in range(S):
            best = Q[h, s, 0]
            for a in range(1, A):
                if Q[h, s, a] > best:
                    best = Q[h, s, a]
            bar = best - TIE * max(1.0, abs(best)) if abs(best) < np.inf else best
            equal = 0
            chosen = 0
            for a in range(A):
                if Q[h, s, a] >= bar:
                    equal += 1
                    chosen = a
            if equal > 1:
                skip = int(ties.random() * equal)
                for a in range(A):
                    if Q[h, s, a] >= bar:
                        if skip == 0:
                            chosen = a
                            break
                        skip -= 1
            if actions[h, s] != chosen:
                actions[h, s] = chosen
                changed = True
    return changed


@kernel
def policy_values(P: Array, R: Array, actions: IntArray, V: Array) -> None:
    """Exact V^pi of the deterministic policy ``actions`` [H, S], by backward induction."""
    H, S = actions.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        p = h if P.shape[0] > 1 else 0
        r = h if R.shape[0] > 1 else 0
        for s in range(S):
            a = actions[h, s]
            value = R[r, s, a]
            if h < H - 1:
                for n in range(S):
                    value += P[p, s, a, n] * V[h + 1, n]
            V[h, s] = value


@kernel
def stochastic_policy_values(P: Array, R: Array, probabilities: Array, V: Array) -> None:
    """Exact V^pi of a stochastic policy pi_h(a|s) [H, S, A]."""
    H, S, A = probabilities.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        p = h if P.shape[0] > 1 else 0
        r = h if R.shape[0] > 1 else 0
        for s in range(S):
            total = 0.0
            for a in range(A):
                if probabilities[h, s, a] == 0.0:
                    continue
                value = R[r, s, a]
                if h < H - 1:
                    for n in range(S):
                        value += P[p, s, a, n] * V[h + 1, n]
                total += probabilities[h, s, a] * value
            V[h, s] = total


@kernel
def start_value(initial: Array, V: Array) -> float:
    """Expected V_1 over the start law rho."""
    value = 0.0
    for s in range(initial.shape[0]):
        value += initial[s] * V[0, s]
    return value


@kernel
def optimistic_model(
    reward: Array,
    visits: Array,
    transitions: Array,
    known_reward: Array,
    width: float,
    P: Array,
    R: Array,
) -> None:
    """Empirical transitions into P [G, S, A, S], empirical rewards plus bonus into R [H, S, A].

    The bonus is ``width`` / sqrt(N), and infinite at N = 0 (then the caller's cap on Q holds). N
    counts observed transitions before the last stage and visits at the last one, where there is no
    next state: a pair that only the last stage reaches would otherwise stay optimistic for ever
    (the effect of docs/papers/tabular_ldp.md#e8).

    Args:
        reward: released reward sums R~(s, a) [G, S, A].
        visits: released visit counts N_r(s, a) [G, S, A].
        transitions: released transition counts N_p(s, a, s') [G, S, A, S].
        known_reward: mean rewards [G, S, A] where revealed, NaN where not.
        width: bonus at N = 1, that is 7 H L times the bonus scale
            (docs/papers/tabular_ldp.md#baselines).
        P: output.
        R: output.
    """
    H = R.shape[0]
    G, S, A = visits.shape
    for g in range(G):
        for s in range(S):
            for a in range(A):
                total = 0.0
                for n in range(S):
                    total += transitions[g, s, a, n]
                for n in range(S):
                    P[g, s, a, n] = transitions[g, s, a, n] / total if total > 0.0 else 0.0
                seen = visits[g, s, a]
                mean = known_reward[g, s, a]
                final = mean
                if np.isnan(mean):
                    mean = reward[g, s, a] / seen if seen > 0.0 else 0.0
                    final = mean + width / np.sqrt(seen) if seen > 0.0 else np.inf
                early = mean + width / np.sqrt(total) if total > 0.0 else np.inf
                if G == 1:
                    for h in range(H - 1):
                        R[h, s, a] = early
                    R[H - 1, s, a] = final
                else:
                    R[g, s, a] = final if g == H - 1 else early
