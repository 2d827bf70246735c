"""One draw of a tabular model from its posterior, as PSRL plans with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel

FLOOR = 1e-9
"""Least value of a posterior parameter, and of a draw that is divided by: noisy counts can be
negative (docs/papers/tabular_ldp.md#ldp-psrl)."""


class Prior(NamedTuple):
    """Dirichlet(alpha0) transitions and normal-gamma(mu0 = 0, lambda0, nu0, beta0) rewards."""

    alpha0: float
    lambda0: float
    nu0: float
    beta0: float


@kernel
def sample_model(
    reward: Array,
    reward_squares: Array,
    visits: Array,
    transitions: Array,
    known_reward: Array,
    prior: Prior,
    rng: np.random.Generator,
    P: Array,
    R: Array,
) -> None:
    """Draw transitions into P [G, S, A, S] and mean rewards into R [G, S, A].

    Posterior of docs/papers/tabular_ldp.md#ldp-psrl with mu0 = 0: alpha = alpha0 + N_p,
    lambda = lambda0 + N_r, nu = nu0 + N_r / 2, mu = R~ / lambda, beta = beta0 + R2~ / 2 - R~^2 / (2
    lambda); then p ~ Dirichlet(alpha), tau ~ Gamma(nu, rate beta), r ~ N(mu, 1 / (lambda tau)).
    Parameters are raised to FLOOR, which exact counts never need.
    """
    G, S, A = visits.shape
    for g in range(G):
        for s in range(S):
            for a in range(A):
                total = 0.0
                for n in range(S):
                    draw = rng.standard_gamma(max(prior.alpha0 + transitions[g, s, a, n], FLOOR))
                    P[g, s, a, n] = draw
                    total += draw
                if total > 0.0:
                    for n in range(S):
                        P[g, s, a, n] /= total
                else:  # every gamma underflowed: the limit law puts all mass on one state
                    P[g, s, a, int(rng.random() * S)] = 1.0
                if not np.isnan(known_reward[g, s, a]):
                    R[g, s, a] = known_reward[g, s, a]
                    continue
                count = visits[g, s, a]
                precision = max(prior.lambda0 + count, FLOOR)
                shape = max(prior.nu0 + 0.5 * count, FLOOR)
                mean = reward[g, s, a] / precision
                rate = prior.beta0 + 0.5 * (reward_squares[g, s, a] - mean * reward[g, s, a])
                tau = max(rng.standard_gamma(shape), FLOOR) / max(rate, FLOOR)
                R[g, s, a] = mean + rng.standard_normal() / np.sqrt(precision * tau)
