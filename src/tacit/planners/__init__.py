"""Release -> policy. Pure, public, and blind to raw data."""

from tacit.planners.base import Ask, Planner, Streams
from tacit.planners.directional import DirectionalPlanner
from tacit.planners.fixed import OptimalPlanner, UniformPlanner
from tacit.planners.joint_counts import JointCountsPlanner
from tacit.planners.noisy_posterior import NoisyPosteriorPlanner
from tacit.planners.obi import ObiPlanner
from tacit.planners.optimistic import UcbViPlanner
from tacit.planners.posterior import PosteriorPlanner
from tacit.planners.targeted import MirrorPlanner, ValueTargetedPlanner
from tacit.planners.transitions import TransitionPlanner
from tacit.planners.vfree import VFreePlanner

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
