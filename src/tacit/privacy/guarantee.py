"""The statement of what was guaranteed: one frozen object, printed, hashed and stored alike."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from types import MappingProxyType
from typing import Any, Literal

from tacit.errors import InvalidInput

Model = Literal["none", "local", "joint", "shuffle"]


def _up(number: float, digits: int) -> str:
    """A number in that many digits, rounded up: a printed guarantee is never too good."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(number))
    return f"{float(rounded):.{digits}g}"


_MEANING = {
    "local": "each user's device randomizes its report before sending it; nobody else is trusted",
    "joint": "a trusted curator sees trajectories; everything it publishes, and every other user's "
    "treatment, is protected",
    "shuffle": "devices randomize their reports and a trusted shuffler hides who sent which",
}


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What one user is guaranteed, computed from the noise actually added.

    Attributes:
        model: who is trusted: "local", "joint", "shuffle", or "none" for no privacy.
        epsilon: the true value at ``delta``; infinite where no finite value exists.
        delta: the delta at which ``epsilon`` holds.
        mechanism: what adds the noise.
        accountant: how epsilon was computed.
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
        """The inverse of :meth:`to_json`."""
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

    def statement(self) -> str:
        """The guarantee in plain words."""
        lines = [*self._headline(), *(f"Assumes: {text}." for text in self.assumptions)]
        if self.revealed:
            lines.append(f"The learner was told in advance: {', '.join(self.revealed)}.")
        if self.simulated:
            lines.append("Made in simulation: no real person's data was used, none is protected.")
        lines += [f"Also: {view.statement()}" for view in self.also]
        return "\n".join(lines)

    __str__ = statement

    def brief(self) -> str:
        """Model and true values in a few words, for legends.

        Where a delta was asked for, the true one is given at the epsilon asked for.
        """
        asked, asked_delta = self.requested_epsilon, self.requested_delta or 0.0
        at = self.delta_at_requested_epsilon
        if self.model == "none":
            if asked is None or at is None:
                return "not private"
            return f"no finite epsilon; delta {_up(at, 3)} at epsilon {asked:g}"
        if asked is not None and at is not None and asked_delta > 0:
            differs = not math.isclose(at, asked_delta, rel_tol=1e-3)
            note = f" (asked for {asked_delta:g})" if differs else ""
            return f"{self.model} epsilon {asked:g}, delta {_up(at, 3)}{note}"
        said = f"{self.model} epsilon {_up(self.epsilon, 3)}"
        if self.delta > 0:
            said += f", delta {_up(self.delta, 3)}"
        if asked is None or math.isclose(asked, self.epsilon, rel_tol=1e-3):
            return said
        return f"{said} (asked for {asked:g})"

    def _headline(self) -> list[str]:
        if self.model == "none":
            return self._no_privacy()
        trajectory = "any user's whole trajectory (states, actions and rewards)"
        if self.unit == "participation":
            trajectory = "the trajectory of any single participation"
        epsilon, delta = _up(self.epsilon, 6), _up(self.delta, 3)
        lines = [
            f"({epsilon}, {delta})-differential privacy, {self.model} model: "
            f"{_MEANING[self.model]}.",
            f"Replacing {trajectory} by any other changes the probability of every outcome by at "
            f"most a factor e^{epsilon}, plus {delta}.",
            f"Mechanism: {self.mechanism}; accounting: {self.accountant}.",
        ]
        if self.participations > 1:
            lines.append(f"One person may take part {self.participations} times; all are covered.")
        return lines + self._beside_the_request()

    def _no_privacy(self) -> list[str]:
        if not self.noise:
            return [
                "NO PRIVACY: epsilon is infinite.",
                "No noise was added. What this learner publishes depends on exact user data and "
                "may disclose any of it.",
            ]
        return [
            f"NO PRIVACY: no finite epsilon holds at delta {_up(self.delta, 3)}.",
            "Noise was added, but too little: what is published may disclose exact user data.",
            f"Mechanism: {self.mechanism}; accounting: {self.accountant}.",
            *self._beside_the_request(),
        ]

    def _beside_the_request(self) -> list[str]:
        """A sentence where the truth is not what was asked for."""
        asked, delta = self.requested_epsilon, self.requested_delta
        at = self.delta_at_requested_epsilon
        weaker = self.epsilon > asked * (1 + 1e-6) if asked is not None else False
        if at is not None and at > (delta or 0.0) * (1 + 1e-6):
            weaker = True
        if asked is None or (not weaker and math.isclose(asked, self.epsilon, rel_tol=1e-6)):
            return []
        verdict = "WEAKER than asked" if weaker else "stronger than asked"
        at_asked = "" if at is None else f"; at epsilon {asked:.6g} the true delta is {_up(at, 4)}"
        return [
            f"Asked for was epsilon {asked:.6g}, delta {delta or 0.0:.3g}: this noise is "
            f"{verdict}{at_asked}."
        ]
