"""The statement of what was guaranteed: one frozen object, printed, hashed and stored alike."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from tacit.errors import InvalidInput
from tacit.privacy import sentences
from tacit.privacy.tradeoff import Tradeoff

Model = Literal["none", "local", "joint", "shuffle"]


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What one user is guaranteed, computed from the noise actually added.

    Attributes:
        model: who is trusted: "local", "joint", "shuffle", or "none" for no privacy.
        epsilon: the true value at ``delta``; infinite where no finite value exists.
        delta: the delta at which ``epsilon`` holds.
        mechanism: what adds the noise.
        accountant: how epsilon was computed.
        mu: the Gaussian trade-off that holds at every epsilon, None where the noise is another.
        requested_epsilon: what the user asked for, None where nothing could be asked for.
        requested_delta: likewise.
        delta_at_requested_epsilon: the true delta at the requested epsilon.
        unit: whose data is protected: "user", or "participation" where a person may come back.
        relation: which datasets must look alike.
        participations: how often one person may take part.
        noise: scales of the noise by name.
        assumptions: what must hold for the statement to be true, as sentences.
        revealed: facts of the problem the learner was told (public, not learned).
        simulated: True if made in simulation: seeded noise protects nobody.
        also: further views of the same run (a shuffled run lists local and central).
    """

    model: Model
    epsilon: float
    delta: float
    mechanism: str
    accountant: str
    mu: float | None = None
    requested_epsilon: float | None = None
    requested_delta: float | None = None
    delta_at_requested_epsilon: float | None = None
    unit: Literal["user", "participation"] = "user"
    relation: str = "replace-one"
    participations: int = 1
    noise: Mapping[str, Any] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    revealed: tuple[str, ...] = ()
    simulated: bool = False
    also: tuple[Guarantee, ...] = ()

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0:
            raise InvalidInput(f"epsilon = {self.epsilon}, but a guarantee has epsilon >= 0")
        if not 0 <= self.delta <= 1:
            raise InvalidInput(f"delta = {self.delta}, but a guarantee has delta in [0, 1]")
        if (self.model == "none") != math.isinf(self.epsilon):
            raise InvalidInput(
                f'model "{self.model}" with epsilon {self.epsilon}: no privacy means model "none" '
                "and infinite epsilon, both"
            )
        if self.mu is not None and not 0 <= self.mu < math.inf:
            raise InvalidInput(f"mu = {self.mu}, but a Gaussian guarantee has a finite mu >= 0")
        object.__setattr__(self, "noise", MappingProxyType(dict(self.noise)))

    def as_simulated(self) -> Guarantee:
        """The same statement, marked as made in simulation."""
        return dataclasses.replace(
            self, simulated=True, also=tuple(view.as_simulated() for view in self.also)
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite epsilon is null."""
        return {
            "model": self.model,
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": self.delta,
            "mu": self.mu,
            "delta_at_requested_epsilon": self.delta_at_requested_epsilon,
            "requested_epsilon": self.requested_epsilon,
            "requested_delta": self.requested_delta,
            "unit": self.unit,
            "relation": self.relation,
            "participations": self.participations,
            "accountant": self.accountant,
            "mechanism": self.mechanism,
            "noise": dict(self.noise),
            "assumptions": list(self.assumptions),
            "revealed": list(self.revealed),
            "simulated": self.simulated,
            "also": [view.to_json() for view in self.also],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Guarantee:
        """The inverse of :meth:`to_json`; statements from before there was a mu are read too."""
        fields = dict(data)
        fields["epsilon"] = math.inf if data["epsilon"] is None else float(data["epsilon"])
        fields["assumptions"] = tuple(data["assumptions"])
        fields["revealed"] = tuple(data["revealed"])
        fields["also"] = tuple(cls.from_json(view) for view in data["also"])
        return cls(**fields)

    def digest(self) -> str:
        """SHA-256 of the canonical JSON: two statements with one digest say the same."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guarantee) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.digest())

    @property
    def tradeoff(self) -> Tradeoff:
        """What is known of the trade-off curve: Gaussian, or the one or two points stated."""
        points = [(self.epsilon, self.delta)]
        if self.requested_epsilon is not None and self.delta_at_requested_epsilon is not None:
            points.append((self.requested_epsilon, self.delta_at_requested_epsilon))
        return Tradeoff(tuple(point for point in points if math.isfinite(point[0])), self.mu)

    def statement(self) -> str:
        """The guarantee in plain words."""
        return sentences.statement(self)

    __str__ = statement

    def brief(self) -> str:
        """Model and true values in a few words, for legends."""
        return sentences.brief(self)
