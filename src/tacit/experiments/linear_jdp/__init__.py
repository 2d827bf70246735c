"""Figures of "Exploring Differential Privacy in RL: Towards Optimal Regret in Linear MDPs"."""

from tacit.experiments.linear_jdp.figure_1a import FIGURE_1A
from tacit.experiments.linear_jdp.figure_1b import FIGURE_1B

FIGURES = (FIGURE_1A, FIGURE_1B)

__all__ = ["FIGURES"]
