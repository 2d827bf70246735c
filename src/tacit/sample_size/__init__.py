"""How many users it takes: quick simulations before anybody is asked to take part."""

from tacit.sample_size.result import Plan
from tacit.sample_size.search import plan

__all__ = ["Plan", "plan"]
