"""OFU-RL and Private-OFU-RL: optimism for linear systems (docs/papers/lq_jdp.md#ofu-rl)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import CalibratedAgent, ControlAgent, not_private
from tacit.agents.reference import every_tenth
from tacit.learner import BoundAgent
from tacit.planners.ofu import OfuPlanner, paper_ridge, plain_ridge, tight_ridge
from tacit.privacy.counters import strategy
from tacit.privacy.counters.tree import Tree
from tacit.privacy.joint.counted import CountedSums
from tacit.schedules import Schedule, every_user
from tacit.statistics.lq import ControlMoments
from tacit.task.task import Task


@dataclass(frozen=True)
class OfuRL(ControlAgent):
    """Optimism over a confidence ellipsoid of exact moments. Not private.

    Attributes:
        ridge: lambda.
        beta: failure probability.
        certify: publish a lower bound on the value of every optimistic solve.
    """

    name: ClassVar[str] = "ofu-rl"
    ridge: float = 1.0
    beta: float = 0.05
    certify: bool = False

    def fitted(self, task: Task) -> BoundAgent:
        """Exact moments, replanned at geometric times."""
        planner = OfuPlanner(plain_ridge(float(self.ridge)), beta=self.beta, certify=self.certify)
        return not_private(task, ControlMoments(task), planner, every_tenth)


@dataclass(frozen=True)
class PrivateOfuRL(ControlAgent, CalibratedAgent):
    """Optimism on moments that a curator releases through a continual counter.

    "paper" has the paper's noise per node, upper-triangular noise on M, radius constants, a tree
    over episodes and a plan after every one; only what would not be private is replaced (the
    radius, docs/papers/lq_jdp.md#e1). "tight" is one Gaussian mechanism for both sums, isometric
    noise, a failure budget over policy updates, and updates at geometric times.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
        calibration: "tight" or "paper".
        counter: "tree", "honaker", "toeplitz" or "normalised"; the paper's is the tree.
        clipping: "step" clips every state and input; "energy" bounds their total over the episode
            by what the declared bounds forecast (docs/papers/lq_jdp.md#b2).
        beta: failure probability.
        certify: publish a lower bound on the value of every optimistic solve.
    """

    name: ClassVar[str] = "private-ofu-rl"
    counter: Literal["tree", "honaker", "toeplitz", "normalised"] = "toeplitz"
    clipping: Literal["step", "energy"] = "step"
    beta: float = 0.05
    certify: bool = False

    def fitted(self, task: Task) -> BoundAgent:
        """Noisy running moments, optimism on them."""
        return self._paper(task) if self.as_paper else self._tight(task)

    def _tight(self, task: Task) -> BoundAgent:
        energy = forecast_energy(task) if self.clipping == "energy" else None
        statistic = ControlMoments(task, energy=energy)
        releases, batch = _releases(task.users, every_tenth)
        kind = strategy(self.counter, releases)
        privatizer = CountedSums(statistic, task, kind, batch=batch, requested=self.requested())
        prefix = privatizer.law(task.users).std
        ridge = tight_ridge(prefix, prefix, _sizes(task), releases, self.beta)
        planner = OfuPlanner(ridge, beta=self.beta, certify=self.certify)
        return BoundAgent(task, statistic, privatizer, planner, every_tenth)

    def _paper(self, task: Task) -> BoundAgent:
        gain = float(task.known["bounds"][3])
        statistic = ControlMoments(task, weight=1.0 + gain, isometric=False)
        kind = Tree(max(task.users - 1, 1))
        levels = max((task.users - 1).bit_length(), 1)
        moment_std, target_std = paper_constants.control_joint(
            task.horizon, gain, self.epsilon, self.delta, levels
        )
        privatizer = CountedSums(
            statistic, task, kind, moment_std, batch=1, requested=self.requested()
        )
        ridge = paper_ridge(moment_std, target_std, levels, _sizes(task), task.users, self.beta)
        planner = OfuPlanner(
            ridge, beta=self.beta, weight=1.0 + gain, off_diagonal=1.0, certify=self.certify
        )
        return BoundAgent(task, statistic, privatizer, planner, every_user)

    def notes(self, task: Task) -> tuple[str, ...]:
        """Until when optimism means doing nothing."""
        return (
            "while the confidence set contains the plant that is still by itself, the most "
            "favourable model needs no input, and this learner does nothing",
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


def _releases(users: int, schedule: Schedule) -> tuple[int, int]:
    """Number of releases with data that a schedule leads to, and its largest batch."""
    served, releases, largest = 0, 0, 1
    while served < users:
        batch = min(schedule(served), users - served)
        served, releases, largest = served + batch, releases + 1, max(largest, batch)
    return max(releases - 1, 1), largest
