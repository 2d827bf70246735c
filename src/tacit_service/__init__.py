"""The service: a collector (local model) or curator (joint model), its planner and its store."""

from tacit.errors import need

need("the service", "service")
