"""UCRL-VTR and its locally private form, LDP-UCRL-VTR (docs/papers/mixture_ldp.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents.base import Agent
from tacit.driver import BoundAgent, Every
from tacit.errors import InvalidInput
from tacit.features import value_caps
from tacit.planners import Planner, TransitionPlanner, ValueTargetedPlanner
from tacit.planners.widths import PrintedLocal, TightWidths, Units, WidthRule
from tacit.privacy import Exact, published
from tacit.privacy.local import LocalShaped
from tacit.statistics import Statistic
from tacit.statistics.targets import Scaling, Shape, ValueTargets
from tacit.statistics.transitions import PolicyTransitions
from tacit.task import Task
from tacit.validate import choice, flag, integer, number


def check_widths(bonus_scale: float, beta: float | None, ridge: float, every: int) -> None:
    """The parameters that all value-targeted agents share."""
    number(bonus_scale, "bonus_scale", low=0.0, high=1e9)
    if beta is not None:
        number(beta, "beta", low=1e-100, high=1.0, high_open=True)
    number(ridge, "ridge", low=1e-9, high=1e9)
    integer(every, "every", low=1)


def check_privacy(epsilon: float, delta: float, calibration: str) -> None:
    """The parameters that all agents with Gaussian noise share."""
    number(epsilon, "epsilon", low=0.0, low_open=True)
    number(delta, "delta", low=0.0, high=1.0, low_open=True, high_open=True)
    choice(calibration, "calibration", ("tight", "paper"))


def units_of(statistic: ValueTargets) -> Units:
    """How the planner undoes the scaling of the statistic."""
    s = statistic.scales
    return Units(1 / s.gram, 1 / s.target, 1 / s.reward_gram, 1 / s.reward_target, s.off)


def targeted_planner(statistic: ValueTargets, rule: WidthRule) -> ValueTargetedPlanner:
    """The optimistic planner that reads this statistic."""
    return ValueTargetedPlanner(
        transitions=statistic.transitions,
        rewards=statistic.rewards,
        units=units_of(statistic),
        rule=rule,
        centre=statistic.shape.centre,
    )


@dataclass(frozen=True)
class UcrlVTR(Agent):
    """Value-targeted regression with known rewards, not private.

    See docs/papers/mixture_ldp.md#ucrl-vtr.

    Attributes:
        bonus_scale: c, multiplies the whole radius; 1 is the theorem.
        beta: failure probability; None for 1 / K.
        ridge: lambda.
        centre: regress V minus its midrange.
        statistic: "gram": a full Gram matrix per stage; "block": only its non-zero blocks.
        every: users between two plans.
    """

    name: ClassVar[str] = "ucrl-vtr"
    needs: ClassVar[frozenset[str]] = frozenset({"reward"})
    uses: ClassVar[frozenset[str] | None] = frozenset()
    bonus_scale: float = 0.1
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    statistic: Literal["gram", "block"] = "gram"
    every: int = 1

    def __post_init__(self) -> None:
        check_widths(self.bonus_scale, self.beta, self.ridge, self.every)
        choice(self.statistic, "statistic", ("gram", "block"))
        flag(self.centre, "centre")

    def bind(self, task: Task) -> BoundAgent:
        """Exact sums of a Gram matrix per stage."""
        self.require_family(task, "tabular")
        shape = Shape(self.statistic == "gram", False, self.centre, True, "equal")
        statistic = ValueTargets(task, shape)
        rule = TightWidths(self.bonus_scale, self.beta, self.ridge, task.users)
        planner = targeted_planner(statistic, rule)
        privatizer = Exact(statistic, task)
        return BoundAgent(task, statistic, privatizer, planner, Every(self.every))


@dataclass(frozen=True)
class LdpUcrlVTR(Agent):
    """Users send their Gram matrices and targets with Gaussian noise.

    See docs/papers/mixture_ldp.md#ldp-ucrl-vtr, for the least noise
    docs/papers/mixture_ldp.md#tight-noise.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        calibration: "tight" adds the least noise, in proportion to the public size of V; "paper" is
            as published, noise, shift and radius.
        statistic: "gram": a full Gram matrix per stage; "block": only the blocks that can be
            non-zero; "index": which transition was taken (finite problems).
        bonus_scale: c, multiplies the whole width; 1 is the theorem.
        beta: failure probability; None for 1 / K (paper: 0.01).
        ridge: lambda.
        centre: regress V minus its midrange (tight only).
        every: users between two plans.
    """

    name: ClassVar[str] = "ldp-ucrl-vtr"
    needs: ClassVar[frozenset[str]] = frozenset({"reward"})
    uses: ClassVar[frozenset[str] | None] = frozenset()
    epsilon: float
    delta: float = 1e-5
    calibration: Literal["tight", "paper"] = "tight"
    statistic: Literal["gram", "block", "index"] = "gram"
    bonus_scale: float = 0.1
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    every: int = 1

    def __post_init__(self) -> None:
        check_privacy(self.epsilon, self.delta, self.calibration)
        check_widths(self.bonus_scale, self.beta, self.ridge, self.every)
        choice(self.statistic, "statistic", ("gram", "block", "index"))
        flag(self.centre, "centre")
        if self.calibration == "paper" and self.statistic != "gram":
            raise InvalidInput('the paper sends full Gram matrices: statistic must be "gram"')

    def bind(self, task: Task) -> BoundAgent:
        """Noisy reports, planning after every ``every`` users."""
        self.require_family(task, "tabular")
        if task.horizon == 1:
            raise InvalidInput(
                "with horizon 1 there are no transitions to learn and nothing to report; the "
                "linear bandit has an agent of its own, ldp-bandit"
            )
        if self.statistic == "index":
            return self._assemble(
                task, PolicyTransitions(task), TransitionPlanner(bonus_scale=self.bonus_scale)
            )
        paper = self.calibration == "paper"
        centre = self.centre and not paper
        scaling: Scaling = "raw" if paper else "equal"
        statistic = ValueTargets(
            task, Shape(self.statistic == "gram", False, centre, not paper, scaling)
        )
        rule: WidthRule = TightWidths(self.bonus_scale, self.beta, self.ridge, task.users)
        if paper:
            rule = PrintedLocal(self.bonus_scale, 0.01 if self.beta is None else self.beta)
        return self._assemble(task, statistic, targeted_planner(statistic, rule))

    def _assemble(self, task: Task, statistic: Statistic, planner: Planner) -> BoundAgent:
        std = self._published_std(task) if self.calibration == "paper" else None
        privatizer = LocalShaped(
            statistic,
            task,
            std,
            requested_epsilon=float(self.epsilon),
            requested_delta=float(self.delta),
        )
        return BoundAgent(task, statistic, privatizer, planner, Every(self.every))

    def _published_std(self, task: Task) -> float:
        """H^3 for values up to H; H if rewards are divided by H, that is values up to 1."""
        small = bool(value_caps(task)[0] <= 1.0 + 1e-9)
        noise = published.mixture_local(
            task.horizon, self.epsilon, self.delta, values=[1.0], rewards_over_horizon=small
        )
        return noise.scales["std"]
