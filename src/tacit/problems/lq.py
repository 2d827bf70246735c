"""Linear systems with quadratic cost, and the named ones of docs/papers/lq_jdp.md#systems.

Optimal cost and the cost of any linear policy are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit import validate
from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.kernels.public import lq
from tacit.kernels.raw.lq_rollout import LinearTruth, lq_rollout, normals_per_episode
from tacit.policies.base import Policy
from tacit.policies.linear import LinearPolicy
from tacit.problems.base import Problem, revealed
from tacit.task.task import Task
from tacit.trajectory import VectorTrajectory

if TYPE_CHECKING:
    from tacit.problems.gymnasium.export import LQEnv

_ROUNDING = 1e-9


class LQSystem(Problem):
    """x' = A x + B u + w with cost x^T Q x + u^T R u.

    Checked against Assumption 1 of docs/papers/lq_jdp.md#setting.

    Values are minus costs, so that regret means the same here as everywhere else: the optimal
    value minus the value of the policy played, never negative.

    >>> heater = LQSystem(A=[[0.7]], B=[[0.3]], Q=[[1]], R=[[0.5]], horizon=10, noise=0.12, start=1)
    >>> round(heater.optimal_cost(), 10)
    1.6776810516

    Args:
        A: state matrix [n, n].
        B: input matrix [n, d].
        Q: cost of the state, symmetric positive definite.
        R: cost of the input, likewise.
        horizon: number of steps H.
        noise: radius C_w of the ball in which w is uniform; or a matrix L, for L times a uniform
            point of the unit ball.
        start: the first state [n], or several equally likely ones [m, n].
        gain: gamma, the largest gain allowed; by default the largest that Assumption 1 allows.
        state_bound: C_A, a declared bound on |A|; by default |A| itself.
        input_bound: C_B, a declared bound on |B|; by default |B| itself.
        name: shown in results.
        parameters: what made this instance, shown in results.
    """

    family = "lq"

    def __init__(
        self,
        A: npt.ArrayLike,
        B: npt.ArrayLike,
        Q: npt.ArrayLike,
        R: npt.ArrayLike,
        horizon: int,
        noise: float | npt.ArrayLike,
        start: float | npt.ArrayLike,
        *,
        gain: float | None = None,
        state_bound: float | None = None,
        input_bound: float | None = None,
        name: str = "lq",
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self._called(name, parameters, horizon)
        self.states, self.inputs = len(_matrix(A, "A")), _matrix(B, "B").shape[1]
        self.sizes = {"states": self.states, "inputs": self.inputs}
        self.A: Array = frozen(_matrix(A, "A", self.states, self.states))
        self.B: Array = frozen(_matrix(B, "B", self.states, self.inputs))
        self.Q: Array = frozen(_cost(Q, "Q", self.states))
        self.R: Array = frozen(_cost(R, "R", self.inputs))
        self.noise: Array = frozen(_noise(noise, self.states))
        self.starts: Array = frozen(_starts(start, self.states))
        self.state_bound = _bound(state_bound, "state_bound", self.A)
        self.input_bound = _bound(input_bound, "input_bound", self.B)
        self.noise_bound = float(np.linalg.norm(self.noise, 2))
        room = 1.0 - self.state_bound - self.noise_bound
        widest = room / self.input_bound if self.input_bound > 0 else 1.0
        self.gain = validate.number(max(widest, 0.0) if gain is None else gain, "gain", low=0.0)
        self._require_assumptions()

    @cached_property
    def margins(self) -> dict[str, float]:
        """How far every inequality of Assumption 1 is from failing; negative means it fails."""
        start = float(np.linalg.norm(self.starts, axis=1).max())
        push = self.gain * self.input_bound
        return {
            "|Theta|_F <= 1": 1.0 - float(np.linalg.norm(self.theta)),
            "|A| <= C_A": self.state_bound - float(np.linalg.norm(self.A, 2)),
            "C_A < 1": 1.0 - self.state_bound,
            "|B| <= C_B": self.input_bound - float(np.linalg.norm(self.B, 2)),
            "C_B < 1": 1.0 - self.input_bound,
            "C_w < 1": 1.0 - self.noise_bound,
            "|x_1| <= 1": 1.0 - start,
            "C_A + gain C_B + C_w <= 1": 1.0 - self.state_bound - push - self.noise_bound,
        }

    def _require_assumptions(self) -> None:
        failing = [name for name, margin in self.margins.items() if margin < -_ROUNDING]
        strict = ("C_A < 1", "C_B < 1", "C_w < 1")
        failing += [name for name in strict if 0 <= -self.margins[name] < _ROUNDING]
        if failing:
            lines = "; ".join(f"{name}: margin {m:.4g}" for name, m in self.margins.items())
            raise InvalidInput(
                f"{self.name} does not satisfy {' and '.join(failing)}, which bounded states need; "
                f"rescale time, state or input. All margins: {lines}"
            )

    @cached_property
    def theta(self) -> Array:
        """[A, B]^T [n + d, n]."""
        return frozen(np.vstack([self.A.T, self.B.T]))

    @cached_property
    def noise_covariance(self) -> Array:
        """W = L L^T / (n + 2), exact for a uniform point of the ball."""
        return frozen(self.noise @ self.noise.T / (self.states + 2))

    @cached_property
    def start_moment(self) -> Array:
        """Second moment of the first state."""
        return frozen(self.starts.T @ self.starts / len(self.starts))

    @cached_property
    def setting(self) -> lq.ControlCosts:
        """Costs, noise and start, as kernels read them."""
        return lq.ControlCosts(self.Q, self.R, self.noise_covariance, self.start_moment)

    @cached_property
    def truth(self) -> LinearTruth:
        """The secret arrays as the compiled kernels read them."""
        return LinearTruth(self.theta, self.noise, self.starts, self.Q, self.R)

    def task(self, users: int, reveal: Iterable[str] = ()) -> Task:
        """The public description: sizes, costs and declared bounds, plus what is revealed.

        Args:
            users: number of participations the learner is planned for.
            reveal: facts told to the learner: "start" (equally likely first states), "noise" (L),
                "dynamics" (Theta).
        """
        facts = {"start": self.starts, "noise": self.noise, "dynamics": self.theta}
        known: dict[str, Array] = {
            "state_cost": self.Q,
            "input_cost": self.R,
            "bounds": np.array([self.state_bound, self.input_bound, self.noise_bound, self.gain]),
        }
        return self._task(users, known | revealed(self.name, facts, reveal))

    @cached_property
    def _optimum(self) -> tuple[Array, Array]:
        gains = np.empty((self.horizon, self.inputs, self.states))
        P = np.empty((self.horizon + 1, self.states, self.states))
        D = self.states + self.inputs
        lq.riccati(self.theta, np.zeros((D, D)), self.setting, gains, P)
        return frozen(gains), frozen(P)

    def optimal_gains(self) -> Array:
        """K*_h [H, d, n], not capped."""
        return self._optimum[0]

    def optimal_cost(self) -> float:
        """Exact J* by Riccati, over the start law."""
        return lq.start_cost(self._optimum[1], self.setting)

    def optimal_value(self) -> float:
        """Minus the optimal cost."""
        return -self.optimal_cost()

    def cost(self, policy: Policy) -> float:
        """Exact expected cost of a linear policy, by propagating moments."""
        self.check_policy(policy)
        assert isinstance(policy, LinearPolicy)
        if policy.offsets.any():
            return self._cost_with_offsets(policy)
        variance = np.full(self.horizon, policy.amplitude**2 / self.inputs)
        moments = np.empty((self.horizon + 1, self.states, self.states))
        return lq.policy_cost(self.theta, self.setting, policy.gains, 1.0, variance, moments)

    def _cost_with_offsets(self, policy: LinearPolicy) -> float:
        X, mean, cost = self.start_moment, self.starts.mean(axis=0), 0.0
        spread = policy.amplitude**2 / self.inputs
        for K, v in zip(policy.gains, policy.offsets, strict=True):
            u = K @ mean
            cost += np.trace((self.Q + K.T @ self.R @ K) @ X) + spread * np.trace(self.R)
            cost += v @ self.R @ (2.0 * u + v)
            C, push = self.A + self.B @ K, self.B @ v
            cross = np.outer(C @ mean, push)
            X = C @ X @ C.T + cross + cross.T + np.outer(push, push) + self.noise_covariance
            X = X + spread * self.B @ self.B.T
            mean = C @ mean + push
        return float(cost)

    def value(self, policy: Policy) -> float:
        """Minus the exact expected cost."""
        return -self.cost(policy)

    def baseline(self) -> tuple[str, float]:
        """Doing nothing, and its value."""
        idle = LinearPolicy(np.zeros((self.horizon, self.inputs, self.states)))
        return "do nothing", self.value(idle)

    def rollout(self, policy: Policy, rng: np.random.Generator) -> VectorTrajectory:
        """One user's episode under a policy whose excitation is written out."""
        self.check_policy(policy)
        assert isinstance(policy, LinearPolicy)
        if policy.amplitude > 0.0:
            raise InvalidInput("a user acts on policy.for_user(k), with the excitation written out")
        H, n, d = self.horizon, self.states, self.inputs
        g = rng.standard_normal(normals_per_episode(H, n))
        states, inputs, rewards = np.empty((H + 1, n)), np.empty((H, d)), np.empty(H)
        lq_rollout(self.truth, policy.gains, policy.offsets, g, states, inputs, rewards)
        return VectorTrajectory(states, inputs, rewards)

    def check_policy(self, policy: Policy) -> None:
        """Refuse a policy that does not fit."""
        if not isinstance(policy, LinearPolicy):
            raise InvalidInput(f"{self.name} needs a LinearPolicy, got {type(policy)}")
        wanted = (self.horizon, self.inputs, self.states)
        if policy.gains.shape != wanted:
            raise InvalidInput(
                f"the policy has gains of shape {list(policy.gains.shape)}, but {self.name} needs "
                f"[horizon, inputs, states] = {list(wanted)}"
            )

    def environment(self) -> LQEnv:
        """This system as a Gymnasium environment."""
        from tacit.problems.gymnasium.export import LQEnv

        return LQEnv(self)

    def describe(self) -> dict[str, Any]:
        """Name, parameters, sizes, exact values and the margins of the assumptions."""
        costs = {"optimal_value": self.optimal_value(), "optimal_cost": self.optimal_cost()}
        own = {**costs, **self._values(), "margins": self.margins}
        return {**super().describe(), "homogeneous": True, **own}

    def __repr__(self) -> str:
        return (
            f"LQSystem({self.name}: states={self.states}, inputs={self.inputs}, "
            f"horizon={self.horizon})"
        )


def _matrix(value: npt.ArrayLike, name: str, *wanted: int) -> Array:
    table = np.atleast_2d(validate.finite_array(value, name))
    shape = list(table.shape)
    if table.ndim != 2 or 0 in shape:
        raise InvalidInput(f"{name} has shape {shape}, but it must be a matrix")
    if wanted and table.shape != wanted:
        raise InvalidInput(f"{name} has shape {shape}, but the system needs {list(wanted)}")
    return table


def _cost(value: npt.ArrayLike, name: str, size: int) -> Array:
    table = _matrix(value, name, size, size)
    if not np.allclose(table, table.T, rtol=0, atol=1e-12) or np.linalg.eigvalsh(table)[0] <= 0:
        raise InvalidInput(f"{name} must be symmetric and positive definite")
    return (table + table.T) / 2


def _noise(value: float | npt.ArrayLike, states: int) -> Array:
    if np.ndim(value) == 0:
        return validate.number(value, "noise", low=0.0) * np.eye(states)
    return _matrix(value, "noise", states, states)


def _starts(value: float | npt.ArrayLike, states: int) -> Array:
    table = np.atleast_2d(validate.finite_array(value, "start"))
    if table.ndim != 2 or table.shape[1] != states or len(table) == 0:
        raise InvalidInput(
            f"start has shape {list(np.shape(value))}, but it must be one state of {states} "
            f"numbers, or several of them [m, {states}]"
        )
    return table


def _bound(value: float | None, name: str, matrix: Array) -> float:
    size = float(np.linalg.norm(matrix, 2))
    return size if value is None else validate.number(value, name, low=0.0)


def lq_scalar() -> LQSystem:
    """LQ1: one state, one input."""
    return LQSystem(
        A=[[0.7]],
        B=[[0.3]],
        Q=[[1.0]],
        R=[[0.5]],
        horizon=10,
        noise=0.12,
        start=[1.0],
        gain=0.6,
        state_bound=0.7,
        input_bound=0.3,
        name="lq-scalar",
    )


def lq_double_integrator() -> LQSystem:
    """LQ2: a damped double integrator."""
    return LQSystem(
        A=[[0.6, 0.3], [0.0, 0.6]],
        B=[[0.05], [0.25]],
        Q=np.eye(2),
        R=[[0.5]],
        horizon=20,
        noise=0.07,
        start=[0.8, 0.6],
        gain=0.6,
        state_bound=0.77,
        input_bound=0.26,
        name="lq-double-integrator",
    )


def lq_thermal() -> LQSystem:
    """LQ4: two zones of air and wall, heated separately."""
    A = [
        [0.42, 0.10, 0.06, 0.00],
        [0.08, 0.45, 0.00, 0.00],
        [0.06, 0.00, 0.42, 0.10],
        [0.00, 0.00, 0.08, 0.45],
    ]
    return LQSystem(
        A=A,
        B=[[0.25, 0.0], [0.0, 0.0], [0.0, 0.25], [0.0, 0.0]],
        Q=np.eye(4),
        R=0.1 * np.eye(2),
        horizon=24,
        noise=0.12,
        start=[0.5, 0.5, 0.5, 0.5],
        gain=1.0,
        state_bound=0.56,
        input_bound=0.25,
        name="lq-thermal",
    )


def random_lq(states: int = 2, inputs: int = 1, horizon: int = 15, seed: int = 0) -> LQSystem:
    """A random stable system that satisfies Assumption 1; one fixed instance per seed.

    Entries of A and B are normal, scaled to |A| uniform in [0.4, 0.75] and |B| uniform in
    [0.15, 0.3], both shrunk together where |Theta|_F would exceed 0.98; R = r I with log r uniform
    in [log 0.05, log 0.5]; noise radius uniform in [0.05, 0.12]; the start is uniform on the unit
    sphere. Declared bounds are 1.02 |A| and 1.02 |B|, the gain is the largest allowed.
    """
    n = validate.integer(states, "states", low=1, high=20)
    d = validate.integer(inputs, "inputs", low=1, high=20)
    rng = np.random.default_rng(validate.integer(seed, "seed", low=0))
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, d))
    A *= rng.uniform(0.4, 0.75) / np.linalg.norm(A, 2)
    B *= rng.uniform(0.15, 0.3) / np.linalg.norm(B, 2)
    shrink = min(1.0, 0.98 / float(np.sqrt((A**2).sum() + (B**2).sum())))
    A, B = A * shrink, B * shrink
    cost = float(np.exp(rng.uniform(np.log(0.05), np.log(0.5))))
    noise, start = rng.uniform(0.05, 0.12), rng.normal(size=n)
    return LQSystem(
        A=A,
        B=B,
        Q=np.eye(n),
        R=cost * np.eye(d),
        horizon=horizon,
        noise=noise,
        start=start / np.linalg.norm(start),
        state_bound=1.02 * float(np.linalg.norm(A, 2)),
        input_bound=1.02 * float(np.linalg.norm(B, 2)),
        name="random-lq",
        parameters={"states": n, "inputs": d, "horizon": horizon, "seed": seed},
    )
