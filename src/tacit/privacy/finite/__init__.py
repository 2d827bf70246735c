"""Local randomizers with finitely many outputs: exact privacy, exact noise, exact samplers."""

from tacit.privacy.finite.bits import BinaryResponse
from tacit.privacy.finite.channel import Channel, Pair
from tacit.privacy.finite.choose import best_oracle
from tacit.privacy.finite.oracle import Oracle, Randomizer
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection
from tacit.privacy.finite.unary import UnaryEncoding

__all__ = [
    "BinaryResponse",
    "Channel",
    "KaryResponse",
    "Oracle",
    "Pair",
    "Randomizer",
    "SubsetSelection",
    "UnaryEncoding",
    "best_oracle",
]
