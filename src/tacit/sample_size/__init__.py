"""How many users it takes: quick simulations before anybody is asked to take part."""

import sys
from types import ModuleType

from tacit.sample_size.random_problems import random_experiments
from tacit.sample_size.result import SampleSize
from tacit.sample_size.search import Limits, sample_size

__all__ = ["Limits", "SampleSize", "random_experiments", "sample_size"]


class _Callable(ModuleType):
    """An import sets the package's name in the one above: ``tacit.sample_size`` stays a call."""

    __call__ = staticmethod(sample_size)


sys.modules[__name__].__class__ = _Callable
