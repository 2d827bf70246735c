"""What crosses the wall: public sums and the exact law of the noise in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, frozen_mapping


class NoiseLaw(Protocol):
    """The exact law of the noise in a release; planners take their widths from it."""

    @property
    def name(self) -> str:
        """What kind of noise."""

    def scale(self, block: str) -> float:
        """Scale of one draw in a block: a standard deviation, or the b of Laplace noise."""

    def variance(self, block: str) -> Array:
        """Variance of every entry of a block (a scalar array where all are equal)."""


class NoNoise:
    """The law of a release that is exact, hence not private."""

    name = "none"

    def scale(self, block: str) -> float:
        """Zero everywhere."""
        return 0.0

    def variance(self, block: str) -> Array:
        """Zero everywhere."""
        return np.zeros(())

    def __repr__(self) -> str:
        return "NoNoise()"


@dataclass(frozen=True, eq=False)
class Release:
    """A public value. Only a privatizer makes one (``tests/test_architecture.py`` looks).

    Attributes:
        users: number of participations summed up in it.
        blocks: the sums by name, in natural units.
        law: the law of the noise added to them.
        source: where the noise came from: "secure", "simulated", or "none".
    """

    users: int
    blocks: Mapping[str, npt.NDArray[Any]]
    law: NoiseLaw
    source: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", frozen_mapping(self.blocks))


@dataclass(frozen=True, eq=False)
class ValueQuery:
    """A question a planner may ask of a curator: sum w phi (r + V(s') - R/2) over one stage.

    Attributes:
        id: names the question; asked again, the same answer comes back.
        target: which of the declared answers it is, each with its range R and its noise.
        stage: h, from 0.
        values: V [S]; the curator clips r + V(s') into [0, R].
    """

    id: tuple[int, str, int]
    target: str
    stage: int
    values: npt.NDArray[Any]
