"""Named linear problems: the synthetic benchmark of the literature and random low-rank MDPs."""

from __future__ import annotations

import math

import numpy as np

from tacit import validate
from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.problems.linear import LinearMDP


def synthetic_linear(
    horizon: int = 20, actions: int = 100, reward: float = 0.99, seed: int = 0
) -> LinearMDP:
    """Two states, many actions told apart by their binary digits.

    The problem of docs/papers/linear_jdp.md#synthetic-linear:
    phi = (b(a), delta, 1 - delta) / norm, with b(a) in {-1, +1}^m the binary digits of the action
    and delta = 1 iff 1{s=0} = 1{a=0}. Where delta = 1 the reward is ``reward`` and the next state
    alpha_h; otherwise 1 - ``reward`` and the other state. The start state is uniform.

    With the reward revealed there is nothing to learn: acting greedily on it is optimal.

    Args:
        horizon: H.
        actions: A; the literature has 100 and eight digits.
        reward: the larger reward, in [0.5, 1].
        seed: of the alpha_h in {0, 1}.
    """
    H = validate.integer(horizon, "horizon", low=1)
    A = validate.integer(actions, "actions", low=2)
    r = validate.number(reward, "reward", low=0.5, high=1.0)
    seed = validate.integer(seed, "seed", low=0)
    digits = max(8, math.ceil(math.log2(A)))
    validate.table_fits("synthetic-linear", H, 2, A, digits + 2)
    alpha = np.random.default_rng(seed).integers(0, 2, size=H)
    norm = math.sqrt(digits + 1)
    mu = np.zeros((H, digits + 2, 2))
    theta = np.zeros((H, digits + 2))
    for h in range(H):
        mu[h, digits, alpha[h]] = mu[h, digits + 1, 1 - alpha[h]] = norm
        theta[h, digits:] = norm * np.array([r, 1 - r])
    return LinearMDP(
        _digit_features(A, digits) / norm,
        mu,
        theta,
        H,
        initial=[0.5, 0.5],
        name="synthetic-linear",
        parameters={"horizon": H, "actions": A, "reward": r, "seed": seed},
    )


def _digit_features(actions: int, digits: int) -> Array:
    """(b(a), delta, 1 - delta), of norm sqrt(digits + 1)."""
    phi = np.zeros((2, actions, digits + 2))
    places = np.arange(digits - 1, -1, -1)
    for a in range(actions):
        phi[:, a, :digits] = 2.0 * (a >> places & 1) - 1.0
        for s in (0, 1):
            delta = float((s == 0) == (a == 0))
            phi[s, a, digits:] = delta, 1.0 - delta
    return phi


def low_rank(
    states: int = 30,
    actions: int = 20,
    dimension: int = 6,
    horizon: int = 10,
    sparsity: float = 0.1,
    seed: int = 0,
) -> LinearMDP:
    """A random linear MDP with many states and actions and few features.

    phi(s,a) is a random mixture of ``dimension`` latent modes (Dirichlet); at every stage each mode
    has a law of the next state (Dirichlet) and a mean reward (uniform). Estimating S A rows one by
    one wastes data here: function approximation pays.

    Args:
        states: S.
        actions: A.
        dimension: d >= 1, the number of modes.
        horizon: H.
        sparsity: parameter of the Dirichlet laws; small values make modes and mixtures distinct.
        seed: which instance.
    """
    S = validate.integer(states, "states", low=1)
    A = validate.integer(actions, "actions", low=1)
    d = validate.integer(dimension, "dimension", low=1)
    H = validate.integer(horizon, "horizon", low=1)
    spread = validate.number(sparsity, "sparsity", low=1e-3, high=1e3)
    seed = validate.integer(seed, "seed", low=0)
    validate.table_fits("low-rank", H, S, A, S)
    if d > S * A:
        raise InvalidInput(f"dimension = {d}, but {S} states and {A} actions span {S * A} at most")
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(spread * np.ones(d), size=(S, A))
    mu = rng.dirichlet(spread * np.ones(S), size=(H, d))
    theta = rng.random((H, d))
    return LinearMDP(
        phi,
        mu,
        theta,
        H,
        name="low-rank",
        parameters={
            "states": S,
            "actions": A,
            "dimension": d,
            "horizon": H,
            "sparsity": spread,
            "seed": seed,
        },
    )
