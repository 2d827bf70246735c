"""The shuffle model: what hiding among the reports of a batch adds to local privacy."""

from tacit.privacy.shuffle.blanket import Blanket
from tacit.privacy.shuffle.calibration import Crowd, calibrate
from tacit.privacy.shuffle.clones import bit_pair, bits_epsilon, clone_delta, clone_epsilon
from tacit.privacy.shuffle.reshuffled import ReshuffledBits
from tacit.privacy.shuffle.shuffled import (
    OpenedBatch,
    Pile,
    Shuffled,
    hidden_among,
    open_batch,
    useful_crowd,
)

__all__ = [
    "Blanket",
    "Crowd",
    "OpenedBatch",
    "Pile",
    "ReshuffledBits",
    "Shuffled",
    "bit_pair",
    "bits_epsilon",
    "calibrate",
    "clone_delta",
    "clone_epsilon",
    "hidden_among",
    "open_batch",
    "useful_crowd",
]
