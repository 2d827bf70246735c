"""Noise that was recorded before."""

from typing import Any

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.privacy.noise import FiniteRandomizer, GridLaw, Source


class ReplayNoise:
    """Recorded draws, handed out in order and once."""

    source: Source = "replay"

    def __init__(self, draws: list[IntArray]) -> None:
        self._draws = list(draws)

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """Hand out the next recorded draw."""
        out[:] = self._next()

    def randomize(self, randomizer: FiniteRandomizer, value: Any) -> IntArray:
        """Hand out the next recorded draw as the report."""
        return self._next().copy()

    def happens(self, chance: int, of: int) -> bool:
        """Whether the next recorded draw, one number in [0, of), is below the chance."""
        return int(self._next().item()) < chance

    def _next(self) -> IntArray:
        if not self._draws:
            raise InvalidInput("all recorded noise was used: nothing is ever drawn twice")
        return self._draws.pop(0)
