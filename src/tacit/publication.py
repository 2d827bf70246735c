"""One entry of the billboard: everything a user needs to take part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from tacit.arrays import frozen_mapping
from tacit.policies.base import Policy
from tacit.policies.linear import LinearPolicy
from tacit.policies.parametric import ParametricPolicy


@dataclass(frozen=True, eq=False)
class Publication:
    """A policy and the public numbers that go with it.

    Attributes:
        version: 0, 1, 2, ...; a report names the version it was made under.
        policy: what the user acts on.
        context: public arrays the statistic or the next plan needs (a value function, weights,
            radii). Computed from releases only.
        users: how many users act on it, where the planner decides that; None leaves it to the
            agent's schedule.
    """

    version: int
    policy: Policy
    context: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    users: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", frozen_mapping(self.context))

    def for_user(self, user: int) -> Publication:
        """The entry as one user reads it: what the policy draws for each user is written out."""
        if not isinstance(self.policy, LinearPolicy | ParametricPolicy):
            return self
        return replace(self, policy=self.policy.for_user(user))
