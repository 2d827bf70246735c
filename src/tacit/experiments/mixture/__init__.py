"""Figures of the two papers on linear mixture MDPs: local and joint differential privacy."""

from tacit.experiments.mixture.joint import REMAP_WALK, RIVER_SWIM
from tacit.experiments.mixture.local import FIGURE_2

FIGURES = (FIGURE_2, REMAP_WALK, RIVER_SWIM)

__all__ = ["FIGURES"]
