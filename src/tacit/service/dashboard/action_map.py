"""Which action a policy prescribes in which state and at which stage."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.policy import Policy, StochasticPolicy, TabularPolicy
from tacit.publication import Publication

if TYPE_CHECKING:
    from tacit.service.deployment import Deployment


@dataclass(frozen=True)
class ActionMap:
    """A policy as tables.

    Attributes:
        version: of the policy.
        states: names, or numbers.
        actions: names, or numbers.
        letters: short marks of the actions, for small cells.
        table: the (most likely) action of every stage, by state.
        certainty: its probability, where the policy is stochastic.
        changed: cells that differ from the version before, None for the first.
    """

    version: int
    states: tuple[str, ...]
    actions: tuple[str, ...]
    letters: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    certainty: tuple[tuple[float, ...], ...] | None
    changed: int | None


def action_map(
    deployment: Deployment, shown: Publication | None, before: Publication | None
) -> ActionMap | None:
    """The map of a publication; None before the first, or where a policy is no table."""
    found = None if shown is None else _table(shown.policy)
    if shown is None or found is None:
        return None
    table, certainty = found
    earlier = None if before is None else _table(before.policy)
    S, A = deployment.task.sizes["states"], deployment.task.sizes["actions"]
    return ActionMap(
        version=shown.version,
        states=deployment.states or tuple(str(s) for s in range(S)),
        actions=deployment.actions or tuple(f"action {a}" for a in range(A)),
        letters=tuple(letter(a) for a in range(A)),
        table=tuple(tuple(int(a) for a in row) for row in table),
        certainty=None
        if certainty is None
        else tuple(tuple(round(float(p), 4) for p in row) for row in certainty),
        changed=None if earlier is None else int((earlier[0] != table).sum()),
    )


def letter(action: int) -> str:
    """A, B, ..., Z, A1, B1, ..."""
    turn, place = divmod(action, 26)
    return string.ascii_uppercase[place] + (str(turn) if turn else "")


def _table(policy: Policy) -> tuple[IntArray, Array | None] | None:
    if isinstance(policy, TabularPolicy):
        return policy.actions, None
    if isinstance(policy, StochasticPolicy):
        best = np.argmax(policy.probabilities, axis=-1)
        return best.astype(np.int64), policy.probabilities.max(axis=-1)
    return None
