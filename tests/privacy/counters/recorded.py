"""Counters under test, and noise that is written down so that it can be compared."""

import numpy as np

from tacit.privacy.counters import strategy
from tacit.privacy.counters.base import Strategy
from tacit.privacy.counters.blt import blt

LENGTHS = (1, 2, 3, 7, 8, 9, 16, 17, 31, 32, 33)
LARGEST = 10_000
NAMES = ("tree", "honaker", "toeplitz", "normalised", "blt-2", "blt-3", "blt-4")


def make(name: str, length: int) -> Strategy:
    kind, _, buffers = name.partition("-")
    return blt(length, int(buffers)) if buffers else strategy(kind, length)


class Recorded:
    """Noise that depends on the node's number only; remembers who was asked for."""

    def __init__(self, size: int, spread: int = 1000, seed: int = 0) -> None:
        self.size, self.spread, self.seed = size, spread, seed
        self.asked: list[int] = []

    def of(self, node: int) -> np.ndarray:
        rng = np.random.default_rng([self.seed, node])
        return rng.integers(-self.spread, self.spread + 1, self.size)

    def __call__(self, node: int) -> np.ndarray:
        self.asked.append(node)
        return self.of(node)

    def matrix(self, nodes: int) -> np.ndarray:
        return np.array([self.of(node) for node in range(nodes)])


def items(length: int, size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-LARGEST, LARGEST + 1, (length, size))


def run(counter: Strategy, stream: np.ndarray, draw: Recorded) -> np.ndarray:
    state = counter.init(stream.shape[1], LARGEST)
    return np.array([counter.step(state, item, draw)[0] for item in stream])


def rows_of(counter: Strategy, stream: np.ndarray) -> np.ndarray:
    """C x on the grid, row by row, as the running code computes it."""
    secret, _ = counter.buffers(stream.shape[1])
    steps = enumerate(stream, start=1)
    return np.concatenate([counter.encode(secret, t, item.copy()) for t, item in steps])
