"""Private LSVI: fixed batches (Luyo), adaptive batches (Ngo) and DP-LSVI-UCB++, done right.

``calibration="tight"`` finds the least noise for the request: Gram matrices through a tree, fresh
noise for every answer, a hard cap on answers, centred targets, stage ranges. ``"paper"`` takes the
paper's constants, noise and bonus, and prints what they truly give.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tacit.agents.base import Agent, check_parameters
from tacit.agents.lsvi import dimension, switches_at_most, ties_note, tuned_plus
from tacit.agents.lsvi_calibration import (
    PaperConstants,
    Sizes,
    adaptive_constants,
    batch_constants,
    batch_count,
    one_target,
    plus_constants,
    spectral_shift,
    three_targets,
    tight_shares,
    zcdp,
)
from tacit.driver import BoundAgent, CappedBatches
from tacit.planners.lsvi import Asked, LsviPlanner, LsviPlusPlanner, Switching
from tacit.privacy.counters import Tree
from tacit.privacy.curator import Answers, Curator, Independent, Price, ReusedNoise
from tacit.statistics.linear import CuratedTransitions
from tacit.task import Task
from tacit.validate import choice

DEFAULT_SCALE = 0.1
"""The bonus c H |phi| of tight calibration, unless chosen."""


@dataclass(frozen=True)
class _PrivateLsvi(Agent):
    """What the three agents share: their parameters and the two calibrations."""

    uses: ClassVar[frozenset[str] | None] = frozenset()
    epsilon: float
    delta: float = 1e-5
    calibration: Literal["tight", "paper"] = "tight"
    bonus_scale: float | None = None
    beta: float = 0.01

    def __post_init__(self) -> None:
        check_parameters(self)

    def bind(self, task: Task) -> BoundAgent:
        """A curator, and a planner that asks it."""
        self.require_family(task, "tabular")
        if self.calibration == "tight":
            return self._tight(task)
        return self._paper(task)

    @abstractmethod
    def _tight(self, task: Task) -> BoundAgent: ...

    @abstractmethod
    def _paper(self, task: Task) -> BoundAgent: ...

    @property
    def _scale(self) -> float:
        return DEFAULT_SCALE if self.bonus_scale is None else self.bonus_scale

    def _sizes(self, task: Task) -> Sizes:
        return Sizes(dimension(task), task.horizon, task.users, self.beta)

    def notes(self, task: Task) -> tuple[str, ...]:
        """Whether the bonus says anything."""
        planner = self.bind(task).planner
        assert isinstance(planner, LsviPlanner | LsviPlusPlanner)
        bonus = planner.bonus if isinstance(planner, LsviPlanner) else planner.bonus.hat
        return ties_note(bonus, task.horizon, planner.ridge)


def _paper_targets(horizon: int, constants: PaperConstants) -> Answers:
    """r + V in [0, H + 1] at every stage, not centred."""
    stds = {"value": np.full(horizon, constants.target_std)}
    ranges = {"value": np.full(horizon, horizon + 1.0)}
    return Answers(ranges, stds, constants.rounds, {"value": True}, centred=False)


@dataclass(frozen=True)
class DpLsviBatch(_PrivateLsvi):
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

    def _batches(self, task: Task) -> tuple[CappedBatches, int]:
        """The schedule, and the number of batch ends before the last user."""
        size = math.ceil(task.users / batch_count(self._sizes(task), self.epsilon))
        return CappedBatches(size, size, 0.0), max(1, math.ceil(task.users / size) - 1)

    def _tight(self, task: Task) -> BoundAgent:
        d, H, K = dimension(task), task.horizon, task.users
        statistic, targets = CuratedTransitions(task), one_target(task.horizon)
        schedule, ends = self._batches(task)
        tree = Tree(ends)
        shares = tight_shares(statistic, task, tree, targets, self.epsilon, self.delta)
        answers = shares.answers(targets, ends)
        parts = statistic, task, tree, shares.gram_std, answers, shares.price
        curator = Curator(*parts, batch=schedule.least, **self.requested())
        shift = spectral_shift(shares.gram_std, tree, d, H, K, self.beta)
        planner = LsviPlanner(1.0 + shift, 1.0, self._scale * H, Asked(answers.ranges))
        return BoundAgent(task, statistic, curator, planner, schedule)

    def _paper(self, task: Task) -> BoundAgent:
        constants = batch_constants(self._sizes(task), self.epsilon, self.delta)
        statistic, (schedule, ends) = CuratedTransitions(task), self._batches(task)
        answers = _paper_targets(task.horizon, constants)
        tree, price = Tree(max(ends, constants.rounds)), Price.separate(1.0, centred=False)
        parts = statistic, task, tree, constants.gram_std, answers, price
        curator = Curator(*parts, batch=schedule.least, **self.requested())
        bonus = constants.bonus if self.bonus_scale is None else self._scale * task.horizon
        asked = Asked(answers.ranges, centred=False)
        planner = LsviPlanner(constants.ridge, 1.0, bonus, asked, stage_ranges=False)
        return BoundAgent(task, statistic, curator, planner, schedule)


@dataclass(frozen=True)
class DpLsviAdaptive(_PrivateLsvi):
    """A new plan when a released determinant has doubled.

    Ngo et al. 2022, docs/papers/linear_jdp.md#ngo.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
        calibration: "tight" or "paper".
        bonus_scale: c in the bonus c H |phi|; None takes 0.1, or the paper's.
        beta: failure probability.
    """

    name: ClassVar[str] = "dp-lsvi-adaptive"

    def _tight(self, task: Task) -> BoundAgent:
        d, H, K = dimension(task), task.horizon, task.users
        statistic, targets, tree = CuratedTransitions(task), one_target(H), Tree(max(K - 1, 1))
        shares = tight_shares(statistic, task, tree, targets, self.epsilon, self.delta)
        ridge = 1.0 + spectral_shift(shares.gram_std, tree, d, H, K, self.beta)
        switches = switches_at_most(d, H, K, 1.0, ridge)
        answers = shares.answers(targets, switches)
        parts = statistic, task, tree, shares.gram_std, answers, shares.price
        curator = Curator(*parts, batch=1, **self.requested())
        asked = Asked(answers.ranges)
        planner = LsviPlanner(ridge, 1.0, self._scale * H, asked, Switching(switches))
        return BoundAgent(task, statistic, curator, planner)

    def _paper(self, task: Task) -> BoundAgent:
        statistic, tree = CuratedTransitions(task), Tree(max(task.users - 1, 1))
        rho, levels = zcdp(self.epsilon, self.delta), round(tree.column_norm() ** 2)
        constants = adaptive_constants(self._sizes(task), rho, levels)
        answers = _paper_targets(task.horizon, constants)
        price = Price.separate(1.0, centred=False)
        parts = statistic, task, tree, constants.gram_std, answers, price
        curator = Curator(*parts, batch=1, **self.requested())
        bonus = constants.bonus if self.bonus_scale is None else self._scale * task.horizon
        asked, switching = Asked(answers.ranges, centred=False), Switching(constants.rounds)
        planner = LsviPlanner(constants.ridge, 1.0, bonus, asked, switching, stage_ranges=False)
        return BoundAgent(task, statistic, curator, planner)


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
    """

    name: ClassVar[str] = "dp-lsvi-ucb++"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    reuse_noise: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reuse_noise:
            choice(self.calibration, "calibration (with reuse_noise)", ("paper",))

    def _tight(self, task: Task) -> BoundAgent:
        d, H, K = dimension(task), task.horizon, task.users
        weight = 1.0 / H
        statistic, targets = CuratedTransitions(task, weight), three_targets(task)
        tree = Tree(max(K - 1, 1))
        shares = tight_shares(statistic, task, tree, targets, self.epsilon, self.delta)
        ridge = weight + spectral_shift(shares.gram_std, tree, d, H, K, self.beta)
        switches = switches_at_most(d, H, K, weight, ridge)
        answers = shares.answers(targets, switches)
        parts = statistic, task, tree, shares.gram_std, answers, shares.price
        curator = Curator(*parts, batch=1, **self.requested())
        bonus = tuned_plus(self._scale, H)
        asked, switching = Asked(answers.ranges), Switching(switches)
        planner = LsviPlusPlanner(ridge, weight, bonus, switching, asked, monotone=False)
        return BoundAgent(task, statistic, curator, planner)

    def _paper(self, task: Task) -> BoundAgent:
        H, K = task.horizon, task.users
        statistic, targets = CuratedTransitions(task, 1.0 / H), three_targets(task)
        rho = zcdp(self.epsilon, self.delta)
        each = rho / (4 * H * K)
        vector, square = (math.sqrt(2 * H**power / each) for power in (2, 4))
        stds = {name: np.full(H, square if name == "square" else vector) for name in targets.ranges}
        answers = Answers(targets.ranges, stds, K, targets.rewards, centred=False)
        kind = ReusedNoise if self.reuse_noise else Curator
        price = Price.separate(1.0 / H, centred=False)
        parts = statistic, task, Independent(K), math.sqrt(1 / (2 * each)), answers, price
        curator = kind(*parts, batch=1, **self.requested())
        constants = plus_constants(self._sizes(task), rho)
        bonus = constants.bonus if self.bonus_scale is None else tuned_plus(self._scale, H)
        asked = Asked(answers.ranges, centred=False)
        ridge = 2 * constants.ridge
        planner = LsviPlusPlanner(ridge, 1.0 / H**2, bonus, Switching(K), asked)
        return BoundAgent(task, statistic, curator, planner)
