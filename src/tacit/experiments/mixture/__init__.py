"""Figures of the two papers on linear mixture MDPs: local and joint differential privacy."""

from tacit.experiments.mixture.bandit import BANDIT
from tacit.experiments.mixture.counters import COUNTERS
from tacit.experiments.mixture.flat import NO_LEARNING
from tacit.experiments.mixture.hard import HARD_MIXTURE
from tacit.experiments.mixture.joint import REMAP_WALK, RIVER_SWIM
from tacit.experiments.mixture.ladder import LADDER, STATES
from tacit.experiments.mixture.larger import LARGER
from tacit.experiments.mixture.local import FIGURE_2
from tacit.experiments.mixture.models import MODELS
from tacit.experiments.mixture.schedule import SCHEDULE

FIGURES = (
    FIGURE_2,
    LARGER,
    HARD_MIXTURE,
    BANDIT,
    COUNTERS,
    NO_LEARNING,
    REMAP_WALK,
    RIVER_SWIM,
    LADDER,
    STATES,
    SCHEDULE,
    MODELS,
)

__all__ = ["FIGURES"]
