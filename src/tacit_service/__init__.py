"""The service: a collector (local model) or curator (joint model), its planner and its store."""
