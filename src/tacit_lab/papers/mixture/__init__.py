"""Figures of the two papers on linear mixture MDPs: local and joint differential privacy."""

from tacit_lab.papers.mixture.counters import COUNTERS
from tacit_lab.papers.mixture.joint import MODELS, NO_LEARNING, REMAP_WALK, RIVER_SWIM
from tacit_lab.papers.mixture.ladder import LADDER, SCHEDULE, STATES
from tacit_lab.papers.mixture.local import BANDIT, FIGURE_2, HARD_MIXTURE, LARGER

FIGURES = (
    *(FIGURE_2, LARGER, HARD_MIXTURE, BANDIT),
    *(COUNTERS, NO_LEARNING, REMAP_WALK, RIVER_SWIM, LADDER, STATES, SCHEDULE, MODELS),
)
