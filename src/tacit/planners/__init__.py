"""Release -> policy. Pure, public, and blind to raw data."""

from tacit.planners.base import Ask, Planner, Streams
from tacit.planners.directional import DirectionalPlanner
from tacit.planners.fixed import OptimalPlanner, UniformPlanner
from tacit.planners.noisy_posterior import NoisyPosteriorPlanner
from tacit.planners.obi import ObiPlanner
from tacit.planners.optimistic import UcbViPlanner
from tacit.planners.posterior import PosteriorPlanner

__all__ = [
    "Ask",
    "DirectionalPlanner",
    "NoisyPosteriorPlanner",
    "ObiPlanner",
    "OptimalPlanner",
    "Planner",
    "PosteriorPlanner",
    "Streams",
    "UcbViPlanner",
    "UniformPlanner",
]
