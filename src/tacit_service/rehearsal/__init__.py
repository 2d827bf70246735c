"""Rehearsals: fleets of simulated people against a running service."""
