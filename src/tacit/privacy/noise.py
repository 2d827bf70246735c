"""Where noise comes from."""

from __future__ import annotations

from typing import Literal, NoReturn, Protocol

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.release import NoiseLaw

Source = Literal["secure", "simulated", "replay", "none"]


class Noise(Protocol):
    """Fills a buffer with draws of a law; what draws them is named by ``source``."""

    @property
    def source(self) -> Source:
        """Named in every artefact the draws end up in."""

    def fill(self, law: NoiseLaw, out: Array) -> None:
        """Overwrite ``out`` with independent draws."""


class Silence:
    """No noise at all, for agents that are declared not private; asking it for any is an error."""

    source: Source = "none"

    def fill(self, law: NoiseLaw, out: Array) -> NoReturn:
        """Refuse: silently adding nothing would fake a guarantee."""
        raise InvalidInput(
            f"this run was set up without noise, but its privatizer asked for {law.name} noise; "
            "pass a noise source"
        )
