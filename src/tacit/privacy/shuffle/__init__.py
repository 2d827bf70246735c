"""The shuffle model: what hiding among the reports of a batch adds to local privacy."""

from tacit.privacy.shuffle.blanket import Blanket
from tacit.privacy.shuffle.calibration import Crowd, calibrate
from tacit.privacy.shuffle.clones import bit_pair, bits_epsilon, clone_delta, clone_epsilon

__all__ = [
    "Blanket",
    "Crowd",
    "bit_pair",
    "bits_epsilon",
    "calibrate",
    "clone_delta",
    "clone_epsilon",
]
