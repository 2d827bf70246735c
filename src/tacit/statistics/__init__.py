"""Trajectory -> clipped contribution with a declared sensitivity."""

from tacit.statistics.base import Block, Layout, Relation, Statistic
from tacit.statistics.counts import VisitCounts
from tacit.statistics.nothing import Nothing

__all__ = ["Block", "Layout", "Nothing", "Relation", "Statistic", "VisitCounts"]
