"""Optimistic backward induction on noisy counts."""

from __future__ import annotations

import numpy as np

from tacit.errors import InvalidInput
from tacit.kernels.obi import Precision, obi_induction, obi_precision
from tacit.kernels.planning import greedy
from tacit.planners.base import Ask, Streams, next_version
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task


class ObiPlanner:
    """LDP-OBI's planner (spec tabular_ldp 3.2, 3.4): widths from the declared law of the noise.

    Args:
        alpha: shift of the denominators, > 1.
        beta: failure probability.
        printed: the paper's widths and last-step bonus, instead of the corrected ones (E4, E8).
    """

    def __init__(self, *, alpha: float, beta: float, printed: bool) -> None:
        self.alpha = alpha
        self.beta = beta
        self.printed = printed

    def precision(self, task: Task, release: Release) -> Precision:
        """Widths before the next episode, from the number of reports and the law of their noise."""
        if release.law.name not in ("laplace", "gaussian"):
            raise InvalidInput(f"ldp-obi has no widths for {release.law.name!r} noise")
        return obi_precision(
            release.law.name == "gaussian",
            release.law.scale("visits"),
            release.users,
            (task.sizes["states"], task.sizes["actions"], task.horizon),
            self.alpha,
            self.beta,
            self.printed,
        )

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
        obi_induction(
            release.blocks["reward"],
            release.blocks["visits"],
            release.blocks["transitions"],
            self.precision(task, release),
            self.printed,
            Q,
            np.empty((H + 1, S)),
        )
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        return Publication(next_version(previous), TabularPolicy(actions))
