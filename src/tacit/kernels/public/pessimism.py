"""Planning on one noisy release: pessimistic backward induction, and values of a fixed policy.

Pairs x and their lists of next states are those of ``kernels.public.first_visit_model``. Nothing
here may import rollout, counts or sums: a planner cannot reach raw data.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.public.first_visit_model import PairModel


@kernel
def plan_low(
    model: PairModel,
    visits: Array,
    noise: float,
    depth: float,
    end_reward: float,
    V: Array,
    policy: IntArray,
) -> None:
    """The policy [H, S] of pairs that is best by its lower values V [H + 1, S].

    From a known pair ``depth`` standard deviations are taken: of the mean next value over its
    visits, and of noise of size ``noise`` in reward, and in next states where values differ. A pair
    that is not known earns nothing more.
    """
    first, ptr, succ, prob, reward, known = model
    H, S = policy.shape
    V[H, :] = 0.0
    for h in range(H - 1, -1, -1):
        for s in range(S):
            if first[s] == first[s + 1]:
                V[h, s] = float(H - h) * end_reward
                policy[h, s] = -1
                continue
            top = -np.inf
            for x in range(first[s], first[s + 1]):
                q = 0.0
                if known[x] != 0:
                    mean, square, spread = 0.0, 0.0, 0.0
                    for i in range(ptr[x], ptr[x + 1]):
                        v = V[h + 1, succ[i]]
                        mean += prob[i] * v
                        square += prob[i] * v * v
                    for i in range(ptr[x], ptr[x + 1]):
                        spread += (V[h + 1, succ[i]] - mean) ** 2
                    r = reward[x]
                    var = max(square - mean * mean, 0.0) + r * (1.0 - r)
                    var = var / visits[x] + (noise / visits[x]) ** 2 * (1.0 + spread)
                    q = min(max(r + mean - depth * np.sqrt(var), 0.0), float(H - h))
                if q > top:
                    top = q
                    policy[h, s] = x
            V[h, s] = top


@kernel
def signed_values(
    first: IntArray,
    action: IntArray,
    cells: Array,
    visits: Array,
    reward: Array,
    centre: Array,
    known: IntArray,
    unknown: float,
    end_reward: float,
    policy: Array,
    V: Array,
) -> None:
    """Values V [H + 1, S] of a policy [H, S, A] by counts [X, S]; both may be negative.

    The mean next value of a known pair is c + sum over s' of cells (V(s') - c) / visits with c its
    mean over ``centre`` [X, S]: as the chances sum to 1 this is the same for exact counts, and
    noise in next states that are worth the same as c cancels. A pair that is not known is worth
    ``unknown`` for every step left.
    """
    H, S = policy.shape[0], policy.shape[1]
    V[H, :] = 0.0
    for h in range(H - 1, -1, -1):
        left = float(H - h)
        for s in range(S):
            V[h, s] = 0.0
            if first[s] == first[s + 1]:
                V[h, s] = left * end_reward
                continue
            for x in range(first[s], first[s + 1]):
                p = policy[h, s, action[x]]
                if p == 0.0:
                    continue
                q = unknown * left
                if known[x] != 0:
                    c = 0.0
                    for n in range(S):
                        c += centre[x, n] * V[h + 1, n]
                    q = 0.0
                    for n in range(S):
                        q += cells[x, n] * (V[h + 1, n] - c)
                    q = reward[x] + c + q / visits[x]
                V[h, s] += p * q


@kernel
def slopes(
    first: IntArray,
    action: IntArray,
    centre: Array,
    known: IntArray,
    policy: Array,
    V: Array,
    start: Array,
    paid: Array,
    led: Array,
) -> None:
    """How the value of a policy [H, S, A] moves with rewards (paid [X]) and chances (led [X, S]).

    Next states follow ``centre`` [X, S] and first states ``start`` [S]; V [H + 1, S] are the
    policy's values. A pair that is met d_h times at step h moves the value by the sum of d_h per
    reward, and by the sum of d_h V_{h+1}(s') per chance of s'. One that is not known moves nothing.
    """
    H, S = policy.shape[0], policy.shape[1]
    here = start.copy()
    paid[:], led[:] = 0.0, 0.0
    for h in range(H):
        then = np.zeros(S)
        for s in range(S):
            for x in range(first[s], first[s + 1]):
                met = here[s] * policy[h, s, action[x]]
                if met == 0.0 or known[x] == 0:
                    continue
                paid[x] += met
                for n in range(S):
                    then[n] += met * centre[x, n]
                    led[x, n] += met * V[h + 1, n]
        here = then
