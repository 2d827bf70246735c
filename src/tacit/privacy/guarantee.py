"""The statement of what was guaranteed: one frozen object, printed, hashed and stored alike."""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tacit.errors import InvalidInput
from tacit.privacy import composition, sentences
from tacit.privacy.accounting import gaussian_epsilon
from tacit.privacy.tradeoff import Tradeoff
from tacit.task.participation import Participation
from tacit.validate import integer, number

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from tacit.arrays import Array

Model = Literal["none", "local", "joint", "shuffle"]


class Delta(float):
    """The stated delta: a float, which can be called with an epsilon for the delta there."""

    __slots__ = ("_statement",)
    _statement: Guarantee

    def __call__(self, epsilon: float) -> float:
        """The least delta at epsilon that the statement implies.

        From the Gaussian trade-off where mu is known, else that of the worst mechanism with the
        stated numbers. The mechanism that ran may be better than what is stated, never worse.
        """
        statement, epsilon = self._statement, number(epsilon, "epsilon", low=0.0)
        if statement.parts and statement.mu is None:
            return composition.Total.of(statement.parts).delta(epsilon)
        return statement.tradeoff.delta(epsilon)

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What one user is guaranteed, computed from the noise actually added.

    Attributes:
        model: who is trusted: "local", "joint", "shuffle", or "none" for no privacy.
        epsilon: the true value at ``delta``; infinite where no finite value exists.
        delta: the delta at which ``epsilon`` holds; ``delta(x)`` is the least that holds at x.
        mechanism: what adds the noise.
        accountant: how epsilon was computed.
        mu: the Gaussian trade-off that holds at every epsilon, None where the noise is another.
        requested_epsilon: what the user asked for, None where nothing could be asked for.
        requested_delta: likewise.
        delta_at_requested_epsilon: the true delta at the requested epsilon.
        unit: whose data is protected: "user", or "participation" where a person may come back.
        relation: which datasets must look alike.
        participations: how often one person may take part; None for any number.
        rule: all that is said about that, where the number does not say it all.
        noise: scales of the noise by name.
        assumptions: what must hold for the statement to be true, as sentences.
        revealed: facts of the problem the learner was told (public, not learned).
        simulated: True if made in simulation: seeded noise protects nobody.
        also: further views of the same run (a shuffled run lists local and central).
        parts: what a sum was made of, and how often each; empty for the statement of one task.
    """

    model: Model
    epsilon: float
    delta: Delta
    mechanism: str
    accountant: str
    mu: float | None = None
    requested_epsilon: float | None = None
    requested_delta: float | None = None
    delta_at_requested_epsilon: float | None = None
    unit: Literal["user", "participation"] = "user"
    relation: str = "replace-one"
    participations: int | None = 1
    noise: Mapping[str, Any] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    revealed: tuple[str, ...] = ()
    simulated: bool = False
    also: tuple[Guarantee, ...] = ()
    parts: tuple[tuple[int, Guarantee], ...] = ()
    rule: Participation | None = None

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
        delta = Delta(self.delta)
        delta._statement = self
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "noise", MappingProxyType(dict(self.noise)))

    def as_simulated(self) -> Guarantee:
        """The same statement, marked as made in simulation."""
        return dataclasses.replace(
            self,
            simulated=True,
            also=tuple(view.as_simulated() for view in self.also),
            parts=tuple((times, part.as_simulated()) for times, part in self.parts),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite epsilon is null. Few have ``parts`` or a ``rule``."""
        parts = [{"times": times, "guarantee": part.to_json()} for times, part in self.parts]
        return {
            "model": self.model,
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": float(self.delta),
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
            **({"parts": parts} if parts else {}),
            **({} if self.rule is None else {"rule": self.rule.to_json()}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Guarantee:
        """The inverse of :meth:`to_json`; statements from before there was a mu are read too."""
        fields = dict(data)
        fields["epsilon"] = math.inf if data["epsilon"] is None else float(data["epsilon"])
        fields["assumptions"] = tuple(data["assumptions"])
        fields["revealed"] = tuple(data["revealed"])
        fields["also"] = tuple(cls.from_json(view) for view in data["also"])
        fields["parts"] = tuple(
            (int(part["times"]), cls.from_json(part["guarantee"])) for part in data.get("parts", ())
        )
        if data.get("rule") is not None:
            fields["rule"] = Participation.from_json(data["rule"])
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
        """What is known of the trade-off curve: Gaussian, or points that hold."""
        points = [(self.epsilon, float(self.delta))]
        if self.parts and self.mu is None:
            points += composition.Total.of(self.parts).points()
        if self.requested_epsilon is not None and self.delta_at_requested_epsilon is not None:
            points.append((self.requested_epsilon, self.delta_at_requested_epsilon))
        return Tradeoff(tuple(point for point in points if math.isfinite(point[0])), self.mu)

    def epsilon_at(self, delta: float) -> float:
        """The least epsilon at delta that the statement implies; infinite where none does."""
        delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
        if self.mu is not None:
            return gaussian_epsilon(self.mu, delta)
        if self.parts:
            return composition.Total.of(self.parts).epsilon(delta)
        return self.tradeoff.epsilon(delta)

    def compose(self, times: int) -> Guarantee:
        """The statement for one person in this many tasks that are each guaranteed like this.

        Where budgets are renewed these are so many periods, of one task or of several.
        """
        times = integer(times, "times", low=1, high=composition.MOST_TIMES)
        return self if times == 1 else composition.added([(times, self)])

    def __add__(self, other: object) -> Guarantee:
        """The statement for one person who takes part in both tasks."""
        if not isinstance(other, Guarantee):
            return NotImplemented
        return composition.added([(1, self), (1, other)])

    def curve(self, points: int = 101) -> Array:
        """Trade-off curve: shares of false alarms, and of misses that no test can get below."""
        points = integer(points, "points", low=2, high=1_000_000)
        known = self.tradeoff
        alarms = np.linspace(0.0, 1.0, points)
        missed = [1.0 - known.found(float(share)) for share in alarms]
        return np.column_stack((alarms, np.maximum(missed, 0.0)))

    def to_dp_event(self) -> DpEvent:
        """The statement as an event of dp-accounting; of one period where budgets are renewed.

        Gaussian noise is for its default relation, where the noise multiplier is 1 / mu. As soon as
        there is a pure part, which is stated as randomized response, the event is for REPLACE_ONE,
        which dp-accounting takes for twice as far.
        """
        return composition.dp_event(self)

    def statement(self) -> str:
        """The guarantee in plain words."""
        return sentences.statement(self)

    __str__ = statement

    def _repr_html_(self) -> str:
        """The statement in a notebook."""
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self.statement().split("\n"))
        return f"<div><b>{html.escape(self.brief())}</b>{lines}</div>"

    def brief(self) -> str:
        """Model and true values in a few words, for legends."""
        return sentences.brief(self)
