"""Posterior sampling on tables: PSRL, the baseline to beat, and LDP-PSRL under local privacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents.base import Ranges, TableAgent, not_private
from tacit.agents.local_tables import LocalTableAgent, Randomizer
from tacit.agents.published import Calibration
from tacit.kernels.public.obi import WIDTHS, CellNoise, noise_bounds
from tacit.kernels.public.posterior import DirichletPrior
from tacit.learner import BoundAgent
from tacit.planners.obi import cell_noise
from tacit.planners.posterior import PosteriorPlanner
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
class LdpPSRL(LocalTableAgent):
    """Users add noise to their counts; the learner samples from a wide posterior.

    See docs/papers/tabular_ldp.md#ldp-psrl. Pools stages, so the task must be declared
    homogeneous. The prior grows with the number of users, which must therefore be known in advance.
    The paper has Laplace noise and says that other randomizers should be possible. With them the
    pseudo-counts are bounds on the noise of all users all the same, and what the paper shares among
    three tables in LDP-OBI is shared among four.

    Attributes:
        epsilon: privacy asked for.
        calibration: "corrected", "paper" or "tight".
        beta: failure probability in the prior.
        randomizer: "laplace", as published; "gaussian", "randomized-response", or "bounded"
            (simulated only).
        delta: asked for; Gaussian and bounded noise need one, the others have none.
        constant: of the Gaussian noise, as in ldp-obi.
    """

    name: ClassVar[str] = "ldp-psrl"
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "the paper's; other noise than Laplace is raised where it falls short, with "
        "bounds that hold in the prior",
        "paper": "Laplace noise of scale 8H / epsilon, and the prior that goes with it",
        "tight": "the least noise, and the prior that goes with it",
    }
    tables: ClassVar[int] = 4
    later: ClassVar[frozenset[str]] = frozenset({"randomizer", "delta", "constant"})
    epsilon: float
    calibration: Calibration = "corrected"
    beta: float = 0.1
    randomizer: Randomizer = "laplace"
    delta: float = 0.0
    constant: Literal["proof", "proposition"] = "proof"

    def fitted(self, task: Task) -> BoundAgent:
        """Noisy counts, a fresh draw after every user."""
        self.require_homogeneous(task)
        statistic = VisitCounts(task, squares=True)
        privatizer = self.privatizer(statistic, task)
        planner = PosteriorPlanner(self.prior(task, cell_noise(privatizer.law(1))))
        return BoundAgent(task, statistic, privatizer, planner)

    def prior(self, task: Task, noise: CellNoise) -> DirichletPrior:
        """The paper's prior: pseudo-counts as large as the noise of all users may become.

        These are the c_3 and c_2 of LDP-OBI before the last episode, with all of beta.
        """
        sizes = task.sizes["states"], task.sizes["actions"], task.horizon
        width = WIDTHS["paper" if self.calibration == "paper" else "corrected"]
        lambda0, alpha0, _ = noise_bounds(noise, task.users - 1, sizes, self.beta, width)
        return DirichletPrior(alpha0, lambda0, lambda0, 5 * lambda0)

    def notes(self, task: Task) -> tuple[str, ...]:
        """How much data the prior is worth."""
        privatizer = self.bind(task).privatizer
        prior = self.prior(task, cell_noise(privatizer.law(1)))
        pairs = task.sizes["states"] * task.sizes["actions"]
        return (
            f"the prior counts as {prior.lambda0:.4g} visits to every pair (s, a); "
            f"{task.users:,} episodes give {task.users * task.horizon / pairs:.4g} on average",
            *self.raised_noise(privatizer, task),
        )
