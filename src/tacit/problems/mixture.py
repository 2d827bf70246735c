"""Linear mixture MDPs, and the named ones: RemapWalk, the lower-bound instance, the linear bandit.

Finite problems whose kernels are linear in known features.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import validate
from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.problems.tabular import Rewards, TabularMDP
from tacit.task.task import Task


class LinearMixtureMDP(TabularMDP):
    """P_h(s'|s,a) = <phi(s'|s,a), theta_h> with public phi and secret theta.

    A finite problem, so it serves every tabular learner too. Its task always carries the features
    (they are public by definition of the model) with the declared bounds on the norms of the
    parameters; the truth is checked against them.

    >>> import numpy as np
    >>> stay, go = np.eye(2)[[[0], [1]]], np.eye(2)[[[1], [1]]]
    >>> lazy = LinearMixtureMDP(np.stack([stay, go], -1), [0.7, 0.3], [[0], [1]], horizon=2)
    >>> lazy.optimal_value()
    0.3

    Args:
        features: phi [S, A, S, d].
        theta: [d], or one row per stage [H, d].
        R: mean rewards [S, A] or [H, S, A]; None if they are linear, see the next four.
        horizon: number of steps H.
        initial: start state, or start probabilities [S].
        reward_features: varphi [S, A, d2].
        reward_theta: [d2], or one row per stage: mean reward = offset + <varphi, theta_r>.
        reward_offset: public constant part of the mean reward.
        theta_norm: declared public bound on |theta_h|; sqrt(d) unless given.
        reward_theta_norm: likewise; sqrt(d2) unless given.
        simplex: declare publicly that theta is a probability vector.
        rewards: "deterministic" or "bernoulli".
        name: shown in results.
        parameters: what made this instance.
        facts: further facts for reports.
    """

    def __init__(
        self,
        features: npt.ArrayLike,
        theta: npt.ArrayLike,
        R: npt.ArrayLike | None = None,
        horizon: int = 1,
        initial: int | npt.ArrayLike = 0,
        *,
        reward_features: npt.ArrayLike | None = None,
        reward_theta: npt.ArrayLike | None = None,
        reward_offset: float = 0.0,
        theta_norm: float | None = None,
        reward_theta_norm: float | None = None,
        simplex: bool = False,
        rewards: Rewards = "deterministic",
        name: str = "linear-mixture",
        parameters: Mapping[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        H = validate.integer(horizon, "horizon", low=1)
        phi = validate.finite_array(features, "features")
        if phi.ndim != 4 or phi.shape[0] != phi.shape[2] or 0 in phi.shape:
            raise InvalidInput(
                f"features have shape {list(phi.shape)}, but they must be [states, actions, "
                "states, d], none of them 0"
            )
        weights = _stages(theta, "theta", H, phi.shape[3])
        bound = _norm_bound(weights, theta_norm, "theta", 1.0 if simplex else None)
        off = (weights < 0).any(axis=1) | (np.abs(weights.sum(axis=1) - 1.0) > 1e-8)
        if validate.flag(simplex, "simplex") and off.any():
            raise InvalidInput("theta is declared a probability vector, but it is not one")
        P = np.einsum("saxd,hd->hsax", phi, weights)
        P[np.abs(P) < 1e-15] = 0.0
        self.features: Array = frozen(phi)
        self.theta: Array = frozen(weights)
        public: dict[str, npt.NDArray[Any]] = {"features": phi, "theta_norm": np.asarray(bound)}
        if simplex:
            public["simplex"] = np.asarray(True)
        if (reward_features is None) != (reward_theta is None):
            raise InvalidInput("linear rewards need both reward_features and reward_theta")
        if (R is None) == (reward_features is None):
            raise InvalidInput("give either R, or reward_features with reward_theta")
        means: npt.ArrayLike
        if reward_features is None:
            assert R is not None
            means = R
        else:
            varphi = validate.finite_array(reward_features, "reward_features")
            if varphi.ndim != 3 or varphi.shape[:2] != phi.shape[:2]:
                raise InvalidInput(
                    f"reward_features have shape {list(varphi.shape)}, but they must be "
                    f"[{phi.shape[0]}, {phi.shape[1]}, d2]"
                )
            assert reward_theta is not None
            mean_theta = _stages(reward_theta, "reward_theta", H, varphi.shape[2])
            offset = validate.number(reward_offset, "reward_offset", low=0.0, high=1.0)
            table = offset + np.einsum("sad,hd->hsa", varphi, mean_theta)
            means = table[0] if len(mean_theta) == 1 else table
            public["reward_features"] = varphi
            public["reward_offset"] = np.asarray(offset)
            public["reward_theta_norm"] = np.asarray(
                _norm_bound(mean_theta, reward_theta_norm, "reward_theta", None)
            )
        self.public = {name: frozen(value) for name, value in public.items()}
        super().__init__(
            P if len(weights) > 1 else P[0],
            means,
            H,
            initial,
            rewards=rewards,
            name=name,
            parameters=parameters,
            facts={**self._norms(phi, weights, bound), **(facts or {})},
        )

    @staticmethod
    def _norms(phi: Array, theta: Array, bound: float) -> dict[str, Any]:
        """Norms as they are, beside what the papers assume of them."""
        sums = np.maximum(np.maximum(phi, 0).sum(axis=2), np.maximum(-phi, 0).sum(axis=2))
        reach = float(np.sqrt((sums**2).sum(axis=2)).max())  # |phi_V| for V with entries in [0, 1]
        return {
            "dimension": int(phi.shape[3]),
            "feature_norm": {"largest": reach, "assumed": 1.0, "holds": reach <= 1.0 + 1e-9},
            "theta_norm": {"largest": float(np.sqrt((theta**2).sum(axis=1)).max()), "bound": bound},
        }

    def task(self, users: int, reveal: Iterable[str] = ()) -> Task:
        """As for a table, with the features and the declared bounds."""
        facts = [fact for fact in reveal if fact not in self.public]
        task = super().task(users, facts)
        return dataclasses.replace(task, known={**self.public, **task.known})


def bilinear_features(pairs: npt.ArrayLike, states: npt.ArrayLike) -> Array:
    """Features [S, A, S, d1 d2] that make P(s'|s,a) = phi(s,a)^T M psi(s') a linear mixture.

    Its weights are the entries of M row by row, ``M.ravel()``: Example 3.4 of
    docs/papers/mixture_ldp.md#bilinear.

    >>> import numpy as np
    >>> M = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> phi = bilinear_features(np.eye(2)[:, np.newaxis], np.eye(2))
    >>> LinearMixtureMDP(phi, M.ravel(), [[0], [1]], horizon=2).P[0, :, 0].tolist()
    [[0.9, 0.1], [0.2, 0.8]]

    Args:
        pairs: phi [S, A, d1].
        states: psi [S, d2].
    """
    phi, psi = validate.finite_array(pairs, "pairs"), validate.finite_array(states, "states")
    if phi.ndim != 3 or psi.ndim != 2 or len(phi) != len(psi):
        raise InvalidInput(
            f"pairs have shape {list(phi.shape)} and states {list(psi.shape)}, but they must be "
            "[states, actions, d1] and [states, d2]"
        )
    products = np.einsum("sai,xj->saxij", phi, psi)
    return frozen(products.reshape(*products.shape[:3], -1))


def _stages(theta: npt.ArrayLike, name: str, horizon: int, dimension: int) -> Array:
    rows = validate.finite_array(theta, name)
    rows = rows[np.newaxis] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) not in (1, horizon) or rows.shape[1] != dimension:
        raise InvalidInput(
            f"{name} has shape {list(np.shape(theta))}, but it must be [{dimension}] or "
            f"[{horizon}, {dimension}]"
        )
    return rows


def _norm_bound(theta: Array, declared: float | None, name: str, default: float | None) -> float:
    """The declared bound, which the truth must satisfy."""
    largest = float(np.sqrt((theta**2).sum(axis=1)).max())
    if declared is None:
        bound = math.sqrt(theta.shape[1]) if default is None else default
    else:
        bound = validate.number(declared, f"{name}_norm", low=0.0, low_open=True)
    if largest > bound * (1 + 1e-9):
        raise InvalidInput(
            f"|{name}| = {largest:.6g}, but the bound declared publicly is {bound:.6g}; declare a "
            f"larger {name}_norm"
        )
    return bound


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
