"""Named tabular benchmarks: random MDPs, RiverSwim, the lower-bound tree."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from tacit import validate
from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.problems.tabular import Rewards, TabularMDP


def random_mdp(
    states: int = 2, actions: int = 2, horizon: int = 2, seed: int = 0, initial: int = 0
) -> TabularMDP:
    """p(.|s,a) ~ Dirichlet(0.1, ..., 0.1), r(s,a) = 1{U <= 1/2}.

    See docs/papers/tabular_ldp.md#environments.

    Args:
        states: S.
        actions: A.
        horizon: H.
        seed: which instance; transitions are drawn first, then rewards.
        initial: start state.
    """
    S = validate.integer(states, "states", low=1)
    A = validate.integer(actions, "actions", low=1)
    H = validate.integer(horizon, "horizon", low=1)
    start = validate.integer(initial, "initial", low=0, high=S - 1)
    seed = validate.integer(seed, "seed", low=0)
    validate.table_fits("random-mdp", S, A, S)
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(0.1 * np.ones(S), size=(S, A))
    R = (rng.random((S, A)) <= 0.5).astype(np.float64)
    return TabularMDP(
        P,
        R,
        H,
        start,
        name="random-mdp",
        parameters={"states": S, "actions": A, "horizon": H, "seed": seed, "initial": start},
    )


_RIGHT = {
    # kernel: (state 0: ahead), (interior: ahead, back), (last state: back); the rest stays.
    "classic": (0.6, (0.35, 0.05), 0.4),
    "vtr": (0.7, (0.3, 0.1), 0.1),
}


def _river_kernel(states: int, kernel: str) -> Array:
    """P [S, 2, S]: action 0 swims left surely, action 1 swims right against the current."""
    ahead_first, (ahead, back), back_last = _RIGHT[kernel]
    P = np.zeros((states, 2, states))
    for s in range(states):
        P[s, 0, max(s - 1, 0)] = 1.0
    P[0, 1, 1], P[0, 1, 0] = ahead_first, 1 - ahead_first
    for s in range(1, states - 1):
        P[s, 1, s + 1], P[s, 1, s - 1], P[s, 1, s] = ahead, back, 1 - ahead - back
    P[-1, 1, -2], P[-1, 1, -1] = back_last, 1 - back_last
    return P


def river_swim(
    states: int = 6,
    horizon: int = 20,
    kernel: Literal["classic", "vtr"] = "classic",
    reward_scale: float = 1.0,
    rewards: Rewards = "deterministic",
    inhomogeneous: bool = False,
    seed: int = 0,
) -> TabularMDP:
    """A chain where the small reward is near and the large one is upstream; start at state 0.

    r(0, left) = 0.005, r(S-1, right) = 1, times ``reward_scale``
    (docs/papers/tabular_ldp.md#environments, docs/papers/mixture_ldp.md#river-swim,
    docs/papers/mixture_jdp.md#river-swim).

    Args:
        states: S >= 2.
        horizon: H.
        kernel: "classic": 0.35 ahead / 0.6 stay / 0.05 back; "vtr": 0.3 / 0.6 / 0.1.
        reward_scale: factor on both rewards, in (0, 1]; the mixture experiments use 1/H.
        rewards: "deterministic" or "bernoulli".
        inhomogeneous: mix the right action of stage h with a slip to the left of probability
            1 - p_h, p_h ~ U(0.8, 1).
        seed: of the p_h (only read when inhomogeneous).
    """
    S = validate.integer(states, "states", low=2)
    H = validate.integer(horizon, "horizon", low=1)
    validate.choice(kernel, "kernel", _RIGHT)
    scale = validate.number(reward_scale, "reward_scale", low=0.0, high=1.0, low_open=True)
    seed = validate.integer(seed, "seed", low=0)
    validate.table_fits("river-swim", H if inhomogeneous else 1, S, 2, S)
    P = _river_kernel(S, kernel)
    R = np.zeros((S, 2))
    R[0, 0], R[-1, 1] = 0.005 * scale, scale
    parameters = {
        "states": S,
        "horizon": H,
        "kernel": kernel,
        "reward_scale": scale,
        "rewards": rewards,
        "inhomogeneous": validate.flag(inhomogeneous, "inhomogeneous"),
    }
    if inhomogeneous:
        strength = np.random.default_rng(seed).uniform(0.8, 1.0, size=H)
        slip = P[:, 0]  # one step left, exactly where the left action goes
        P = np.repeat(P[np.newaxis], H, axis=0)
        for h, p in enumerate(strength):
            P[h, :, 1] = p * P[h, :, 1] + (1 - p) * slip
        parameters["seed"] = seed
    return TabularMDP(P, R, H, 0, rewards=rewards, name="river-swim", parameters=parameters)


def hard_gap(leaves: int, actions: int, epsilon: float, users: int) -> float:
    """Delta = sqrt(LA / K) / (16 sqrt2 min{e^eps - 1, 1/2}) of the lower bound.

    See docs/papers/tabular_ldp.md#e10. Below K = LA / (64 min{..}^2) the bound does not apply, and
    this says so.
    """
    pairs = leaves * actions
    strength = min(math.expm1(min(epsilon, 1.0)), 0.5)
    least = pairs / (64 * strength**2)
    if users < least:
        raise InvalidInput(
            f"the lower bound needs at least {math.ceil(least):,} users at epsilon = {epsilon:g} "
            f"with {pairs} leaf-action pairs, got {users:,}"
        )
    return math.sqrt(pairs / users) / (16 * math.sqrt(2) * strength)


def hard_tree(
    states: int = 15,
    actions: int = 3,
    horizon: int = 20,
    gap: float | None = None,
    epsilon: float | None = None,
    users: int | None = None,
    seed: int = 0,
) -> TabularMDP:
    """The lower-bound MDP: an A-ary tree whose leaves lead to heaven or hell.

    S = (A^d - 1)/(A - 1) + 2. Internal action a moves to child a; a leaf's action leads to "+" with
    probability 1/2, for one special (leaf, action) with 1/2 + gap; "+" pays 1 per step for ever
    (docs/papers/tabular_ldp.md#environments). V* = (H - d)(1/2 + gap).

    Args:
        states: S, which must fit some depth d.
        actions: A >= 2.
        horizon: H, at least 2 log_A(S - 2) + 2.
        gap: Delta in (0, 1/2]; 0.1 unless given, or computed from the two below.
        epsilon: with ``users``: the gap that makes this tree hardest at that privacy level.
        users: see epsilon.
        seed: which (leaf, action) is special.
    """
    S = validate.integer(states, "states", low=3)
    A = validate.integer(actions, "actions", low=2)
    H = validate.integer(horizon, "horizon", low=1)
    d = _tree_depth(S, A)
    leaves = A ** (d - 1)
    shortest = math.ceil(2 * math.log(S - 2, A) + 2 - 1e-9)
    if shortest > H:
        raise InvalidInput(f"horizon = {H}, but the tree needs 2 log_A(S - 2) + 2 = {shortest}")
    if (epsilon is None) != (users is None) or (gap is not None and epsilon is not None):
        raise InvalidInput("hard-tree takes either gap, or epsilon together with users")
    if epsilon is not None and users is not None:
        epsilon = validate.number(epsilon, "epsilon", low=1e-9)
        users = validate.integer(users, "users", low=1)
        gap = hard_gap(leaves, A, epsilon, users)
    validate.table_fits("hard-tree", S, A, S)
    delta = validate.number(0.1 if gap is None else gap, "gap", low=0.0, high=0.5, low_open=True)
    seed = validate.integer(seed, "seed", low=0)
    special = divmod(int(np.random.default_rng(seed).integers(leaves * A)), A)
    P, R = _tree_tables(S, A, leaves, special, delta)
    return TabularMDP(
        P,
        R,
        H,
        0,
        name="hard-tree",
        parameters={"states": S, "actions": A, "horizon": H, "gap": delta, "seed": seed},
        facts={"depth": d, "leaves": leaves},
    )


def _tree_depth(states: int, actions: int) -> int:
    sizes, nodes, level = [], 0, 1
    while nodes + 2 < states:
        nodes, level = nodes + level, level * actions
        sizes.append(nodes + 2)
    if sizes[-1] != states:
        fit = ", ".join(str(size) for size in sizes[-2:])
        raise InvalidInput(
            f"states = {states}, but with {actions} actions the tree has (A^d - 1)/(A - 1) + 2 "
            f"states: {fit} are the nearest"
        )
    return len(sizes)


def _tree_tables(
    S: int, A: int, leaves: int, special: tuple[int, int], gap: float
) -> tuple[Array, Array]:
    """States in breadth-first order, then "+" and "-"."""
    heaven, hell, first_leaf = S - 2, S - 1, S - 2 - leaves
    P = np.zeros((S, A, S))
    for s in range(first_leaf):
        for a in range(A):
            P[s, a, A * s + 1 + a] = 1.0
    P[first_leaf:heaven, :, heaven] = 0.5
    P[first_leaf + special[0], special[1], heaven] += gap
    P[first_leaf:heaven, :, hell] = 1.0 - P[first_leaf:heaven, :, heaven]
    P[heaven, :, heaven] = P[hell, :, hell] = 1.0
    R = np.zeros((S, A))
    R[heaven] = 1.0
    return P, R
