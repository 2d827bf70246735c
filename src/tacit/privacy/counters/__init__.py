"""Continual counters: noisy prefix sums of a stream, under one charge for the whole stream."""

from __future__ import annotations

from collections.abc import Callable

from tacit.privacy.counters.base import Strategy
from tacit.privacy.counters.blt import blt
from tacit.privacy.counters.normalised import Normalised
from tacit.privacy.counters.toeplitz import Toeplitz
from tacit.privacy.counters.tree import Honaker, Tree
from tacit.validate import choice

KINDS: dict[str, Callable[[int], Strategy]] = {
    "tree": Tree,
    "honaker": Honaker,
    "toeplitz": Toeplitz,
    "normalised": Normalised,
    "blt": blt,
}


def strategy(kind: str, length: int) -> Strategy:
    """The counter of that name for a stream of ``length`` items.

    >>> strategy("tree", 1000)
    Tree(length=1000)
    """
    return KINDS[choice(kind, "counter", KINDS)](length)
