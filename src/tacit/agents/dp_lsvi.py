"""Private LSVI: fixed batches (Luyo), adaptive batches (Ngo) and DP-LSVI-UCB++, done right.

``calibration="tight"`` finds the least noise for the request: Gram matrices through a tree, fresh
noise for every answer, a hard cap on answers, centred targets, stage ranges. ``"paper"`` takes the
paper's constants, noise and bonus, and prints what they truly give.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.agents import lsvi_calibration as calibrations
from tacit.agents.base import CalibratedAgent
from tacit.agents.lsvi import (
    DEFAULT_BONUS_SCALE,
    LsviAgent,
    dimension,
    switches_at_most,
    tuned_plus,
)
from tacit.learner import BoundAgent
from tacit.planners.lsvi import Asked, LsviPlanner, LsviPlusPlanner, Rule, Switching
from tacit.privacy.counters.tree import Tree
from tacit.privacy.curator.curator import Curator
from tacit.privacy.curator.declared_answers import Answers, Price
from tacit.privacy.curator.paper import Independent, ReusedNoise
from tacit.schedules import CappedBatches, Schedule, every_user
from tacit.statistics.linear import CuratedTransitions
from tacit.task.task import Task
from tacit.validate import choice


@dataclass(frozen=True)
class _PrivateLsvi(LsviAgent, CalibratedAgent):
    """What the three agents share: their parameters and the two calibrations."""

    bonus_scale: float | None = None
    beta: float = 0.01

    def fitted(self, task: Task) -> BoundAgent:
        """A curator, and a planner that asks it."""
        return self._paper(task) if self.as_paper else self._tight(task)

    @abstractmethod
    def _paper(self, task: Task) -> BoundAgent: ...

    @abstractmethod
    def _planner(
        self, H: int, ridge: float, answers: Answers, switching: Switching | None
    ) -> LsviPlanner | LsviPlusPlanner:
        """The planner of tight calibration."""

    def _asked(self, task: Task) -> tuple[CuratedTransitions, calibrations.Targets]:
        """Of which transitions what is asked."""
        return CuratedTransitions(task), calibrations.one_target(task.horizon)

    def _schedule(self, task: Task) -> tuple[Schedule, int]:
        """Users between releases, and the number of releases before the last user."""
        return every_user, max(task.users - 1, 1)

    def _switching(self, rounds: int) -> Switching | None:
        """When to plan anew, where not at every release."""
        return None

    @property
    def _scale(self) -> float:
        return DEFAULT_BONUS_SCALE if self.bonus_scale is None else self.bonus_scale

    def _sizes(self, task: Task) -> calibrations.Sizes:
        return calibrations.Sizes(dimension(task), task.horizon, task.users, self.beta)

    def _tight(self, task: Task) -> BoundAgent:
        d, H, K = dimension(task), task.horizon, task.users
        (statistic, targets), (schedule, ends) = self._asked(task), self._schedule(task)
        tree, weight = Tree(ends), statistic.largest_weight
        shares = calibrations.tight_shares(statistic, task, tree, targets, self.epsilon, self.delta)
        ridge = weight + calibrations.spectral_shift(shares.gram_std, tree, d, H, K, self.beta)
        switching = self._switching(switches_at_most(d, H, K, weight, ridge))
        answers = shares.answers(targets, ends if switching is None else switching.most)
        parts = statistic, task, tree, shares.gram_std, answers, shares.price
        curator = Curator(*parts, batch=schedule(0), requested=self.requested())
        planner = self._planner(H, ridge, answers, switching)
        return BoundAgent(task, statistic, curator, planner, schedule)


class _OneTarget(_PrivateLsvi):
    """Luyo's and Ngo's agents: one answer per stage and plan, which they differ in the times of."""

    @abstractmethod
    def _constants(self, task: Task, tree: Tree) -> calibrations.PaperConstants: ...

    def _planner(
        self, H: int, ridge: float, answers: Answers, switching: Switching | None
    ) -> LsviPlanner:
        return LsviPlanner(ridge, 1.0, self._scale * H, Asked(answers.ranges), switching)

    def _paper(self, task: Task) -> BoundAgent:
        """Answers of r + V in [0, H + 1] at every stage, not centred."""
        statistic, H = CuratedTransitions(task), task.horizon
        schedule, ends = self._schedule(task)
        constants = self._constants(task, Tree(ends))
        switching = self._switching(constants.rounds)
        tree = Tree(max(ends, constants.rounds) if switching is None else ends)
        stds, ranges = np.full(H, constants.target_std), {"value": np.full(H, H + 1.0)}
        answers = Answers(ranges, {"value": stds}, constants.rounds, {"value": True}, centred=False)
        price = Price.separate(1.0, centred=False)
        parts = statistic, task, tree, constants.gram_std, answers, price
        curator = Curator(*parts, batch=schedule(0), requested=self.requested())
        bonus = constants.bonus if self.bonus_scale is None else self._scale * H
        asked = Asked(ranges, centred=False)
        planner = LsviPlanner(constants.ridge, 1.0, bonus, asked, switching, stage_ranges=False)
        return BoundAgent(task, statistic, curator, planner, schedule)


@dataclass(frozen=True)
class DpLsviBatch(_OneTarget):
    """A new plan after every batch of fixed size.

    Luyo et al. 2021, docs/papers/linear_jdp.md#luyo.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
        calibration: "tight" or "paper".
        bonus_scale: c in the bonus c H |phi|; None takes 0.1, or the paper's.
        beta: failure probability.
    """

    name: ClassVar[str] = "dp-lsvi-batch"

    def _schedule(self, task: Task) -> tuple[Schedule, int]:
        size = math.ceil(task.users / calibrations.batch_count(self._sizes(task), self.epsilon))
        return CappedBatches(size, size, 0.0), max(1, math.ceil(task.users / size) - 1)

    def _constants(self, task: Task, tree: Tree) -> calibrations.PaperConstants:
        return calibrations.batch_constants(self._sizes(task), self.epsilon, self.delta)


@dataclass(frozen=True)
class DpLsviAdaptive(_OneTarget):
    """A new plan when a released determinant has doubled.

    Ngo et al. 2022, docs/papers/linear_jdp.md#ngo.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
        calibration: "tight" or "paper".
        bonus_scale: c in the bonus c H |phi|; None takes 0.1, or the paper's.
        beta: failure probability.
        switching: "determinant" as there; "rayleigh" plans anew when a released matrix has grown
            by 1.4 in some direction (docs/papers/linear_jdp.md#rayleigh).
    """

    name: ClassVar[str] = "dp-lsvi-adaptive"
    switching: Rule = "determinant"

    def _constants(self, task: Task, tree: Tree) -> calibrations.PaperConstants:
        rho = calibrations.zcdp(self.epsilon, self.delta)
        return calibrations.adaptive_constants(
            self._sizes(task), rho, round(tree.column_norm() ** 2)
        )

    def _switching(self, rounds: int) -> Switching:
        return Switching.by(self.switching, rounds)


@dataclass(frozen=True)
class DpLsviUCBPlusPlus(_PrivateLsvi):
    """Variance-weighted private regression with rare switching.

    Paper calibration is docs/papers/linear_jdp.md#published-constants, tight calibration #tight on
    that page, which plans from the newest answers: the paper's minimum over all plans keeps the
    unluckiest noise for ever (paper calibration keeps it). That is post-processing of answers, so
    privacy is the same.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
        calibration: "tight" or "paper".
        bonus_scale: c in the bonus c H |phi|; None takes 0.1, or the paper's.
        beta: failure probability.
        reuse_noise: paper calibration only: one draw for all releases, exactly as there, which has
            no finite epsilon (docs/papers/linear_jdp.md#e1).
        switching: "determinant" as there, or "rayleigh" (docs/papers/linear_jdp.md#rayleigh).
    """

    name: ClassVar[str] = "dp-lsvi-ucb++"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    reuse_noise: bool = False
    switching: Rule = "determinant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reuse_noise:
            choice(self.calibration, "calibration (with reuse_noise)", ("paper",))

    def _asked(self, task: Task) -> tuple[CuratedTransitions, calibrations.Targets]:
        return CuratedTransitions(task, 1.0 / task.horizon), calibrations.three_targets(task)

    def _switching(self, rounds: int) -> Switching:
        return Switching.by(self.switching, rounds)

    def _planner(
        self, H: int, ridge: float, answers: Answers, switching: Switching | None
    ) -> LsviPlusPlanner:
        assert switching is not None
        bonus, asked = tuned_plus(self._scale, H), Asked(answers.ranges)
        return LsviPlusPlanner(ridge, 1.0 / H, bonus, switching, asked, monotone=False)

    def _paper(self, task: Task) -> BoundAgent:
        H, K = task.horizon, task.users
        statistic, targets = self._asked(task)
        rho = calibrations.zcdp(self.epsilon, self.delta)
        each = rho / (4 * H * K)
        vector, square = (math.sqrt(2 * H**power / each) for power in (2, 4))
        stds = {name: np.full(H, square if name == "square" else vector) for name in targets.ranges}
        answers = Answers(targets.ranges, stds, K, targets.rewards, centred=False)
        kind = ReusedNoise if self.reuse_noise else Curator
        price = Price.separate(1.0 / H, centred=False)
        parts = statistic, task, Independent(K), math.sqrt(1 / (2 * each)), answers, price
        curator = kind(*parts, batch=1, requested=self.requested())
        constants = calibrations.plus_constants(self._sizes(task), rho)
        bonus = constants.bonus if self.bonus_scale is None else tuned_plus(self._scale, H)
        asked = Asked(answers.ranges, centred=False)
        ridge = 2 * constants.ridge
        planner = LsviPlusPlanner(ridge, 1.0 / H**2, bonus, self._switching(K), asked)
        return BoundAgent(task, statistic, curator, planner)
