"""The shuffle model: what hiding among the reports of a batch adds to local privacy."""

from tacit.privacy.shuffle.blanket import Blanket, Crowd, calibrate
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
    "calibrate",
    "hidden_among",
    "open_batch",
    "useful_crowd",
]
