"""Posterior sampling on tables: PSRL, the baseline to beat, and LDP-PSRL under local privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import Ranges, TableAgent, not_private
from tacit.kernels.public.posterior import DirichletPrior
from tacit.learner import BoundAgent
from tacit.planners.posterior import PosteriorPlanner
from tacit.privacy.local.additive import LocalAdditive
from tacit.schedules import Every
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


@dataclass(frozen=True)
class PSRL(TableAgent):
    """Posterior sampling (docs/papers/tabular_ldp.md#baselines).

    Attributes:
        alpha0: Dirichlet pseudo-count of every next state.
        lambda0: pseudo-count of the reward mean (prior mean 0).
        nu0: shape of the prior on the reward precision.
        beta0: rate of the prior on the reward precision.
        every: users between two draws.
    """

    name: ClassVar[str] = "psrl"
    ranges: ClassVar[Ranges] = dict.fromkeys(
        ("alpha0", "lambda0", "nu0", "beta0"), {"low": 1e-9, "high": 1e9}
    )
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    alpha0: float = 1.0
    lambda0: float = 1.0
    nu0: float = 1.0
    beta0: float = 1.0
    every: int = 1

    def fitted(self, task: Task) -> BoundAgent:
        """Exact counts, a fresh posterior draw after every user, or every so many."""
        statistic = VisitCounts(task, squares=True)
        prior = DirichletPrior(
            float(self.alpha0), float(self.lambda0), float(self.nu0), float(self.beta0)
        )
        return not_private(task, statistic, PosteriorPlanner(prior), Every(self.every))


@dataclass(frozen=True)
class LdpPSRL(TableAgent):
    """Users add Laplace noise to their counts; the learner samples from a wide posterior.

    See docs/papers/tabular_ldp.md#ldp-psrl. Pools stages, so the task must be declared
    homogeneous. The prior grows with the number of users, which must therefore be known in advance.

    Attributes:
        epsilon: privacy asked for.
        calibration: "tight" adds the least noise; "paper" adds the paper's.
        beta: failure probability in the prior.
    """

    name: ClassVar[str] = "ldp-psrl"
    models: ClassVar[tuple[str, ...]] = ("local",)
    epsilon: float
    calibration: Literal["tight", "paper"] = "tight"
    beta: float = 0.1

    def fitted(self, task: Task) -> BoundAgent:
        """Noisy counts, a fresh draw after every user."""
        self.require_homogeneous(task)
        statistic = VisitCounts(task, squares=True)
        scales = None
        if self.calibration == "paper":
            scale = paper_constants.tabular_psrl(task.horizon, self.epsilon)
            scales = {block.name: scale for block in statistic.layout.blocks}
        privatizer = LocalAdditive(
            statistic, task, "laplace", scales, requested=(self.epsilon, 0.0)
        )
        planner = PosteriorPlanner(self.prior(task, privatizer.scales["visits"]))
        return BoundAgent(task, statistic, privatizer, planner)

    def prior(self, task: Task, scale: float) -> DirichletPrior:
        """The paper's prior: pseudo-counts as large as the noise of all users may become."""
        S, A = task.sizes["states"], task.sizes["actions"]
        one = math.log(6 * S * A / self.beta)
        every = math.log(6 * S * S * A / self.beta)
        alpha0 = max(math.sqrt(task.users * S), every) * math.sqrt(8 * every) * scale
        lambda0 = max(math.sqrt(task.users), one) * math.sqrt(8 * one) * scale
        return DirichletPrior(alpha0, lambda0, lambda0, 5 * lambda0)

    def notes(self, task: Task) -> tuple[str, ...]:
        """How much data the prior is worth."""
        b = self.bind(task).privatizer.law(1).scale("visits")
        prior, pairs = self.prior(task, b), task.sizes["states"] * task.sizes["actions"]
        return (
            f"the prior counts as {prior.lambda0:.4g} visits to every pair (s, a); "
            f"{task.users:,} episodes give {task.users * task.horizon / pairs:.4g} on average",
        )
