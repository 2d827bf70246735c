"""The optimistic model of UCB-VI, from released counts."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel


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
