"""Figures of the papers and comparisons: what is run, how it is scored, which claim must show up.

Imported on first use, so that ``tacit --help`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit_lab.figures.figure import Claim, Curve, Figure, Measurement, Named, Size
    from tacit_lab.figures.reproduction import Reproduction, figures, find, reproduce

_PUBLIC = {
    "figure": ("Claim", "Curve", "Figure", "Measurement", "Named", "Size"),
    "reproduction": ("Reproduction", "figures", "find", "reproduce"),
}

__all__ = [
    "Claim",
    "Curve",
    "Figure",
    "Measurement",
    "Named",
    "Reproduction",
    "Size",
    "figures",
    "find",
    "reproduce",
]


def __getattr__(name: str) -> Any:
    for module, names in _PUBLIC.items():
        if name in names:
            return getattr(importlib.import_module(f"tacit_lab.figures.{module}"), name)
    raise AttributeError(f"module 'tacit_lab.figures' has no attribute {name!r}")
