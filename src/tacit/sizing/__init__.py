"""How many users it takes: quick simulations before anybody is asked to take part."""

from tacit.sizing.result import Plan
from tacit.sizing.search import plan

__all__ = ["Plan", "plan"]
