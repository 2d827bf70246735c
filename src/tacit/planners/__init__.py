"""Release -> policy. Pure, public, and blind to raw data."""

from tacit.planners.base import Ask, Planner, Streams
from tacit.planners.obi import ObiPlanner, UcbViPlanner
from tacit.planners.posterior import PosteriorPlanner
from tacit.planners.references import OptimalPlanner, UniformPlanner
from tacit.planners.tacit_joint import JointCountsPlanner, VFreePlanner
from tacit.planners.tacit_local import DirectionalPlanner, NoisyPosteriorPlanner
from tacit.planners.vtr import MirrorPlanner, TransitionPlanner, ValueTargetedPlanner

__all__ = [
    "Ask",
    "DirectionalPlanner",
    "JointCountsPlanner",
    "MirrorPlanner",
    "NoisyPosteriorPlanner",
    "ObiPlanner",
    "OptimalPlanner",
    "Planner",
    "PosteriorPlanner",
    "Streams",
    "TransitionPlanner",
    "UcbViPlanner",
    "UniformPlanner",
    "VFreePlanner",
    "ValueTargetedPlanner",
]
