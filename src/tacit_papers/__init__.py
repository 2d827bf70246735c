"""Figures of the papers and comparisons: what is run, how it is scored, which claim must show up.

A package of its own beside the library, which never imports it: the ``tacit`` command finds
``reproduce``, ``bench`` and ``list figures`` here by entry points.
"""

from tacit_papers.figure import Claim, Curve, Figure, Measurement, Named, Size
from tacit_papers.reproduction import Reproduction, figures, find, reproduce

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
