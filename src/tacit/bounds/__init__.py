"""Bounds on regret as numbers: one place that knows what theorems say of which agent."""

from tacit.bounds.regret import bound, bound_of, regret_bound
from tacit.bounds.result import RegretBound
from tacit.bounds.theorems import THEOREMS, Theorem, theorem

__all__ = ["THEOREMS", "RegretBound", "Theorem", "bound", "bound_of", "regret_bound", "theorem"]
