"""Release -> policy. Pure, public, and blind to raw data."""

from tacit.planners.base import Ask, Planner, Streams

__all__ = ["Ask", "Planner", "Streams"]
