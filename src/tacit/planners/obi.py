"""Optimistic backward induction on noisy counts."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from tacit.errors import InvalidInput
from tacit.kernels.obi import KINDS, CellNoise
from tacit.kernels.obi_values import WIDTHS, Rule, first_bonus, obi_values
from tacit.kernels.planning import greedy
from tacit.planners.base import Ask, Streams, next_version
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import NoiseLaw, Release
from tacit.task import Task

Width = Literal["published", "corrected", "tight"]


def cell_noise(law: NoiseLaw) -> CellNoise:
    """What widths need of a law."""
    if law.name not in KINDS:
        raise InvalidInput(f"ldp-obi has no widths for {law.name!r} noise")
    return CellNoise(KINDS[law.name], law.scale("visits"), law.scale("transitions"))


LATEST = 10**16
"""Episodes beyond which a bonus counts as never small enough."""


class ObiPlanner:
    """LDP-OBI's planner: widths from the declared law of the noise.

    See docs/papers/tabular_ldp.md#ldp-obi and docs/papers/tabular_ldp.md#precisions.

    Args:
        alpha: shift of the denominators, > 1; "tight" widths have none.
        beta: failure probability.
        width: the "published" widths and last-step bonus, the "corrected" ones
            (docs/papers/tabular_ldp.md#e4, and E5, E8 there), or the "tight" ones
            (docs/papers/tabular_ldp.md#b7).
    """

    def __init__(self, *, alpha: float, beta: float, width: Width) -> None:
        self.rule = Rule(WIDTHS[width], float(alpha), float(beta))

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Optimistic backward induction on the released tables."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        Q = np.empty((H, S, A))
        obi_values(
            release.blocks["reward"],
            release.blocks["visits"],
            release.blocks["transitions"],
            cell_noise(release.law),
            release.users,
            self.rule,
            Q,
            np.empty((H + 1, S)),
        )
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        return Publication(next_version(previous), TabularPolicy(actions))

    def break_even(self, task: Task, law: NoiseLaw, target: float) -> float:
        """The episode from which on the bonus of step 1 is at most ``target``, infinite if never.

        For a pair (s, a) that every user visits at every step
        (docs/papers/tabular_ldp.md#break-even): all others come later.
        """
        noise = cell_noise(law)
        sizes = (task.sizes["states"], task.sizes["actions"], task.horizon)

        def small(users: int) -> bool:
            return first_bonus(noise, users, sizes, self.rule) <= target

        high = 1
        while not small(high):
            high *= 2
            if high > LATEST:
                return math.inf
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if small(middle) else (middle, high)
        return high + 1.0
