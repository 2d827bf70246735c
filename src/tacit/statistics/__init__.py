"""Trajectory -> clipped contribution with a declared sensitivity."""

from tacit.statistics.base import Block, Layout, Relation, Statistic

__all__ = ["Block", "Layout", "Relation", "Statistic"]
