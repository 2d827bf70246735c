"""Optimistic backward induction on noisy counts."""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import InvalidInput
from tacit.kernels.obi import Precision, obi_induction
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
        """Widths before episode k, from the number of reports and the law of their noise."""
        S, A, H = task.sizes["states"], task.sizes["actions"], task.horizon
        n = release.users
        k = n + 1
        confidence = 3 * self.beta / (2 * math.pi**2 * k**2)
        one = math.log(6 * S * A / confidence)
        all_ = math.log(6 * S * S * A / confidence)
        log = math.log(4 * math.pi**2 * S * A * H * k**3 / (3 * self.beta))
        variance = float(release.law.variance("visits")) / n if n else 0.0
        if release.law.name == "laplace":
            b = math.sqrt(variance / 2)
            c1 = max(math.sqrt(k), one) * math.sqrt(8 * one) * b
            c3 = max(math.sqrt(k * S), all_) * math.sqrt(8 * all_) * b
            c4 = c3 / math.sqrt(S)
        elif release.law.name == "gaussian":
            sigma = math.sqrt(variance)
            factor, wide = (1.0, one) if self.printed else (2.0, all_)
            c1 = max(sigma * math.sqrt(factor * n * one), 1.0)
            c3 = max(sigma * math.sqrt(factor * n * S * wide), 1.0)
            c4 = max(sigma * math.sqrt(factor * n * wide), 1.0)
        else:
            raise InvalidInput(f"ldp-obi has no widths for {release.law.name!r} noise")
        return Precision(c1, c1, c3, c4, self.alpha, log)

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
