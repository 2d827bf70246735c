"""How many users it takes: quick simulations before anybody is asked to take part."""

from tacit.sample_size.random_problems import random_experiments
from tacit.sample_size.result import SampleSize
from tacit.sample_size.search import Limits, sample_size

__all__ = ["Limits", "SampleSize", "random_experiments", "sample_size"]
