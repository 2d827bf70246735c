"""Batteries that every privatizer and every planner must pass; see CONTRIBUTING."""
