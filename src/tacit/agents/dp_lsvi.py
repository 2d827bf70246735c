"""Private LSVI: fixed batches (Luyo), adaptive batches (Ngo) and DP-LSVI-UCB++.

``calibration="paper"`` takes the paper's constants, noise and bonus, and prints what they truly
give; ``"corrected"`` raises all noise alike where that falls short, and takes the constants of the
noise that is added. ``"tight"`` finds the least noise for the request: Gram matrices through a
tree, fresh noise for every answer, a hard cap on answers, centred targets, stage ranges.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.agents import lsvi_calibration as constants
from tacit.agents.lsvi import (
    DEFAULT_BONUS_SCALE,
    MENDED,
    LsviAgent,
    dimension,
    switches_at_most,
    tuned_plus,
)
from tacit.agents.published import Calibration, PublishedPrivateAgent
from tacit.learner import BoundAgent
from tacit.planners.lsvi import Asked, LsviPlanner, LsviPlusPlanner, Rule, Switching
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.counters.tree import Tree
from tacit.privacy.curator.curator import Curator
from tacit.privacy.curator.declared_answers import Answers, Price
from tacit.privacy.curator.paper import Independent, ReusedNoise
from tacit.schedules import CappedBatches, Schedule, every_user
from tacit.statistics.linear import CuratedTransitions
from tacit.task.task import Task
from tacit.validate import choice

ROUNDING = 1e-9
"""More noise by this share where published noise is raised: what floating point may lose."""


@dataclass(frozen=True)
class _PrivateLsvi(LsviAgent, PublishedPrivateAgent):
    """What the three agents share: their parameters and the three constants."""

    erratum: ClassVar[str]
    """Of docs/papers/linear_jdp.md, on noise that falls short."""

    bonus_scale: float | None = None
    beta: float = 0.01

    def fitted(self, task: Task) -> BoundAgent:
        """A curator, and a planner that asks it."""
        if not self.published:
            return self._tight(task)
        return self._paper(task, self.noise_factor(task))

    def noise_factor(self, task: Task) -> float:
        """How many times the published noise is added: once, or corrected, as often as it takes.

        The price of Gram matrices and answers together falls with the square of it.
        """
        if not self.corrected:
            return 1.0
        published = self._paper(task, 1.0).privatizer
        assert isinstance(published, Curator)
        share = published.mu / gaussian_mu(*self.requested())
        return share * (1.0 + ROUNDING) if share > 1.0 else 1.0

    def notes(self, task: Task) -> tuple[str, ...]:
        """What the bonus means, and what was corrected."""
        place = f"docs/papers/linear_jdp.md#{self.erratum}"
        return (*super().notes(task), *self.raised(self.noise_factor(task), place))

    @abstractmethod
    def _paper(self, task: Task, factor: float) -> BoundAgent:
        """With that many times the published noise."""

    @abstractmethod
    def _planner(
        self, H: int, ridge: float, answers: Answers, switching: Switching | None
    ) -> LsviPlanner | LsviPlusPlanner:
        """The planner of tight calibration."""

    def _asked(self, task: Task) -> tuple[CuratedTransitions, constants.Targets]:
        """Of which transitions what is asked."""
        return CuratedTransitions(task), constants.one_target(task.horizon)

    def _schedule(self, task: Task) -> tuple[Schedule, int]:
        """Users between releases, and the number of releases before the last user."""
        return every_user, max(task.users - 1, 1)

    def _switching(self, rounds: int) -> Switching | None:
        """When to plan anew, where not at every release."""
        return None

    @property
    def _scale(self) -> float:
        return DEFAULT_BONUS_SCALE if self.bonus_scale is None else self.bonus_scale

    def _sizes(self, task: Task) -> constants.Sizes:
        return constants.Sizes(dimension(task), task.horizon, task.users, self.beta)

    def _tight(self, task: Task) -> BoundAgent:
        d, H, K = dimension(task), task.horizon, task.users
        (statistic, targets), (schedule, ends) = self._asked(task), self._schedule(task)
        tree, weight = Tree(ends), statistic.largest_weight
        shares = constants.tight_shares(statistic, task, tree, targets, self.epsilon, self.delta)
        ridge = weight + constants.spectral_shift(shares.gram_std, tree, d, H, K, self.beta)
        switching = self._switching(switches_at_most(d, H, K, weight, ridge))
        answers = shares.answers(targets, ends if switching is None else switching.most)
        parts = statistic, task, tree, shares.gram_std, answers, shares.price
        curator = Curator(*parts, batch=schedule(0), requested=self.requested())
        planner = self._planner(H, ridge, answers, switching)
        return BoundAgent(task, statistic, curator, planner, schedule)


class _OneTarget(_PrivateLsvi):
    """Luyo's and Ngo's agents: one answer per stage and plan, which they differ in the times of."""

    @abstractmethod
    def _constants(self, task: Task, tree: Tree, factor: float) -> constants.PaperConstants:
        """The paper's, with that many times its noise."""

    def _planner(
        self, H: int, ridge: float, answers: Answers, switching: Switching | None
    ) -> LsviPlanner:
        return LsviPlanner(ridge, 1.0, self._scale * H, Asked(answers.ranges), switching)

    def _paper(self, task: Task, factor: float) -> BoundAgent:
        """Answers of r + V in [0, H + 1] at every stage, not centred."""
        statistic, H = CuratedTransitions(task), task.horizon
        schedule, ends = self._schedule(task)
        own = self._constants(task, Tree(ends), factor)
        switching = self._switching(own.rounds)
        tree = Tree(max(ends, own.rounds) if switching is None else ends)
        stds, ranges = np.full(H, own.target_std), {"value": np.full(H, H + 1.0)}
        answers = Answers(ranges, {"value": stds}, own.rounds, {"value": True}, centred=False)
        price = Price.separate(1.0, centred=False)
        parts = statistic, task, tree, own.gram_std, answers, price
        curator = Curator(*parts, batch=schedule(0), requested=self.requested())
        bonus = own.bonus if self.bonus_scale is None else self._scale * H
        asked = Asked(ranges, centred=False)
        planner = LsviPlanner(own.ridge, 1.0, bonus, asked, switching, stage_ranges=False)
        return BoundAgent(task, statistic, curator, planner, schedule)


@dataclass(frozen=True)
class DpLsviBatch(_OneTarget):
    """A new plan after every batch of fixed size.

    Luyo et al. 2021, docs/papers/linear_jdp.md#luyo. Constants are those of the public program;
    values are cut at 0, so that they stay in the range that noise is for.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
        calibration: "corrected", "paper" or "tight".
        bonus_scale: c in the bonus c H |phi|; None takes the paper's, or 0.1 (tight).
        beta: failure probability.
    """

    name: ClassVar[str] = "dp-lsvi-batch"
    erratum: ClassVar[str] = "e8"
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "the published noise, raised where the 1 / H in that of answers falls short "
        "(long horizons), with the shift and the bonus of the noise that is added",
        "paper": "noise, shift and bonus as published",
        "tight": "the least noise, a shift for it, bonus 0.1 H |phi|",
    }

    def _schedule(self, task: Task) -> tuple[Schedule, int]:
        size = math.ceil(task.users / constants.batch_count(self._sizes(task), self.epsilon))
        return CappedBatches(size, size, 0.0), max(1, math.ceil(task.users / size) - 1)

    def _constants(self, task: Task, tree: Tree, factor: float) -> constants.PaperConstants:
        return constants.batch_constants(self._sizes(task), *self.requested(), factor)


@dataclass(frozen=True)
class DpLsviAdaptive(_OneTarget):
    """A new plan when a released determinant has doubled.

    Ngo et al. 2022, docs/papers/linear_jdp.md#ngo. Constants are those of the public program, but
    the number of switches is the paper's; values are cut at 0, so that they stay in the range that
    noise is for.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
        calibration: "corrected", "paper" or "tight".
        bonus_scale: c in the bonus c H |phi|; None takes the paper's, or 0.1 (tight).
        beta: failure probability.
        switching: "determinant" as there; "rayleigh" plans anew when a released matrix has grown
            by 1.4 in some direction (docs/papers/linear_jdp.md#rayleigh).
    """

    name: ClassVar[str] = "dp-lsvi-adaptive"
    erratum: ClassVar[str] = "e8"
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "the published noise, raised as that of answers forgets the number of stages, "
        "with the shift and the bonus of the noise that is added",
        "paper": "noise, shift, switches and bonus as published",
        "tight": "the least noise, a shift for it, bonus 0.1 H |phi|",
    }
    switching: Rule = "determinant"

    def _constants(self, task: Task, tree: Tree, factor: float) -> constants.PaperConstants:
        rho, levels = constants.zcdp(self.epsilon, self.delta), round(tree.column_norm() ** 2)
        return constants.adaptive_constants(self._sizes(task), rho, levels, factor)

    def _switching(self, rounds: int) -> Switching:
        return Switching.by(self.switching, rounds)


@dataclass(frozen=True)
class DpLsviUCBPlusPlus(_PrivateLsvi):
    """Variance-weighted private regression with rare switching.

    As published is docs/papers/linear_jdp.md#published-constants, with constants that the paper
    leaves open 1, and values cut at 0, so that they stay in the range that noise is for. Tight
    calibration is #tight on that page, which plans from the newest answers: the paper's minimum
    over all plans keeps the unluckiest noise for ever. That is post-processing of answers, so
    privacy is the same.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
        calibration: "corrected", "paper" or "tight".
        bonus_scale: c in the bonus c H |phi|; None takes the paper's, or 0.1 (tight).
        beta: failure probability.
        reuse_noise: paper calibration only: noise is drawn once (line 1 of Algorithm 1) and that
            of Gram matrices is added again after every user (line 26), as printed. It has no
            finite epsilon (docs/papers/linear_jdp.md#e1 and #e2).
        switching: "determinant" as there, or "rayleigh" (docs/papers/linear_jdp.md#rayleigh).
    """

    name: ClassVar[str] = "dp-lsvi-ucb++"
    erratum: ClassVar[str] = "e3"
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "as published, with fresh noise for every release, raised where it falls "
        "short, and the shift and the bonus of the noise that is added",
        "paper": "as published, with fresh noise for every release unless it is to be drawn once, "
        "as printed",
        "tight": "the least noise, through a tree, for a capped number of plans; weights from "
        "variances alone, bonus 0.1 H |phi|",
    }
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    reuse_noise: bool = False
    switching: Rule = "determinant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reuse_noise:
            choice(self.calibration, "calibration (with reuse_noise)", ("paper",))

    def notes(self, task: Task) -> tuple[str, ...]:
        """With what is not as printed."""
        if not self.published:
            return super().notes(task)
        fresh = "fresh noise for every release (docs/papers/linear_jdp.md#e1, #e2); "
        return (*super().notes(task), f"{'' if self.reuse_noise else fresh}{MENDED}")

    def _asked(self, task: Task) -> tuple[CuratedTransitions, constants.Targets]:
        statistic = CuratedTransitions(task, 1.0 / task.horizon)
        return statistic, constants.three_targets(task, not self.published)

    def _switching(self, rounds: int) -> Switching:
        return Switching.by(self.switching, rounds)

    def _planner(
        self, H: int, ridge: float, answers: Answers, switching: Switching | None
    ) -> LsviPlusPlanner:
        assert switching is not None
        bonus, asked = tuned_plus(self._scale, H), Asked(answers.ranges)
        return LsviPlusPlanner(ridge, 1.0 / H, bonus, switching, asked, monotone=False)

    def _paper(self, task: Task, factor: float) -> BoundAgent:
        H, K = task.horizon, task.users
        statistic, targets = self._asked(task)
        rho = constants.zcdp(self.epsilon, self.delta) / factor**2
        each = rho / (4 * H * K)
        vector, square = (math.sqrt(2 * H**power / each) for power in (2, 4))
        stds = {name: np.full(H, square if name == "square" else vector) for name in targets.ranges}
        answers = Answers(targets.ranges, stds, K, targets.rewards, centred=False)
        kind = ReusedNoise if self.reuse_noise else Curator
        price = Price.separate(1.0 / H, centred=False)
        parts = statistic, task, Independent(K), math.sqrt(1 / (2 * each)), answers, price
        curator = kind(*parts, batch=1, requested=self.requested())
        own = constants.plus_constants(self._sizes(task), rho)
        bonus = own.bonus if self.bonus_scale is None else tuned_plus(self._scale, H)
        planner = LsviPlusPlanner(
            2 * own.ridge,
            1.0 / H**2,
            bonus,
            self._switching(K),
            Asked(answers.ranges, centred=False),
            stage_ranges=False,
        )
        return BoundAgent(task, statistic, curator, planner)
