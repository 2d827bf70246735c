"""Plots of results."""

from tacit.errors import need

need("a report", "report")
