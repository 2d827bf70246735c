"""A trusted curator that answers declared queries on what it keeps."""

from tacit.privacy.curator.answers import Answers
from tacit.privacy.curator.curator import Curator, ReusedNoise
from tacit.privacy.curator.independent import Independent
from tacit.privacy.curator.price import Price, grid_rounding

__all__ = ["Answers", "Curator", "Independent", "Price", "ReusedNoise", "grid_rounding"]
