"""Named linear mixtures: RemapWalk, the lower-bound instance, the linear bandit."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tacit import validate
from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.problems.mixture import LinearMixtureMDP


def remap_walk(states: int = 10, horizon: int = 10) -> LinearMixtureMDP:
    """A walk whose buttons are remapped: four known base kernels, unknown weights.

    See docs/papers/mixture_jdp.md#remap-walk.

    Primitives: right by J = S // 10 with probability 0.9, left likewise, stay, jump to state 0.
    Base kernel i lets action a execute primitive (a + i) mod 4; the truth weighs them (.1, .1, .7,
    .1). Rewards depend on the zone floor(5 s / S) only: means (.05, 0, .1, .4, 1), Bernoulli.
    Start at S // 2. The state count does not matter: S = 100 has the values of S = 10.

    Args:
        states: S, a multiple of 10.
        horizon: H.
    """
    S = validate.integer(states, "states", low=10)
    if S % 10:
        raise InvalidInput(f"states = {S}, but remap-walk needs a multiple of 10")
    validate.table_fits("remap-walk", S, 4, S, 4)
    primitive = _primitives(S)
    phi = np.zeros((S, 4, S, 4))
    for action, base in itertools.product(range(4), range(4)):
        phi[:, action, :, base] = primitive[(action + base) % 4]
    zones = np.eye(5)[(5 * np.arange(S)) // S]
    return LinearMixtureMDP(
        phi,
        [0.1, 0.1, 0.7, 0.1],
        horizon=horizon,
        initial=S // 2,
        reward_features=np.repeat(zones[:, np.newaxis], 4, axis=1),
        reward_theta=[0.05, 0.0, 0.1, 0.4, 1.0],
        simplex=True,
        rewards="bernoulli",
        name="remap-walk",
        parameters={"states": S, "horizon": horizon},
    )


def _primitives(S: int) -> Array:
    """Right, left, stay, jump home [4, S, S]."""
    primitive = np.zeros((4, S, S))
    step = S // 10
    for s in range(S):
        primitive[0, s, min(s + step, S - 1)] += 0.9
        primitive[0, s, s] += 0.1
        primitive[1, s, max(s - step, 0)] += 0.9
        primitive[1, s, s] += 0.1
        primitive[2, s, s] = 1.0
        primitive[3, s, 0] = 1.0
    return primitive


def hard_mixture(
    dimension: int = 5,
    horizon: int = 6,
    gap: float | None = None,
    epsilon: float | None = None,
    users: int = 10_000,
    seed: int = 0,
) -> LinearMixtureMDP:
    """The lower-bound linear mixture (docs/papers/mixture_ldp.md#hard-mixture).

    States x_1..x_H, then a dead end, then heaven (reward 1 for ever). From x_h action a in
    {-1, 1}^(d-1) leads to heaven with probability 1/H + <mu_h, a>, else to x_{h+1}. The secret
    signs of mu_h have to be learned stage by stage.

    Args:
        dimension: d >= 2; there are 2^(d-1) actions.
        horizon: H.
        gap: size of the entries of mu; with neither gap nor epsilon sqrt(1/(H K)) / (4 sqrt 2), the
            parameters of the authors' own code.
        epsilon: the gap that is hardest for this epsilon: sqrt(1/(H K)) / m, m = min{2, e^eps}
            (e^eps - 1).
        users: K, used for the gap.
        seed: of the signs.
    """
    d = validate.integer(dimension, "dimension", low=2, high=12)
    H = validate.integer(horizon, "horizon", low=1)
    K = validate.integer(users, "users", low=1)
    seed = validate.integer(seed, "seed", low=0)
    if gap is not None and epsilon is not None:
        raise InvalidInput("hard-mixture takes either gap or epsilon")
    if gap is None:
        strength = 4 * math.sqrt(2)
        if epsilon is not None:
            eps = validate.number(epsilon, "epsilon", low=1e-9, high=300.0)
            strength = min(2.0, math.exp(eps)) * math.expm1(eps)
        gap = math.sqrt(1 / (H * K)) / strength
    delta = validate.number(gap, "gap", low=0.0, low_open=True)
    if (d - 1) * delta > 0.5 / H:
        raise InvalidInput(
            f"gap = {delta:g}, but (d - 1) gap must be at most 1 / (2 H) = {0.5 / H:g}; choose a "
            "smaller gap or more users"
        )
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(H, d - 1))
    alpha = math.sqrt(1 / (1 + (d - 1) * delta))
    scale = math.sqrt(delta) * alpha
    theta = np.hstack([np.full((H, 1), 1 / alpha), delta * signs / scale])
    phi, R = _hard_tables(H, d, alpha, scale)
    return LinearMixtureMDP(
        phi,
        theta,
        R,
        H,
        0,
        name="hard-mixture",
        parameters={"dimension": d, "horizon": H, "gap": delta, "users": K, "seed": seed},
    )


def _hard_tables(H: int, d: int, alpha: float, scale: float) -> tuple[Array, Array]:
    actions = np.array(list(itertools.product([-1.0, 1.0], repeat=d - 1)))
    dead, heaven, stay = H, H + 1, 1.0 / H
    phi = np.zeros((H + 2, len(actions), H + 2, d))
    for h in range(H):
        phi[h, :, h + 1, 0] += alpha * (1 - stay)
        phi[h, :, h + 1, 1:] -= scale * actions
        phi[h, :, heaven, 0] += alpha * stay
        phi[h, :, heaven, 1:] += scale * actions
    for end in (dead, heaven):
        phi[end, :, end, 0] = alpha
    R = np.zeros((H + 2, len(actions)))
    R[heaven] = 1.0
    return phi, R


def linear_bandit(
    dimension: int = 5, arms: int = 20, contexts: int = 200, norm: float = 0.9, seed: int = 0
) -> LinearMixtureMDP:
    """A contextual linear bandit: the H = 1 case.

    See docs/papers/mixture_ldp.md#bandit and docs/papers/mixture_ldp.md#bandit-benchmark.

    A user draws one of ``contexts`` sets of unit vectors x (a finite pool, so that values are
    exact), picks one, and gets 1 with probability (1 + <x, theta>) / 2, else 0. Rewards are in
    [0, 1], so regret is half of that of the +-1 rewards of the paper.

    Args:
        dimension: d.
        arms: vectors to choose from.
        contexts: size of the pool.
        norm: |theta| <= 1.
        seed: of pool and theta.
    """
    d = validate.integer(dimension, "dimension", low=1)
    A = validate.integer(arms, "arms", low=1)
    S = validate.integer(contexts, "contexts", low=1)
    validate.table_fits("linear-bandit", S, A, S)
    rng = np.random.default_rng(validate.integer(seed, "seed", low=0))
    x = rng.standard_normal((S, A, d))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    theta = rng.standard_normal(d)
    size = validate.number(norm, "norm", low=0.0, high=1.0)
    theta *= size / np.linalg.norm(theta)
    return LinearMixtureMDP(
        np.full((S, A, S, 1), 1.0 / S),
        [1.0],
        horizon=1,
        initial=np.full(S, 1.0 / S),
        reward_features=x,
        reward_theta=0.5 * theta,
        reward_offset=0.5,
        reward_theta_norm=0.5,
        simplex=True,
        rewards="bernoulli",
        name="linear-bandit",
        parameters={"dimension": d, "arms": A, "contexts": S, "norm": size, "seed": seed},
    )
