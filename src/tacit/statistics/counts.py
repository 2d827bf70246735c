"""Counts of a tabular trajectory: visits, transitions, rewards; and nothing at all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray, VisitTables
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.raw.counts import add_joint_counts, add_policy_transitions, add_visits
from tacit.policies.tabular import TabularPolicy
from tacit.publication import Publication
from tacit.statistics.base import BatchStatistic, Block, BoundedSum, Layout, Norm, counted
from tacit.task.task import Task, table_sizes
from tacit.trajectory import Lives, Trajectory


def staying(horizon: int, state: int, action: int, reward: float) -> Trajectory:
    """Always in one state, with one action and one reward: worst pairs are made of such users."""
    return Trajectory(
        np.full(horizon + 1, state), np.full(horizon, action), np.full(horizon, reward)
    )


class VisitCounts(BoundedSum, BatchStatistic):
    """R(s,a), N_r(s,a), N_p(s,a,s') and, where asked for, R2(s,a).

    See docs/papers/tabular_ldp.md#setting. One table serves all stages when the task is declared
    homogeneous, unless separate ones are asked for; else every stage has its own. There are cells
    for the task's pairs only, [S, A] if nothing is declared, and nothing is counted from a terminal
    state on. Rewards are clipped into [0, 1] and counted in steps of 2^-24; states and actions are
    clipped into range, forbidden actions to the first allowed one; at most H steps are read.

    Attributes:
        horizon: H.
        stages: number of tables, 1 or H.
        masses: by block, the most that one trajectory adds to all cells together. Replacing it
            takes at most that much out of some cells and puts at most that much into others.
        layout: blocks of the contribution.
    """

    def __init__(self, task: Task, *, squares: bool = False, pooled: bool = True) -> None:
        S, H = task.sizes["states"], task.horizon
        G = 1 if task.homogeneous and pooled else H
        cells = (G, *task.pairs.shape())
        self.horizon = H
        self.stages = G
        self.masses = {"reward": H, "visits": H, "transitions": H - 1}
        table = Block("transitions", (*cells, S))
        blocks = [counted("reward", *cells), Block("visits", cells), table]
        if squares:
            self.masses["reward_squares"] = H
            blocks.append(counted("reward_squares", *cells))
        self.layout = Layout(blocks)
        self.pairs = task.pairs

    def tables(self, flat: npt.NDArray[Any]) -> VisitTables:
        """R, R2 (without cells where it is not kept), N_r [G, X] and N_p [G, X, S], as views."""
        views = self.layout.views(flat)
        G, X = self.stages, len(self.pairs.action)
        squares = views.get("reward_squares", np.zeros((0, X), dtype=flat.dtype))
        transitions = views["transitions"].reshape(G, X, -1)
        visits, squares = views["visits"].reshape(G, X), squares.reshape(-1, X)
        return VisitTables(views["reward"].reshape(G, X), squares, visits, transitions)

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the counts of many users, one trajectory per row."""
        add_visits(lives, self.horizon, self.pairs.first, self.pairs.number, self.tables(out))

    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """Exact, jointly over all blocks (docs/papers/tabular_ldp.md#sensitivity).

        Each block carries a total mass m of at most H (transitions: H - 1), one unit per step.
        Adding a user moves it by that mass; replacing one moves two disjoint sets of cells. In L2
        the worst user puts all steps of a pooled table into one cell, (sum m^2)^(1/2); with one
        table per stage every step has a cell of its own, (sum m)^(1/2). Replace-one, pooled:
        L1 = 6H - 2 and L2 = sqrt(4H^2 + 2(H-1)^2) without squares.
        """
        moved = 1 + replaced
        if norm == "l1":
            return moved * sum(w[name] * mass for name, mass in self.masses.items())
        power = 2 if self.stages == 1 else 1
        squared = sum(w[name] ** 2 * mass**power for name, mass in self.masses.items())
        return math.sqrt(moved * squared)

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Always in one pair (s, a) with reward 1, against always in another one.

        With a single state and action there is no other pair, and only the reward can differ.
        """
        places = list(zip(self.pairs.state.tolist(), self.pairs.action.tolist(), strict=True))
        one = staying(self.horizon, *places[0], 1.0)
        if len(places) == 1:
            return one, staying(self.horizon, *places[0], 0.0)
        return one, staying(self.horizon, *places[-1], 1.0)


class JointCounts(BoundedSum, BatchStatistic):
    """N(s,a,s') over all H steps, and sums of r - 1/2: V-free sums with one-hot features.

    See docs/papers/mixture_jdp.md#b1. A transition moves two cells by 1, a reward (centred at 1/2,
    which halves it) one cell by at most 1 or two by at most 1/2. Both are scaled so that noise of
    one size in all cells spends the given share of mu^2 on rewards. One table serves all stages
    when the task is homogeneous. There are cells for the task's pairs only, and nothing is counted
    from a terminal state on.

    Args:
        task: the public task; known rewards are not collected.
        reward_share: of mu^2.
    """

    def __init__(self, task: Task, reward_share: float) -> None:
        H, S, _ = table_sizes(task)
        self.task = task
        self.pooled = task.homogeneous
        self.learned = "reward" not in task.known
        share = reward_share if self.learned else 0.0
        self.step = max(1, round(math.sqrt((1.0 - share) / 2.0) * STEPS))
        self.reward_step = math.sqrt(share) * STEPS
        self.stages = 1 if self.pooled else H
        cells = (self.stages, *task.pairs.shape())
        blocks = [counted("transitions", *cells, S)]
        if self.learned:
            blocks.append(counted("reward", *cells))
        self.layout = Layout(blocks)

    @property
    def scales(self) -> dict[str, float]:
        """What contributions of a block were multiplied by."""
        return {"transitions": self.step / STEPS, "reward": self.reward_step / STEPS}

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the contributions of many users, one trajectory per row."""
        views, pairs = self.layout.views(out), self.task.pairs
        G, X = self.stages, len(pairs.action)
        moves = views["transitions"].reshape(G, X, -1)
        paid = views["reward"].reshape(G, X) if self.learned else np.zeros((0, X), dtype=np.int64)
        table, steps = (pairs.first, pairs.number), (self.step, self.reward_step)
        add_joint_counts(lives, self.task.horizon, self.pooled, *table, *steps, moves, paid)

    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """Exact, jointly over both blocks: H repetitions of the worst pair of steps.

        Squared L2 of two steps: 2 n^2 + r^2 for another s' at the same (s, a) with rewards 0 and 1,
        which no other pair exceeds. Pooled stages add up, separate ones add squares (a last stage
        moves two cells only if (s, a) differ: bounded alike).
        """
        count = w["transitions"] * self.step / STEPS
        paid = w.get("reward", 0.0) * (self.reward_step + 1.0) / STEPS if self.learned else 0.0
        H = self.task.horizon
        if norm == "l1":
            return H * (2.0 * count + paid if replaced else count + 0.5 * paid)
        step = math.sqrt(2.0 * count**2 + paid**2 if replaced else count**2 + 0.25 * paid**2)
        return step * (H if self.pooled else math.sqrt(H))

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """The same (s, a) all the time, with other rewards; next states differ where they can."""
        H, pairs = self.task.horizon, self.task.pairs
        alive = np.unique(pairs.state)
        one, other = (int(pairs.first[s]) for s in (alive[0], alive[-1]))
        places = [(int(pairs.state[x]), int(pairs.action[x])) for x in (one, other)]
        return staying(H, *places[0], 1.0), staying(H, *places[1], 0.0)


class PolicyTransitions(BoundedSum, BatchStatistic):
    """One-hot of (s_h, s_{h+1}) per stage h < H, filed under the action the policy prescribes.

    Missing steps count as staying in state 0.

    The published policy is deterministic, so the action adds nothing to the state. It is read from
    the publication, never from what the user did: a user who deviates changes no other cell, and
    cells of actions that the policy does not take have weight 0 and carry no noise
    (docs/papers/mixture_ldp.md#b2).
    """

    def __init__(self, task: Task) -> None:
        H, S, A = table_sizes(task)
        self.sizes = (H, S, A)
        self.layout = Layout([Block("transitions", (H - 1, S, A, S))])

    def _actions(self, publication: Publication) -> IntArray:
        policy = publication.policy
        H, S, _ = self.sizes
        if not isinstance(policy, TabularPolicy) or policy.actions.shape != (H, S):
            raise InvalidInput(
                "transitions are filed under the actions of a deterministic policy, a table of "
                f"shape {[H, S]}"
            )
        return policy.actions

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add the contributions of many users, one trajectory per row."""
        table = self.layout.views(out)["transitions"]
        add_policy_transitions(lives.states, self._actions(publication), table)

    def weights(self, publication: Publication) -> Array:
        """1 where the policy can put a user, else 0."""
        H, S, A = self.sizes
        flat = np.zeros(self.layout.size)
        table, actions = self.layout.views(flat)["transitions"], self._actions(publication)
        for h in range(H - 1):
            table[h, np.arange(S), np.clip(actions[h], 0, A - 1)] = 1.0
        return flat

    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """Every stage moves a 1 from one cell to another."""
        moved = (self.sizes[0] - 1) * (1 + replaced)
        return w["transitions"] * (moved if norm == "l1" else math.sqrt(moved))

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Always in the first state, against always in the last."""
        H, S, _ = self.sizes
        return staying(H, 0, 0, 0.0), staying(H, S - 1, 0, 0.0)


class Nothing(BoundedSum, BatchStatistic):
    """An empty contribution: reference policies need no data, and so protect it perfectly."""

    def __init__(self) -> None:
        self.layout = Layout([])

    def add_many(
        self, lives: Lives, publication: Publication, coins: IntArray, out: IntArray
    ) -> None:
        """Add nothing."""

    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """Zero: no trajectory changes an empty vector."""
        return 0.0

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Any two: none of them shows."""
        return staying(0, 0, 0, 0.0), staying(0, 0, 0, 0.0)
