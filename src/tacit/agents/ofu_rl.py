"""OFU-RL and Private-OFU-RL: optimism for linear systems (docs/papers/lq_jdp.md#ofu-rl)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import ControlAgent, not_private
from tacit.agents.published import Calibration, PublishedAgent, PublishedPrivateAgent
from tacit.agents.reference import every_tenth
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.ofu import OfuPlanner, paper_ridge, plain_ridge, tight_ridge
from tacit.privacy.counters import strategy
from tacit.privacy.counters.tree import Tree
from tacit.privacy.joint.counted import CountedSums, counted_noise
from tacit.schedules import Schedule, every_user
from tacit.statistics.lq import ControlMoments
from tacit.task.task import Task


@dataclass(frozen=True)
class OfuRL(ControlAgent, PublishedAgent):
    """Optimism over a confidence ellipsoid of exact moments. Not private.

    The paper gives no lambda, no alpha and no way to find the most favourable model: ours are 1,
    0.05 and docs/papers/lq_jdp.md#optimistic-step. In every calibration the start is averaged over
    its declared law, gains are capped and controllability is not asked for
    (docs/papers/lq_jdp.md#e6 to #e8).

    Attributes:
        ridge: lambda.
        beta: failure probability, the paper's alpha.
        certify: publish a lower bound on the value of every optimistic solve.
        calibration: "corrected", "paper" or "tight".
    """

    name: ClassVar[str] = "ofu-rl"
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "as paper: no erratum changes what is played without noise",
        "paper": "a new plan for every user",
        "tight": "a new plan whenever a tenth more users were served",
    }
    ridge: float = 1.0
    beta: float = 0.05
    certify: bool = False
    calibration: Calibration = "corrected"

    def fitted(self, task: Task) -> BoundAgent:
        """Exact moments, planned anew for every user or at geometric times."""
        planner = OfuPlanner(plain_ridge(float(self.ridge)), beta=self.beta, certify=self.certify)
        times = every_user if self.published else every_tenth
        return not_private(task, ControlMoments(task), planner, times)


@dataclass(frozen=True)
class PrivateOfuRL(ControlAgent, PublishedPrivateAgent):
    """Optimism on moments that a curator releases through a continual counter.

    "paper" has the paper's noise per node, upper-triangular noise on M, radius constants, a tree
    over episodes and a plan after every one; "corrected" raises both noises in proportion where
    they are too little, and the radius with them. What would not be private is replaced in both
    (the radius, docs/papers/lq_jdp.md#e1). "tight" is one Gaussian mechanism for both sums,
    isometric noise, a failure budget over policy updates, and updates at geometric times. What the
    paper leaves open is as in ofu-rl.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
        calibration: "corrected", "paper" or "tight".
        counter: "tree", as published, "honaker", "toeplitz" or "normalised"; None for the tree
            (tight: "toeplitz").
        clipping: "step" clips every state and input; "energy" bounds their total over the episode
            by what the declared bounds forecast (docs/papers/lq_jdp.md#b2; tight only).
        beta: failure probability, the paper's alpha.
        certify: publish a lower bound on the value of every optimistic solve.
    """

    name: ClassVar[str] = "private-ofu-rl"
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "the paper's two noises, raised in proportion where both together give less "
        "than is asked for; a radius that is private",
        "paper": "the paper's two noises; a radius that is private, for the published one is not",
        "tight": "the least noise for both sums together, sharp radii, plans at geometric times",
    }
    counter: Literal["tree", "honaker", "toeplitz", "normalised"] | None = None
    clipping: Literal["step", "energy"] = "step"
    beta: float = 0.05
    certify: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published and (self.chosen_counter != "tree" or self.clipping != "step"):
            raise InvalidInput(
                "as published sums go through a tree and every step is clipped: leave counter and "
                "clipping out, or choose calibration tight"
            )

    @property
    def chosen_counter(self) -> str:
        """The counter asked for, else the one that goes with the calibration."""
        return self.counter or ("tree" if self.published else "toeplitz")

    def parameters(self) -> dict[str, Any]:
        """Parameters by name, with the counter that is used."""
        return {**super().parameters(), "counter": self.chosen_counter}

    def fitted(self, task: Task) -> BoundAgent:
        """Noisy running moments, optimism on them."""
        return self._as_printed(task) if self.published else self._tight(task)

    def _tight(self, task: Task) -> BoundAgent:
        energy = forecast_energy(task) if self.clipping == "energy" else None
        statistic = ControlMoments(task, energy=energy)
        releases, batch = _releases(task.users, every_tenth)
        kind = strategy(self.chosen_counter, releases)
        privatizer = CountedSums(statistic, task, kind, batch=batch, requested=self.requested())
        prefix = privatizer.law(task.users).std
        ridge = tight_ridge(prefix, prefix, _sizes(task), releases, self.beta)
        planner = OfuPlanner(ridge, beta=self.beta, certify=self.certify)
        return BoundAgent(task, statistic, privatizer, planner, every_tenth)

    def _as_printed(self, task: Task) -> BoundAgent:
        gain, levels = float(task.known["bounds"][3]), _levels(task)
        statistic = ControlMoments(task, weight=1.0 + gain, isometric=False)
        kind = Tree(max(task.users - 1, 1))
        moment_std, target_std = self._published_stds(task)
        std = moment_std
        if self.corrected:
            std = max(std, counted_noise(statistic, task, kind, 1, *self.requested()))
        privatizer = CountedSums(statistic, task, kind, std, batch=1, requested=self.requested())
        target_std *= std / moment_std
        ridge = paper_ridge(std, target_std, levels, _sizes(task), task.users, self.beta)
        planner = OfuPlanner(
            ridge, beta=self.beta, weight=1.0 + gain, off_diagonal=1.0, certify=self.certify
        )
        return BoundAgent(task, statistic, privatizer, planner, every_user)

    def _published_stds(self, task: Task) -> tuple[float, float]:
        """Of a node of M and of N."""
        gain = float(task.known["bounds"][3])
        return paper_constants.control_joint(
            task.horizon, gain, self.epsilon, self.delta, _levels(task)
        )

    def notes(self, task: Task) -> tuple[str, ...]:
        """Until when optimism means doing nothing, and what is not as printed."""
        idle = (
            "while the confidence set contains the plant that is still by itself, the most "
            "favourable model needs no input, and this learner does nothing"
        )
        if not self.published:
            return (idle,)
        page, privatizer = "docs/papers/lq_jdp.md", self.bind(task).privatizer
        assert isinstance(privatizer, CountedSums)
        factor = privatizer.scale / self._published_stds(task)[0]
        return (
            idle,
            "not as printed, in any calibration: the radius has the determinant of released "
            f"matrices, for that of exact ones is not private ({page}#e1), gains are capped "
            f"({page}#e6), and the start is averaged over its law ({page}#e7)",
            *self.raised(factor, f"{page}#e3"),
        )


def forecast_energy(task: Task) -> float:
    """1.2 (max |x_1|^2 + n H W_11) / (1 - C_A^2): energy of the states, from declared bounds."""
    state_bound, _, noise_bound, _ = task.known["bounds"]
    n = task.sizes["states"]
    first = float((task.known["start"] ** 2).sum(axis=1).max())
    total = first + n * task.horizon * float(noise_bound) ** 2 / (n + 2)
    return 1.2 * total / (1.0 - float(state_bound) ** 2)


def _sizes(task: Task) -> tuple[int, int]:
    n = task.sizes["states"]
    return n + task.sizes["inputs"], n


def _levels(task: Task) -> int:
    """m = ceil(log2 K)."""
    return max((task.users - 1).bit_length(), 1)


def _releases(users: int, schedule: Schedule) -> tuple[int, int]:
    """Number of releases with data that a schedule leads to, and its largest batch."""
    served, releases, largest = 0, 0, 1
    while served < users:
        batch = min(schedule(served), users - served)
        served, releases, largest = served + batch, releases + 1, max(largest, batch)
    return max(releases - 1, 1), largest
