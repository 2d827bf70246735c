"""Agents that carry the name of a paper's algorithm, and the three ways to calibrate them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from tacit.agents.base import CheckedAgent, PrivateAgent

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
