"""Simulation: seeded runs of an agent against a problem, scored exactly (``tacit.experiment``)."""
