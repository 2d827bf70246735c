"""Agents that carry the name of a paper's algorithm, and the three ways to calibrate them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from tacit.agents.base import CheckedAgent, PrivateAgent
from tacit.task.task import Task

Calibration: TypeAlias = Literal["corrected", "paper", "tight"]

CALIBRATIONS: Mapping[Calibration, str] = {
    "corrected": "the paper's algorithm, with the least change where an erratum makes it wrong: "
    "noise is raised until it gives what is asked for, widths are those of the noise that is "
    "added, and what would leak is mended; notes name every change",
    "paper": "the paper's algorithm to the letter; what it truly guarantees is stated",
    "tight": "ours: exact accounting, the least noise for what is asked for, and our widths and "
    "schedules",
}
"""What a calibration means, whatever the agent."""


class PublishedAgent(CheckedAgent):
    """One that carries the name of a paper's algorithm, and may be calibrated in three ways."""

    calibrations: ClassVar[Mapping[Calibration, str]]
    """What each of ``CALIBRATIONS`` is for this agent, in a few words."""

    calibration: Calibration

    @property
    def published(self) -> bool:
        """Whether statistic, noise, widths and schedule are the paper's, corrected or not."""
        return self.calibration != "tight"

    @property
    def corrected(self) -> bool:
        """Whether errata of the paper are mended."""
        return self.calibration == "corrected"

    def raised(self, factor: float, place: str) -> tuple[str, ...]:
        """The note on noise that is this many times the published, if it is more than that.

        ``place`` is that of the erratum in docs/papers.
        """
        if not self.corrected or factor <= 1.0:
            return ()
        return (
            f"corrected: {factor:.6g} times the published noise, which does not give what is "
            f"asked for ({place})",
        )


@dataclass(frozen=True)
class PublishedPrivateAgent(PublishedAgent, PrivateAgent):
    """The same with noise.

    Attributes:
        calibration: "corrected", "paper" or "tight".
    """

    calibration: Calibration = "corrected"


class ScaledAgent(PublishedAgent):
    """One whose bonus has a factor, which its subclasses put in order."""

    default_scale: ClassVar[float] = 0.1
    """Factor of the bonus in tight calibration, unless chosen."""

    bonus_scale: float | None

    @property
    def scale(self) -> float:
        """Factor of the bonus; 1 is the theorem, and the paper."""
        if self.bonus_scale is not None:
            return self.bonus_scale
        return 1.0 if self.published else self.default_scale


class CountedAgent(ScaledAgent, PublishedPrivateAgent):
    """One whose running sums are released after every so many users.

    What it has besides are parameters of its subclasses, which put them in an order.
    """

    batch_parameter: ClassVar[str | None] = "every"
    every: int

    def releases(self, task: Task) -> int:
        """Releases with data: none is made after the last batch (docs/papers/mixture_jdp.md#e5)."""
        return max(1, math.ceil(task.users / self.every) - 1)
