"""Finite Markov decision processes given by their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tacit import validate
from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.kernels import planning
from tacit.kernels.rollout import Truth, rollout, rollout_stochastic, uniforms_per_episode
from tacit.policy import Policy, StochasticPolicy, TabularPolicy, uniform_policy
from tacit.problems.base import revealed
from tacit.task import Task
from tacit.trajectory import Trajectory

if TYPE_CHECKING:
    from tacit.problems.environments import TabularEnv

Rewards = Literal["deterministic", "bernoulli"]


class TabularMDP:
    """A tabular episodic MDP with exact optimal values and exact policy evaluation.

    >>> import numpy as np
    >>> stay_or_go = TabularMDP(P=np.eye(2)[[[0, 1], [1, 1]]], R=[[0, 0], [1, 1]], horizon=3)
    >>> stay_or_go.optimal_value()
    2.0

    Args:
        P: transition probabilities, [S, A, S] or one table per stage [H, S, A, S].
        R: mean rewards in [0, 1], [S, A] or one table per stage [H, S, A].
        horizon: number of steps H.
        initial: start state, or start probabilities [S].
        rewards: "deterministic" pays the mean; "bernoulli" pays 0 or 1 with that mean.
        name: shown in results.
        parameters: what made this instance, shown in results.
        facts: further facts for reports, such as how rewards were rescaled.
    """

    family = "tabular"

    def __init__(
        self,
        P: npt.ArrayLike,
        R: npt.ArrayLike,
        horizon: int,
        initial: int | npt.ArrayLike = 0,
        *,
        rewards: Rewards = "deterministic",
        name: str = "tabular",
        parameters: Mapping[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.horizon = validate.integer(horizon, "horizon", low=1)
        self.name = name
        self.parameters = dict(parameters or {})
        self.facts = dict(facts or {})
        self.rewards = validate.choice(rewards, "rewards", ("deterministic", "bernoulli"))
        transitions = _transition_table(P, self.horizon)
        self.states, self.actions = transitions.shape[1:3]
        validate.table_fits(f"a policy of {name}", self.horizon, self.states, self.actions)
        means = _reward_table(R, self.horizon, self.states, self.actions)
        self.homogeneous = len(transitions) == len(means) == 1 or self.horizon == 1
        stages = 1 if self.homogeneous else self.horizon
        self.P: Array = frozen(np.broadcast_to(transitions, (stages, *transitions.shape[1:])))
        self.R: Array = frozen(np.broadcast_to(means, (stages, *means.shape[1:])))
        self.initial: Array = frozen(_start_law(initial, self.states))

    @cached_property
    def truth(self) -> Truth:
        """The secret arrays as the compiled kernels read them."""
        return Truth(
            transitions=self.P,
            transitions_cdf=cumulative(self.P),
            rewards=self.R,
            bernoulli=self.rewards == "bernoulli",
            initial=self.initial,
            initial_cdf=cumulative(self.initial),
        )

    def task(self, users: int, reveal: Iterable[str] = ()) -> Task:
        """The public description: sizes, horizon and homogeneity, plus what is revealed.

        Args:
            users: number of participations the learner is planned for.
            reveal: facts told to the learner: "reward", "transitions", "initial".
        """
        facts = {"reward": self.R, "transitions": self.P, "initial": self.initial}
        return Task(
            family=self.family,
            horizon=self.horizon,
            sizes={"states": self.states, "actions": self.actions},
            homogeneous=self.homogeneous,
            users=validate.integer(users, "users", low=1),
            known=revealed(self.name, facts, reveal),
        )

    @cached_property
    def _optimum(self) -> tuple[Array, Array]:
        Q = np.full((self.horizon, self.states, self.actions), np.inf)
        V = np.empty((self.horizon + 1, self.states))
        planning.backward_induction(self.P, self.R, Q, V)
        return frozen(Q), frozen(V)

    def optimal_q(self) -> Array:
        """Exact Q*_h(s, a) [H, S, A]."""
        return self._optimum[0]

    def optimal_values(self) -> Array:
        """Exact V*_h(s) [H+1, S]; the last row is zero."""
        return self._optimum[1]

    def optimal_value(self) -> float:
        """Exact optimal value over the start law."""
        return planning.start_value(self.initial, self.optimal_values())

    def values(self, policy: Policy) -> Array:
        """Exact V^pi_h(s) [H+1, S] of any policy, by backward induction."""
        V = np.empty((self.horizon + 1, self.states))
        self.check_policy(policy)
        if isinstance(policy, TabularPolicy):
            planning.policy_values(self.P, self.R, policy.actions, V)
        elif isinstance(policy, StochasticPolicy):
            planning.stochastic_policy_values(self.P, self.R, policy.probabilities, V)
        return V

    def value(self, policy: Policy) -> float:
        """Exact value of a policy over the start law."""
        return planning.start_value(self.initial, self.values(policy))

    def baseline(self) -> tuple[str, float]:
        """The uniform policy and its value."""
        policy = uniform_policy(self.horizon, self.states, self.actions)
        return "uniform policy", self.value(policy)

    def rollout(self, policy: Policy, rng: np.random.Generator) -> Trajectory:
        """One user's episode under a policy."""
        self.check_policy(policy)
        H = self.horizon
        u = rng.random(uniforms_per_episode(H))
        states, actions = np.empty(H + 1, dtype=np.int64), np.empty(H, dtype=np.int64)
        rewards = np.empty(H)
        if isinstance(policy, TabularPolicy):
            rollout(self.truth, policy.actions, u, states, actions, rewards)
        elif isinstance(policy, StochasticPolicy):
            cdf = cumulative(policy.probabilities)
            rollout_stochastic(self.truth, cdf, u, states, actions, rewards)
        return Trajectory(states, actions, rewards)

    def check_policy(self, policy: Policy) -> None:
        """Refuse a policy that does not fit: wrong kind, wrong shape, unknown actions."""
        H, S, A = self.horizon, self.states, self.actions
        if isinstance(policy, TabularPolicy):
            table = policy.actions
            if table.shape != (H, S):
                raise InvalidInput(
                    f"the policy has shape {list(table.shape)}, but {self.name} needs "
                    f"[horizon, states] = {[H, S]}"
                )
            if table.min() < 0 or table.max() >= A:
                raise InvalidInput(
                    f"the policy plays action {table.min() if table.min() < 0 else table.max()}, "
                    f"but {self.name} has actions 0 to {A - 1}"
                )
        elif isinstance(policy, StochasticPolicy):
            if policy.probabilities.shape != (H, S, A):
                raise InvalidInput(
                    f"the policy has shape {list(policy.probabilities.shape)}, but {self.name} "
                    f"needs [horizon, states, actions] = {[H, S, A]}"
                )
        else:
            raise InvalidInput(
                f"{self.name} needs a TabularPolicy or a StochasticPolicy, got {type(policy)}"
            )

    def environment(self) -> TabularEnv:
        """This problem as a Gymnasium environment."""
        from tacit.problems.environments import TabularEnv

        return TabularEnv(self)

    def describe(self) -> dict[str, Any]:
        """Name, parameters, sizes and exact values."""
        baseline, value = self.baseline()
        return {
            "name": self.name,
            "parameters": self.parameters,
            "family": self.family,
            "states": self.states,
            "actions": self.actions,
            "horizon": self.horizon,
            "homogeneous": self.homogeneous,
            "rewards": self.rewards,
            "optimal_value": self.optimal_value(),
            "baseline": {"name": baseline, "value": value},
            **self.facts,
        }

    def __repr__(self) -> str:
        return (
            f"TabularMDP({self.name}: states={self.states}, actions={self.actions}, "
            f"horizon={self.horizon}, homogeneous={self.homogeneous})"
        )


def cumulative(probabilities: Array) -> Array:
    """Cumulative sums along the last axis that end in exactly 1."""
    sums = np.cumsum(probabilities, axis=-1)
    return frozen(sums / sums[..., -1:])


def _transition_table(P: npt.ArrayLike, horizon: int) -> Array:
    table = validate.unit_array(P, "P", rows=True)
    if table.ndim == 3:
        table = table[np.newaxis]
    elif table.ndim != 4 or len(table) != horizon:
        raise InvalidInput(
            f"P has shape {list(table.shape)}, but it must be [states, actions, states] or "
            f"[horizon, states, actions, states] with horizon = {horizon}"
        )
    if table.shape[1] != table.shape[3] or 0 in table.shape:
        raise InvalidInput(
            f"P has shape {list(np.shape(P))}, but its first and last state axes must be equal and "
            "no axis may be empty"
        )
    validate.distributions(table if np.ndim(P) == 4 else table[0], "P")
    return table


def _reward_table(R: npt.ArrayLike, horizon: int, states: int, actions: int) -> Array:
    table = validate.unit_array(R, "R", rows=False)
    allowed = [(states, actions), (horizon, states, actions)]
    if table.shape not in allowed:
        raise InvalidInput(
            f"R has shape {list(table.shape)}, but P asks for [states, actions] = "
            f"{list(allowed[0])} or [horizon, states, actions] = {list(allowed[1])}"
        )
    if (table < 0).any() or (table > 1).any():
        where = tuple(int(i) for i in np.argwhere((table < 0) | (table > 1))[0])
        raise InvalidInput(
            f"R{list(where)} = {table[where]:g}, but mean rewards must lie in [0, 1]; rescale them "
            "(regret is then in rescaled units)"
        )
    return table[np.newaxis] if table.ndim == 2 else table


def _start_law(initial: int | npt.ArrayLike, states: int) -> Array:
    if np.ndim(initial) == 0:
        law = np.zeros(states)
        law[validate.integer(initial, "initial", low=0, high=states - 1)] = 1.0
        return law
    law = validate.unit_array(initial, "initial", rows=True)
    if law.shape != (states,):
        raise InvalidInput(
            f"initial has shape {list(law.shape)}, but it must be a state or {states} probabilities"
        )
    validate.distributions(law, "initial")
    return law
