"""Continual counters: noisy prefix sums of a stream, under one charge for the whole stream."""

from tacit.privacy.counters.base import Counter, Strategy
from tacit.privacy.counters.blt import BufferedToeplitz, blt
from tacit.privacy.counters.catalogue import KINDS, strategy
from tacit.privacy.counters.doubling import Doubling
from tacit.privacy.counters.honaker import Honaker
from tacit.privacy.counters.state import Draw, State
from tacit.privacy.counters.symmetric import pack, packed_size, unpack
from tacit.privacy.counters.toeplitz import Toeplitz
from tacit.privacy.counters.tree import Tree

__all__ = [
    "KINDS",
    "BufferedToeplitz",
    "Counter",
    "Doubling",
    "Draw",
    "Honaker",
    "State",
    "Strategy",
    "Toeplitz",
    "Tree",
    "blt",
    "pack",
    "packed_size",
    "strategy",
    "unpack",
]
