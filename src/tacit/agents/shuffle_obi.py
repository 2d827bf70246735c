"""shuffle-obi: optimistic backward induction in the shuffle model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from tacit.agents.base import Ranges, TableAgent
from tacit.agents.paper_constants import shuffle_claim
from tacit.agents.published import Calibration, PublishedPrivateAgent
from tacit.learner import BoundAgent
from tacit.planners.obi import ObiPlanner, Width
from tacit.planners.tacit_local import DirectionalPlanner
from tacit.privacy.shuffle.reshuffled import ReshuffledBits
from tacit.privacy.shuffle.shuffled import Shuffled, useful_crowd
from tacit.schedules import CappedBatches
from tacit.statistics.counts import VisitCounts
from tacit.statistics.one_step import EachStep, OneStep
from tacit.task.task import Task

FEWEST_BATCHES = 50
"""A batch is never made larger than a fiftieth of all users by default. Not measured: others."""


@dataclass(frozen=True)
class ShuffleOBI(TableAgent, PublishedPrivateAgent):
    """Devices randomize their reports, a shuffler hides who sent which, the learner is optimistic.

    "tight" (docs/papers/tabular_ldp.md#b8): a user reports one step; a batch is opened when it is
    full; the local noise is the least whose shuffled batches keep the central guarantee; one policy
    serves a batch. "paper" (docs/papers/tabular_ldp.md#shuffling): the paper's M_sh, whose shuffler
    hides nobody; the true guarantee is local, and stated. "corrected": the same, with epsilon
    shared by all bits, so that what is asked for holds although nobody is hidden.

    Attributes:
        epsilon: central privacy asked for: against whoever sees opened batches. In paper mode, as
            there, that of a single bit.
        delta: of the central guarantee, > 0.
        calibration: "corrected", "paper" or "tight".
        steps: "own": every user draws the step to report with a coin of its own, and all users of a
            batch hide each other; "assigned": steps are taken in turn, in public, and only users
            of the same step do.
        batch: users of a batch (with assigned steps rounded down to a multiple of the horizon); 0
            chooses 15 sqrt(ln(1 / delta)) / epsilon for every step (``useful_crowd``), plus the
            colluders, but at most a fiftieth of all users.
        colluders: users of a batch who may work together with the observer.
        local_epsilon: what one report may cost at most on its own, whoever sees it.
        bonus_scale: c of the widths z = c sqrt(2 L); 1 is where all confidence statements hold.
        beta: their failure probability.
        alpha: M_sh only: shift of the denominators, > 1.
        reward_bits: M_sh only: m, a power of two.
        width: M_sh only: "bernstein", the widths of the appendix, "paper" or "corrected", those of
            randomized response; by default the first where corrected, the second where not.
    """

    name: ClassVar[str] = "shuffle-obi"
    models: ClassVar[tuple[str, ...]] = ("shuffle", "local")
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "M_sh of the appendix and its widths, epsilon shared by all bits: the "
        "shuffler hides nobody, so what is asked for holds locally",
        "paper": "M_sh with epsilon for every bit; the true, local guarantee is stated",
        "tight": "one step per person, batches of a fixed size that are opened once",
    }
    ranges: ClassVar[Ranges] = {
        "batch": {"low": 0},
        "colluders": {"low": 0},
        "local_epsilon": {"low": 0.0, "low_open": True},
        "alpha": {"low": 1.0, "low_open": True},
        "reward_bits": {"low": 1},
    }
    delta: float = 1e-6
    steps: Literal["own", "assigned"] = "own"
    batch: int = 0
    colluders: int = 0
    local_epsilon: float = 8.0
    bonus_scale: float = 1.0
    beta: float = 0.1
    alpha: float = 2.0
    reward_bits: int = 1
    width: Literal["paper", "corrected", "bernstein"] | None = None

    @property
    def chosen_width(self) -> str:
        """The width asked for, else the one that goes with the calibration."""
        if not self.published:
            return "directional"
        return self.width or ("bernstein" if self.corrected else "paper")

    def parameters(self) -> dict[str, Any]:
        """Parameters by name, with the width that is used."""
        return {**super().parameters(), "width": self.chosen_width}

    def crowd(self, task: Task) -> int:
        """Users of a batch who hide each other."""
        crowds = task.horizon if self.steps == "assigned" else 1
        if self.batch:
            return max(int(self.batch) // crowds, 1)
        enough = task.horizon * useful_crowd(self.epsilon, self.delta) // crowds
        few = task.users // (FEWEST_BATCHES * crowds)
        return max(min(enough + int(self.colluders), few), 1)

    def fitted(self, task: Task) -> BoundAgent:
        """Randomized reports behind a shuffler."""
        return self._bits(task) if self.published else self._tight(task)

    def _tight(self, task: Task) -> BoundAgent:
        statistic = OneStep(task) if self.steps == "assigned" else EachStep(task)
        shuffler = Shuffled.calibrated(
            statistic,
            task,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            crowd=self.crowd(task),
            colluders=int(self.colluders),
            most=float(self.local_epsilon),
        )
        planner = DirectionalPlanner(bonus_scale=self.bonus_scale, beta=self.beta)
        schedule = CappedBatches(shuffler.batch, shuffler.batch, 0.0)
        return BoundAgent(task, statistic, shuffler, planner, schedule)

    def _bits(self, task: Task) -> BoundAgent:
        """App. I states deviations of sums; those of the sum over s' are S of them."""
        self.require_homogeneous(task)
        statistic = VisitCounts(task)
        bits = ReshuffledBits(
            statistic,
            task,
            reward_bits=int(self.reward_bits),
            requested=self.requested(),
            divided=self.corrected,
        )
        planner = ObiPlanner(alpha=self.alpha, beta=self.beta, width=cast(Width, self.chosen_width))
        return BoundAgent(task, statistic, bits, planner)

    def notes(self, task: Task) -> tuple[str, ...]:
        """What a batch is, or what the paper claims."""
        if self.published:
            page = "docs/papers/tabular_ldp.md"
            mended = (
                f"as in the paper, corrected where it could not run ({page}#e12): the sum of "
                f"transition bits in (111) leaves out step {task.horizon}, which has none"
            )
            if self.corrected:
                return (
                    mended,
                    "corrected: epsilon is shared by all bits in which two people can differ, "
                    "because sending all reports anew before every episode hides nobody "
                    f"({page}#e13); no bonus for a transition after the last step ({page}#e8)",
                )
            claim = shuffle_claim(task.horizon, task.users, self.epsilon, self.delta)
            return (
                mended,
                f"equation (113) would claim a central epsilon of {claim:.3g} after "
                f"{task.users:,} users; sending all reports anew before every episode hides "
                "nobody, and what holds is the local guarantee",
            )
        batch = self.crowd(task) * (task.horizon if self.steps == "assigned" else 1)
        return (
            f"batches of {batch:,} users, opened when full; the last {task.users % batch:,} of "
            f"{task.users:,} users are in a batch that is never opened",
        )
