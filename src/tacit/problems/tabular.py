"""Finite Markov decision processes given by their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tacit import validate
from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.kernels.public import planning
from tacit.kernels.raw.rollout import (
    Truth,
    cumulate,
    rollout,
    uniforms_per_episode,
)
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy, check_allowed, uniform_policy
from tacit.problems.base import Problem, revealed
from tacit.problems.table_input import next_states, reward_table, table_shape
from tacit.task.pairs import Flags, allowed_flags, start_law, terminals
from tacit.task.task import Task, checked_labels
from tacit.trajectory import Trajectory

if TYPE_CHECKING:
    from tacit.problems.gymnasium.export import TabularEnv

Rewards = Literal["deterministic", "bernoulli"]


class TabularMDP(Problem):
    """A tabular episodic MDP with exact optimal values and exact policy evaluation.

    >>> import numpy as np
    >>> stay_or_go = TabularMDP(P=np.eye(2)[[[0, 1], [1, 1]]], R=[[0, 0], [1, 1]], horizon=3)
    >>> stay_or_go.optimal_value()
    2.0

    What is declared (terminal states, allowed actions, the reward after the end, the start law if
    it is known, names) is public: every task carries it. Next states are kept as lists, so that
    rollouts, exact values and plans cost as much as there are probabilities above zero.

    Args:
        P: transition probabilities, [S, A, S] or one table per stage [H, S, A, S]; or sparse: rows
            (s, a, s', p), or a SciPy matrix [S A, S] with row s A + a. Of states that are terminal
            and actions that are not allowed nothing is read.
        R: mean rewards in [0, 1], [S, A] or one table per stage [H, S, A].
        horizon: number of steps H.
        initial: start state, or start probabilities [S].
        rewards: "deterministic" pays the mean; "bernoulli" pays 0 or 1 with that mean.
        terminal: states that end an episode, by number or name, or flags [S].
        allowed: flags [S, A] of the actions that may be played, or a list of actions, by number or
            name, for every state; all of them unless given.
        end_reward: what every step after the end pays, in [0, 1].
        returns: the least and the largest return of an episode, where that is public.
        start_known: whether the start law is public.
        labels: names of the "states" and "actions".
        coordinates: numbers that describe each state [S, n], public: what a search looks at in
            place of a state's number.
        name: shown in results.
        parameters: what made this instance, shown in results.
        facts: further facts for reports, such as how rewards were rescaled.
    """

    family = "tabular"

    def __init__(
        self,
        P: Any,
        R: npt.ArrayLike,
        horizon: int,
        initial: int | str | npt.ArrayLike = 0,
        *,
        rewards: Rewards = "deterministic",
        terminal: Iterable[int | str] | Flags = (),
        allowed: Sequence[Iterable[int | str]] | Flags | None = None,
        end_reward: float = 0.0,
        returns: tuple[float, float] | None = None,
        start_known: bool = False,
        labels: Mapping[str, Iterable[str]] | None = None,
        coordinates: npt.ArrayLike | None = None,
        name: str = "tabular",
        parameters: Mapping[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self._called(name, parameters, horizon)
        self.facts = dict(facts or {})
        self.rewards = validate.choice(rewards, "rewards", ("deterministic", "bernoulli"))
        self.states, self.actions = table_shape(P, R, self.horizon)
        self.sizes = {"states": self.states, "actions": self.actions}
        self.labels = checked_labels(labels or {}, self.sizes)
        self.coordinates: Array | None = None
        if coordinates is not None:
            self.coordinates = frozen(validate.finite_array(coordinates, "coordinates"))
            shape = self.coordinates.shape
            if len(shape) != 2 or shape[0] != self.states or shape[1] < 1:
                raise InvalidInput(
                    f"coordinates have shape {list(shape)}, but there must be a row of numbers for "
                    f"each of the {self.states} states"
                )
        validate.table_fits(f"a policy of {name}", self.horizon, self.states, self.actions)
        self.declared: dict[str, npt.NDArray[Any]] = {}
        ends = terminals(terminal, self.states, self.labels.get("states"))
        may = allowed_flags(allowed, ends, (self.states, self.actions), self.labels.get("actions"))
        if ends.any():
            self.declared["terminal"] = ends
        if not may[~ends].all():
            self.declared["allowed"] = may
        if validate.number(end_reward, "end_reward", low=0.0, high=1.0) and ends.any():
            self.declared["end_reward"] = np.asarray(float(end_reward))
        if returns is not None:
            ends_at = validate.bounds(returns, "returns", "return of an episode", "(0, 1)")
            self.declared["returns"] = np.asarray(ends_at)
        self.initial: Array = frozen(start_law(initial, ends, self.labels.get("states")))
        if validate.flag(start_known, "start_known"):
            self.declared["initial"] = self.initial
        described = Task("tabular", self.horizon, self.sizes, False, users=1, known=self.declared)
        self.pairs, self.end_reward = described.pairs, described.end_reward
        self._rows, self._chances, self._sparse = next_states(P, self.pairs, self.horizon)
        means = reward_table(R, self.pairs, self.horizon, self.end_reward)
        self.homogeneous = len(self._rows.begin) == len(means) == 1 or self.horizon == 1
        stages = 1 if self.homogeneous else self.horizon
        self.R: Array = frozen(np.broadcast_to(means, (stages, *means.shape[1:])))
        if returns is not None:
            self._check_returns()

    def _check_returns(self) -> None:
        """Refuse a declared range of returns that the mean return of some policy lies outside."""
        low, high = self.declared["returns"]
        for what, value in (("best policy", self.optimal_value()), self.baseline()):
            if not low - 1e-6 <= value <= high + 1e-6:
                raise InvalidInput(
                    f"returns = ({low:g}, {high:g}), but the {what} of this table returns "
                    f"{value:.4g} on average; declare what every episode returns at least and at "
                    "most, or leave returns out"
                )

    @cached_property
    def P(self) -> Array:
        """All transition probabilities [G, S, A, S]; of what is not declared, staying there."""
        shape = (len(self._rows.begin), self.states, self.actions, self.states)
        validate.table_fits(f"the dense table of {self.name}", *shape)
        table, pairs = np.zeros(shape), self.pairs
        s, a = np.nonzero(pairs.number < 0)
        table[:, s, a, s] = 1.0
        lengths = (self._rows.end - self._rows.begin).ravel()
        row = np.repeat(np.arange(len(lengths)), lengths)
        g, x = np.divmod(row, len(pairs.action))
        table[g, pairs.state[x], pairs.action[x], self._rows.succ] = self._chances
        return frozen(np.broadcast_to(table, (len(self.R), *shape[1:])))

    @cached_property
    def truth(self) -> Truth:
        """The secret arrays as the compiled kernels read them."""
        cdf = np.empty_like(self._chances)
        cumulate(self._rows.begin, self._rows.end, self._chances, cdf)
        return Truth(
            number=self.pairs.number,
            rows=self._rows,
            P=self._chances,
            cdf=frozen(cdf),
            rewards=frozen(self.R[:, self.pairs.state, self.pairs.action]),
            end_reward=self.end_reward,
            bernoulli=self.rewards == "bernoulli",
            initial=self.initial,
            initial_cdf=cumulative(self.initial),
        )

    def task(self, users: int, reveal: Iterable[str] = ()) -> Task:
        """The public description: sizes, horizon, what is declared, plus what is revealed.

        Args:
            users: number of participations the learner is planned for.
            reveal: facts told to the learner: "reward", "transitions", "initial".
        """
        reveal = list(reveal)
        facts = {"reward": self.R, "initial": self.initial, "transitions": self.initial}
        if "transitions" in reveal:
            facts["transitions"] = self._steps() if self._sparse else self.P
        known = {**self.declared, **revealed(self.name, facts, reveal)}
        return self._task(users, known, labels=self.labels)

    def _steps(self) -> Array:
        """All probabilities above zero, as rows (s, a, s', p)."""
        rows, pairs = self._rows, self.pairs
        x = np.repeat(np.arange(len(pairs.action)), (rows.end - rows.begin)[0])
        return np.column_stack([pairs.state[x], pairs.action[x], rows.succ, self._chances])

    @cached_property
    def _optimum(self) -> tuple[Array, Array]:
        return self._best(1.0)

    def _best(self, sign: float) -> tuple[Array, Array]:
        """Q and V that are optimal for all rewards times a sign."""
        truth, none = self.truth, np.zeros((0, 0))
        Q = np.full((self.horizon, len(self.pairs.action)), np.inf)
        V = np.empty((self.horizon + 1, self.states))
        model = truth.rows, truth.P, none, sign * truth.rewards, sign * truth.end_reward
        planning.backward_induction(self.pairs.first, *model, Q, V)
        return frozen(Q), frozen(V)

    def optimal_q(self) -> Array:
        """Exact Q*_h(s, a) [H, S, A]; minus infinity where an action is not allowed."""
        Q, V = self._optimum
        table = self.pairs.spread(Q, -np.inf)
        over = np.diff(self.pairs.first) == 0
        table[:, over] = V[:-1, over, np.newaxis]
        return frozen(table)

    def optimal_values(self) -> Array:
        """Exact V*_h(s) [H+1, S]; the last row is zero."""
        return self._optimum[1]

    def optimal_value(self) -> float:
        """Exact optimal value over the start law."""
        return planning.start_value(self.initial, self.optimal_values())

    def worst_value(self) -> float:
        """Exact value of the worst policy: the best one for the negative of all rewards."""
        return -planning.start_value(self.initial, self._best(-1.0)[1])

    def values(self, policy: Policy) -> Array:
        """Exact V^pi_h(s) [H+1, S] of any policy, by backward induction."""
        truth = self.truth
        model = truth.rows, truth.P, truth.rewards, truth.end_reward
        V = np.empty((self.horizon + 1, self.states))
        self.check_policy(policy)
        if isinstance(policy, TabularPolicy):
            planning.policy_values(truth.number, *model, policy.actions, V)
        elif isinstance(policy, StochasticPolicy):
            planning.stochastic_policy_values(
                self.pairs.first, self.pairs.action, *model, policy.probabilities, V
            )
        return V

    def value(self, policy: Policy) -> float:
        """Exact value of a policy over the start law."""
        return planning.start_value(self.initial, self.values(policy))

    def baseline(self) -> tuple[str, float]:
        """The uniform policy and its value."""
        policy = uniform_policy(self.horizon, self.states, self.actions, self.pairs)
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
            rollout(self.truth, cdf, u, states, actions, rewards)
        return Trajectory(states, actions, rewards)

    def check_policy(self, policy: Policy) -> None:
        """Refuse a policy that does not fit: wrong kind, wrong shape, unknown actions."""
        table: npt.NDArray[Any]
        names: tuple[str, ...] = ("horizon", "states", "actions")
        if isinstance(policy, TabularPolicy):
            table, names = policy.actions, names[:2]
        elif isinstance(policy, StochasticPolicy):
            table = policy.probabilities
        else:
            raise InvalidInput(
                f"{self.name} needs a TabularPolicy or a StochasticPolicy, got {type(policy)}"
            )
        sizes = (self.horizon, self.states, self.actions)[: len(names)]
        if table.shape != sizes:
            raise InvalidInput(
                f"the policy has shape {list(table.shape)}, but {self.name} needs "
                f"[{', '.join(names)}] = {list(sizes)}"
            )
        if isinstance(policy, TabularPolicy):
            low, high = table.min(), table.max()
            if low < 0 or high >= self.actions:
                raise InvalidInput(
                    f"the policy plays action {low if low < 0 else high}, but {self.name} has "
                    f"actions 0 to {self.actions - 1}"
                )
        check_allowed(policy, self.pairs)

    def environment(self) -> TabularEnv:
        """This problem as a Gymnasium environment."""
        from tacit.problems.gymnasium.export import TabularEnv

        return TabularEnv(self)

    def describe(self) -> dict[str, Any]:
        """Name, parameters, sizes and exact values."""
        kind = {"homogeneous": self.homogeneous, "rewards": self.rewards}
        report = super().describe() | kind | self._values()
        if not self.pairs.every:
            report["terminal_states"] = int((np.diff(self.pairs.first) == 0).sum())
            report["pairs"] = len(self.pairs.action)
        return report | self.facts

    def __repr__(self) -> str:
        return (
            f"TabularMDP({self.name}: states={self.states}, actions={self.actions}, "
            f"horizon={self.horizon}, homogeneous={self.homogeneous})"
        )


def cumulative(probabilities: Array) -> Array:
    """Cumulative sums along the last axis that end in exactly 1."""
    sums = np.cumsum(probabilities, axis=-1)
    return frozen(sums / sums[..., -1:])
