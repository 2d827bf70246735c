"""Dynamic programming on tables: the model in, values and policies out.

A model lies over declared pairs x of a state and an action (``tacit.task.pairs``): the pairs of
state s are first[s] <= x < first[s + 1], those of a terminal state none, and its steps pay
``end_reward``. The next states of pair x at stage g are succ[i] with chance P[i], begin[g, x] <= i
< end[g, x] (``Rows``): a dense table is the case of S next states each, and the cost is O(H n) for
n of them in all. Shapes: R [G', X], Q [H, X], V [H+1, S]; G and G' are 1 or H, separately.

Loops over pairs and lists run over unsigned numbers: compiled code then need not ask whether an
index is negative. So a dense table costs 1.06 times what a kernel for dense tables alone does
(measured at S = 6 and 30), and lists of next states what there is in them.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray, Rows, VisitTables
from tacit.kernels import kernel

TIE = 1e-12
"""Relative difference below which two action values count as equal."""


@kernel
def backward_induction(
    first: IntArray,
    rows: Rows,
    P: Array,
    rest: Array,
    R: Array,
    end_reward: float,
    Q: Array,
    V: Array,
) -> None:
    """Bellman's recursion Q_h = min(Q_h as given, R + P V_{h+1}), V_h = max_a Q_h, V_{H+1} = 0.

    Q is both a bound and the result: filled with infinity it gives the exact optimum; filled with
    the last plan's Q (at first: H) it gives the monotone optimistic update of UCB-VI.

    ``rest`` [G, X] is the chance of all other next states together, each as likely as the others;
    it may have no cells: then there are no others.
    """
    begin, end, succ = rows
    H, S = Q.shape[0], first.shape[0] - 1
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        g = h if begin.shape[0] > 1 else 0
        r = h if R.shape[0] > 1 else 0
        everywhere = 0.0
        if rest.shape[0] > 0:
            for s in range(S):
                everywhere += V[h + 1, s]
        for s in range(S):
            if first[s] == first[s + 1]:
                V[h, s] = (H - h) * end_reward
                continue
            best = -np.inf
            for x in range(np.uint64(first[s]), np.uint64(first[s + 1])):
                value = R[r, x]
                if h < H - 1:
                    low, high = np.uint64(begin[g, x]), np.uint64(end[g, x])
                    if end[g, x] - begin[g, x] == S:  # all states, in line
                        for n in range(S):
                            value += P[low + np.uint64(n)] * V[h + 1, n]
                    else:
                        for i in range(low, high):
                            value += P[i] * V[h + 1, succ[i]]
                    if rest.shape[0] > 0 and rest[g, x] > 0.0:
                        others = everywhere
                        for i in range(low, high):
                            others -= V[h + 1, succ[i]]
                        value += rest[g, x] * others / (S - end[g, x] + begin[g, x])
                if value < Q[h, x]:
                    Q[h, x] = value
                else:
                    value = Q[h, x]
                if value > best:
                    best = value
            V[h, s] = best


@kernel
def greedy(
    first: IntArray, action: IntArray, Q: Array, ties: np.random.Generator, actions: IntArray
) -> bool:
    """Write the action of the pair of largest Q_h into ``actions`` [H, S]; ties drawn uniformly.

    Terminal states keep theirs: nobody acts there.

    Returns:
        Whether any entry of ``actions`` changed.
    """
    H, S = actions.shape
    changed = False
    for h in range(H):
        for s in range(S):
            low, high = first[s], first[s + 1]
            if low == high:
                continue
            best = Q[h, low]
            for x in range(low + 1, high):
                if Q[h, x] > best:
                    best = Q[h, x]
            bar = best - TIE * max(1.0, abs(best)) if abs(best) < np.inf else best
            equal = 0
            chosen = low
            for x in range(low, high):
                if Q[h, x] >= bar:
                    equal += 1
                    chosen = x
            if equal > 1:
                skip = int(ties.random() * equal)
                for x in range(low, high):
                    if Q[h, x] >= bar:
                        if skip == 0:
                            chosen = x
                            break
                        skip -= 1
            if actions[h, s] != action[chosen]:
                actions[h, s] = action[chosen]
                changed = True
    return changed


@kernel
def policy_values(
    number: IntArray, rows: Rows, P: Array, R: Array, end_reward: float, actions: IntArray, V: Array
) -> None:
    """Exact V^pi of the deterministic policy ``actions`` [H, S], by backward induction.

    ``number`` [S, A] is that of a pair; a state is terminal where the policy's action has none.
    """
    begin, end, succ = rows
    H, S = actions.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        g = h if begin.shape[0] > 1 else 0
        r = h if R.shape[0] > 1 else 0
        for s in range(S):
            x = number[s, actions[h, s]]
            if x < 0:
                V[h, s] = (H - h) * end_reward
                continue
            value = R[r, x]
            if h < H - 1:
                for i in range(np.uint64(begin[g, x]), np.uint64(end[g, x])):
                    value += P[i] * V[h + 1, succ[i]]
            V[h, s] = value


@kernel
def stochastic_policy_values(
    first: IntArray,
    action: IntArray,
    rows: Rows,
    P: Array,
    R: Array,
    end_reward: float,
    probabilities: Array,
    V: Array,
) -> None:
    """Exact V^pi of a stochastic policy pi_h(a|s) [H, S, A]."""
    begin, end, succ = rows
    H, S, _ = probabilities.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        g = h if begin.shape[0] > 1 else 0
        r = h if R.shape[0] > 1 else 0
        for s in range(S):
            if first[s] == first[s + 1]:
                V[h, s] = (H - h) * end_reward
                continue
            total = 0.0
            for x in range(first[s], first[s + 1]):
                chance = probabilities[h, s, action[x]]
                if chance == 0.0:
                    continue
                value = R[r, x]
                if h < H - 1:
                    for i in range(np.uint64(begin[g, x]), np.uint64(end[g, x])):
                        value += P[i] * V[h + 1, succ[i]]
                total += chance * value
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
    counts: VisitTables, rows: Rows, known_reward: Array, width: float, P: Array, R: Array
) -> None:
    """Empirical chances of the listed next states into P, rewards plus bonus into R [H, X].

    The bonus is ``width`` / sqrt(N), and infinite at N = 0 (then the caller's cap on Q holds). N
    counts observed transitions before the last stage and visits at the last one, where there is no
    next state: a pair that only the last stage reaches would otherwise stay optimistic for ever
    (the effect of docs/papers/tabular_ldp.md#e8).

    Args:
        counts: released reward sums R~(s, a), visit counts N_r(s, a), and transition counts
            N_p(s, a, s').
        rows: lists of next states; they have every state whose count is not 0.
        known_reward: mean rewards [G, X] where revealed, NaN where not.
        width: bonus at N = 1, that is 7 H L times the bonus scale
            (docs/papers/tabular_ldp.md#baselines).
        P: output.
        R: output.
    """
    reward, _, visits, transitions = counts
    begin, end, succ = rows
    H = R.shape[0]
    G, X = visits.shape
    for g in range(G):
        for x in range(X):
            total = 0.0
            low, high = np.uint64(begin[g, x]), np.uint64(end[g, x])
            for i in range(low, high):
                total += transitions[g, x, succ[i]]
            for i in range(low, high):
                P[i] = transitions[g, x, succ[i]] / total if total > 0.0 else 0.0
            seen = visits[g, x]
            mean = known_reward[g, x]
            final = mean
            if np.isnan(mean):
                mean = reward[g, x] / seen if seen > 0.0 else 0.0
                final = mean + width / np.sqrt(seen) if seen > 0.0 else np.inf
            early = mean + width / np.sqrt(total) if total > 0.0 else np.inf
            if G == 1:
                for h in range(H - 1):
                    R[h, x] = early
                R[H - 1, x] = final
            else:
                R[g, x] = final if g == H - 1 else early
