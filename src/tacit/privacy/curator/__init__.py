"""A trusted curator that answers declared queries on what it keeps."""

from tacit.privacy.curator.answers import Answers, Price, grid_rounding
from tacit.privacy.curator.curator import Curator, CuratorSecret
from tacit.privacy.curator.paper import Independent, ReusedNoise

__all__ = [
    "Answers",
    "Curator",
    "CuratorSecret",
    "Independent",
    "Price",
    "ReusedNoise",
    "grid_rounding",
]
