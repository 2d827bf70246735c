"""Linear mixture MDPs: finite problems whose kernels are linear in known features."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import validate
from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.problems.tabular import Rewards, TabularMDP
from tacit.task import Task


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
        if validate.flag(simplex, "simplex") and ((weights < 0).any() or _off_simplex(weights)):
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


def _stages(theta: npt.ArrayLike, name: str, horizon: int, dimension: int) -> Array:
    rows = validate.finite_array(theta, name)
    rows = rows[np.newaxis] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) not in (1, horizon) or rows.shape[1] != dimension:
        raise InvalidInput(
            f"{name} has shape {list(np.shape(theta))}, but it must be [{dimension}] or "
            f"[{horizon}, {dimension}]"
        )
    return rows


def _off_simplex(weights: Array) -> bool:
    return bool((np.abs(weights.sum(axis=1) - 1.0) > 1e-8).any())


def _norm_bound(theta: Array, given: float | None, name: str, default: float | None) -> float:
    """The declared bound, which the truth must satisfy."""
    largest = float(np.sqrt((theta**2).sum(axis=1)).max())
    if given is None:
        bound = math.sqrt(theta.shape[1]) if default is None else default
    else:
        bound = validate.number(given, f"{name}_norm", low=0.0, low_open=True)
    if largest > bound * (1 + 1e-9):
        raise InvalidInput(
            f"|{name}| = {largest:.6g}, but the bound declared publicly is {bound:.6g}; declare a "
            f"larger {name}_norm"
        )
    return bound
