"""Linear Markov decision processes, and the named ones: synthetic-linear and low-rank.

Transitions and rewards are linear in known features.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import validate
from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.problems.tabular import Rewards, TabularMDP
from tacit.task.task import Task

_ROUND = 1e-9
"""Products of features and parameters this close to a probability or a reward are taken as one."""


class LinearMDP(TabularMDP):
    """P_h(s'|s,a) = <phi(s,a), mu_h(s')> and r_h(s,a) = <phi(s,a), theta_h>, finite S and A.

    The features are public: every task carries them as the fact "features". States are finite, so
    it is a tabular problem too, and every tabular agent takes it.

    Features longer than 1 are refused, since clipping them would break linearity and keeping them
    would break the guarantee (docs/papers/linear_jdp.md#e4): divide phi by a constant and multiply
    mu and theta by it. The parameters are not unique where the features do not span R^d; :attr:`mu`
    and :attr:`theta` are the ones of least norm.

    Args:
        features: phi [S, A, d], norms at most 1.
        measures: mu [d, S] or one per stage [H, d, S].
        rewards_theta: theta [d] or one per stage [H, d].
        horizon: number of steps H.
        initial: start state, or start probabilities [S].
        rewards: "deterministic" pays the mean; "bernoulli" pays 0 or 1 with that mean.
        name: shown in results.
        parameters: what made this instance, shown in results.
    """

    def __init__(
        self,
        features: npt.ArrayLike,
        measures: npt.ArrayLike,
        rewards_theta: npt.ArrayLike,
        horizon: int,
        initial: int | npt.ArrayLike = 0,
        *,
        rewards: Rewards = "deterministic",
        name: str = "linear",
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        phi = _features(features)
        P = np.einsum("sad,...dn->...san", phi, _fits(measures, "measures", phi, horizon))
        R = np.einsum("sad,...d->...sa", phi, _fits(rewards_theta, "rewards_theta", phi, horizon))
        super().__init__(
            _nearly(P, "P = <phi, mu>"),
            _nearly(R, "R = <phi, theta>"),
            horizon,
            initial,
            rewards=rewards,
            name=name,
            parameters=parameters,
        )
        self.features: Array = frozen(phi)
        self.dimension = phi.shape[2]
        self.facts = {
            "dimension": self.dimension,
            "rank": int(np.linalg.matrix_rank(phi.reshape(-1, self.dimension))),
            "measure_norm": float(np.linalg.norm(self.ones)),
            "theta_norm": float(np.linalg.norm(self.theta, axis=1).max()),
            "norms_allowed": math.sqrt(self.dimension),
        }

    @cached_property
    def _inverse(self) -> Array:
        flat = self.features.reshape(-1, self.dimension)
        return np.linalg.pinv(flat).astype(np.float64)

    @cached_property
    def mu(self) -> Array:
        """The measures of least norm, [G, d, S]."""
        flat = self.P.reshape(len(self.P), -1, self.states)
        return frozen(self._inverse @ flat)

    @cached_property
    def theta(self) -> Array:
        """The reward parameters of least norm, [G, d]."""
        return frozen(self.R.reshape(len(self.R), -1) @ self._inverse.T)

    @cached_property
    def ones(self) -> Array:
        """The v of least norm with <v, phi(s,a)> = 1 everywhere, which is mu(S)."""
        return frozen(self._inverse.sum(axis=1))

    def task(self, users: int, reveal: Iterable[str] = ()) -> Task:
        """The public description: that of a tabular problem, and the features."""
        plain = super().task(users, reveal)
        sizes = {**plain.sizes, "dimension": self.dimension}
        return replace(plain, sizes=sizes, known={**plain.known, "features": self.features})


def _features(features: npt.ArrayLike) -> Array:
    phi = validate.finite_array(features, "features")
    if phi.ndim != 3 or 0 in phi.shape:
        raise InvalidInput(
            f"features have shape {list(phi.shape)}, but they must be [states, actions, dimension]"
        )
    norms = np.linalg.norm(phi, axis=2)
    if norms.max() > 1 + _ROUND:
        s, a = (int(i) for i in np.argwhere(norms > 1 + _ROUND)[0])
        raise InvalidInput(
            f"the feature vector of state {s}, action {a} has norm {norms[s, a]:.6g}, but it must "
            "not exceed 1; divide all features by the largest norm and multiply measures and "
            "rewards_theta by it"
        )
    return phi


def _fits(parameters: npt.ArrayLike, name: str, phi: Array, horizon: int) -> Array:
    S, _, d = phi.shape
    array = validate.finite_array(parameters, name)
    one = (d, S) if name == "measures" else (d,)
    if array.shape not in (one, (horizon, *one)):
        raise InvalidInput(
            f"{name} has shape {list(array.shape)}, but the features ask for {list(one)} or "
            f"{[horizon, *one]}"
        )
    return array


def _nearly(table: Array, name: str) -> Array:
    """The table with rounding errors below 0 and above 1 removed; larger ones are refused."""
    if table.min() < -_ROUND or table.max() > 1 + _ROUND:
        worst = table.min() if table.min() < -_ROUND else table.max()
        raise InvalidInput(f"{name} reaches {worst:.6g}, but it must stay within [0, 1]")
    clipped: Array = np.clip(table, 0.0, 1.0)
    return clipped


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
    phi = np.empty((2, A, digits + 2))  # (b(a), delta, 1 - delta), of norm sqrt(digits + 1)
    phi[:, :, :digits] = 2.0 * (np.arange(A)[:, np.newaxis] >> np.arange(digits)[::-1] & 1) - 1.0
    phi[:, :, digits] = np.equal.outer(np.arange(2) == 0, np.arange(A) == 0)
    phi[:, :, digits + 1] = 1.0 - phi[:, :, digits]
    mu = np.zeros((H, digits + 2, 2))
    theta = np.zeros((H, digits + 2))
    for h in range(H):
        mu[h, digits, alpha[h]] = mu[h, digits + 1, 1 - alpha[h]] = norm
        theta[h, digits:] = norm * np.array([r, 1 - r])
    return LinearMDP(
        phi / norm,
        mu,
        theta,
        H,
        initial=[0.5, 0.5],
        name="synthetic-linear",
        parameters={"horizon": H, "actions": A, "reward": r, "seed": seed},
    )


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
