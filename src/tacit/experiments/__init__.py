"""Figures of the papers: what is run, how it is scored, and which claim must show up."""

from tacit.experiments.catalogue import figures, find
from tacit.experiments.figure import Claim, Curve, Figure, Measurement, Named, Size
from tacit.experiments.reproduction import Reproduction, reproduce

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
