"""Which transition was taken, stage by stage, on the support of the published policy."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels.counts import add_policy_transitions
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.statistics.base import Block, Layout, ManyUsers, Norm, Relation, block_weights
from tacit.task import Task, table_sizes
from tacit.trajectory import Trajectory


class PolicyTransitions(ManyUsers):
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
        self,
        states: IntArray,
        actions: IntArray,
        rewards: Array,
        publication: Publication,
        out: IntArray,
    ) -> None:
        """Add the contributions of many users, one trajectory per row."""
        table = self.layout.views(out)["transitions"]
        add_policy_transitions(states, self._actions(publication), table)

    def weights(self, publication: Publication) -> Array:
        """1 where the policy can put a user, else 0."""
        H, S, A = self.sizes
        flat = np.zeros(self.layout.size)
        table, actions = self.layout.views(flat)["transitions"], self._actions(publication)
        for h in range(H - 1):
            table[h, np.arange(S), np.clip(actions[h], 0, A - 1)] = 1.0
        return flat

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """Every stage moves a 1 from one cell to another."""
        weight = block_weights(self.layout, norm, relation, scale)["transitions"]
        moved = (self.sizes[0] - 1) * (2 if relation is Relation.REPLACE_ONE else 1)
        return weight * (moved if norm == "l1" else math.sqrt(moved))

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Always in the first state, against always in the last."""
        H, S, _ = self.sizes

        def stay(s: int) -> Trajectory:
            return Trajectory(np.full(H + 1, s), np.zeros(H, dtype=np.int64), np.zeros(H))

        return stay(0), stay(S - 1)
