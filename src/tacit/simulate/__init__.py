"""Simulation: many seeded runs of an agent against a problem, scored exactly."""

from tacit.simulate.api import simulate
from tacit.simulate.result import Result

__all__ = ["Result", "simulate"]
