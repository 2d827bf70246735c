"""Trajectory -> clipped contribution with a declared sensitivity."""

from tacit.statistics.base import Block, Layout, Relation, Statistic
from tacit.statistics.counts import Nothing, VisitCounts
from tacit.statistics.lq import ControlMoments, InstrumentedResponses
from tacit.statistics.one_step import EachStep, OneStep

__all__ = [
    "Block",
    "EachStep",
    "ControlMoments",
    "InstrumentedResponses",
    "Layout",
    "Nothing",
    "OneStep",
    "Relation",
    "Statistic",
    "VisitCounts",
]
