"""Simulation: many seeded runs of an agent against a problem, scored exactly."""

from tacit.simulation.api import simulate
from tacit.simulation.result import Result

__all__ = ["Result", "simulate"]
