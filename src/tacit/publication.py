"""One entry of the billboard: everything a user needs to take part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from tacit.arrays import frozen_mapping
from tacit.policy import Policy


@dataclass(frozen=True, eq=False)
class Publication:
    """A policy and the public numbers that go with it.

    Attributes:
        version: 0, 1, 2, ...; a report names the version it was made under.
        policy: what the user acts on.
        context: public arrays the statistic or the next plan needs (a value function, weights,
            radii). Computed from releases only.
    """

    version: int
    policy: Policy
    context: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", frozen_mapping(self.context))
