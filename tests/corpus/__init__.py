"""Broken mechanisms, each with what catches it: the only way to know that a check can fail.

Each mutant claims the guarantee of the right mechanism and gets one thing wrong. ``catalogue``
lists them, ``detectors`` has the checks: each must fire on its mutants and be silent on the shipped
code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Detector:
    """A check.

    Attributes:
        name: what the README calls it.
        fires: whether it objects to a mechanism.
    """

    name: str
    fires: Callable[[Any], bool]


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Attributes:
        name: short.
        mistake: what is wrong, as a sentence.
        detector: what must fire on it.
        broken: the mutant: a class or function that stands in for the right one.
        shipped: the right one.
    """

    name: str
    mistake: str
    detector: Detector
    broken: Any
    shipped: Any
