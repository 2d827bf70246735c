"""What happened to one person's data, apart from how it is counted.

A mechanism says what it does in one event: everything that is ever released about one person, all
participations included, with the noise that was truly added. Guarantee and ledger charge are both
worked out from it, and from nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.errors import InvalidInput
from tacit.privacy import accounting, bounded
from tacit.privacy.guarantee import Delta, Guarantee, Model
from tacit.privacy.sentences import rests_on
from tacit.task.task import Task
from tacit.validate import number

if TYPE_CHECKING:
    from tacit.privacy.charges import Charge
    from tacit.privacy.finite.channel import Pair


class Event(ABC):
    """Everything that one person's data went into."""

    pure: ClassVar[bool] = False
    """Whether epsilon is stated at delta 0."""

    needs_delta: ClassVar[bool] = True
    """Whether no epsilon holds at delta 0, so that a larger delta must be asked for."""

    mu: float | None = None
    """Of the Gaussian trade-off, where the noise is Gaussian."""

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """The least epsilon that is known to hold at delta."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """The least delta that is known to hold at epsilon."""

    def accountant(self, scope: str) -> str:
        """How the numbers are worked out, in words."""
        return scope

    def charge(self) -> Charge:
        """What a ledger records."""
        raise InvalidInput("a ledger keeps charges of pure and of Gaussian mechanisms only")

    def guarantee(
        self,
        task: Task,
        *,
        model: Model,
        mechanism: str,
        accountant: str,
        requested: tuple[float, float] | None = None,
        noise: Mapping[str, Any] = MappingProxyType({}),
        assumptions: tuple[str, ...] = (),
        lifetime: bool = False,
    ) -> Guarantee:
        """The statement about it: what it truly gives, beside what was asked for.

        Args:
            task: the public task.
            model: who is trusted; "none" is put in its place where no epsilon is finite.
            mechanism: what adds the noise, in words.
            accountant: what was counted together, in words.
            requested: epsilon and delta, None where nothing could be asked for. An epsilon that is
                not pure is stated at this delta.
            noise: scales by name.
            assumptions: what must hold, as sentences.
            lifetime: whether what one person adds is bounded over all their participations, and
                the noise of a curator in different periods can be independent.
        """
        rule = task.rule
        if task.lifetime and not lifetime:
            raise InvalidInput(
                f"{mechanism}: nothing here bounds what one person teaches in all their "
                "participations together; let teaches be first, or every with a number of "
                "participations"
            )
        if rule is not None and rule.period and model == "joint" and not lifetime:
            raise InvalidInput(
                f"{mechanism}: a curator renews budgets only where it bounds lives (teaches "
                "lifetime) and its counter can begin again; leave the period out"
            )
        if rule is not None:
            if rule.attendance == "private" and not (model == "joint" and lifetime):
                raise InvalidInput(
                    f"{mechanism}: it does not hide who takes part and when; let attendance be "
                    "public, or choose a curator that bounds lives (teaches lifetime)"
                )
            assumptions = rests_on(model, rule, assumptions)
        epsilon, delta, beyond, stated = None, None, None, 0.0
        if requested is not None:
            epsilon = number(requested[0], "requested_epsilon", low=0.0, low_open=True)
            delta = number(
                requested[1], "requested_delta", low=0.0, high=1.0, low_open=self.needs_delta
            )
            beyond = self.delta(epsilon)
            stated = 0.0 if self.pure else delta
        true = self.epsilon(stated)
        return Guarantee(
            model=model if math.isfinite(true) else "none",
            epsilon=true,
            delta=Delta(stated),
            mechanism=mechanism,
            accountant=self.accountant(accountant),
            mu=self.mu,
            requested_epsilon=epsilon,
            requested_delta=delta,
            delta_at_requested_epsilon=beyond,
            participations=task.participations if rule is None else rule.times,
            rule=rule,
            noise=noise,
            assumptions=assumptions,
            revealed=task.revealed,
        )


@dataclass(frozen=True)
class GaussianEvent(Event):
    """Gaussian noise: what one person moves, over its standard deviation, is at most mu."""

    mu: float = field()

    @classmethod
    def of(cls, moved: float, noise_std: float) -> GaussianEvent:
        """Discrete noise on the grid is a hair worse than continuous noise, which is put on mu."""
        return cls(moved / noise_std * (1 + accounting.DISCRETE))

    def epsilon(self, delta: float) -> float:
        """Exact."""
        return accounting.gaussian_epsilon(self.mu, delta)

    def delta(self, epsilon: float) -> float:
        """Exact."""
        return accounting.gaussian_delta(self.mu, epsilon)

    def accountant(self, scope: str) -> str:
        """The trade-off that holds at every epsilon."""
        return f"exact Gaussian trade-off at mu = {self.mu:.6g}, {scope}"

    def charge(self) -> Charge:
        """mu^2, rounded up."""
        from tacit.privacy.charges import GaussianCharge  # needs SciPy, which devices lack

        return GaussianCharge.of(self.mu, 1.0)


@dataclass(frozen=True)
class PureEvent(Event):
    """Outputs whose log ratios are within ``bound``, of which nothing else is known."""

    bound: float
    pure: ClassVar[bool] = True
    needs_delta: ClassVar[bool] = False

    def epsilon(self, delta: float) -> float:
        """The bound."""
        return self.bound

    def delta(self, epsilon: float) -> float:
        """Of the worst mechanism with that bound."""
        return accounting.pure_delta(self.bound, epsilon)

    def charge(self) -> Charge:
        """The bound."""
        from tacit.privacy.charges import PureCharge  # as above

        return PureCharge(self.bound)


@dataclass(frozen=True)
class FiniteEvent(PureEvent):
    """The same where reports have finitely many outputs, whose worst pairs of laws are known.

    Attributes:
        bound: on the log ratio of all reports of one person together, rounded up.
        pairs: the output laws of a worst pair of inputs, for each kind of report.
        reports: how many one person sends.
    """

    pairs: tuple[Pair, ...]
    reports: int

    def delta(self, epsilon: float) -> float:
        """Of the worst kind of report, sent every time."""
        if epsilon >= self.bound:
            return 0.0
        return max(pair.composed_delta(self.reports, epsilon) for pair in self.pairs)


@dataclass(frozen=True)
class BoundedEvent(Event):
    """Noise that ends somewhere.

    Attributes:
        radii: of the noise in the cells that can move.
        shifts: by how much they do.
        asked: an epsilon that is checked itself: the search for the least one rounds up.
    """

    radii: tuple[float, ...]
    shifts: tuple[float, ...]
    asked: float

    def epsilon(self, delta: float) -> float:
        """From the convolved privacy losses of all these cells, rounded up."""
        bound = bounded.bounded_epsilon(self.radii, self.shifts, delta)
        return min(bound, self.asked) if self.delta(self.asked) <= delta else bound

    def delta(self, epsilon: float) -> float:
        """Likewise."""
        return bounded.bounded_delta(np.array(self.radii), np.array(self.shifts), epsilon)


class Disclosure(Event):
    """Data come out as they are, or can be worked out from what does."""

    def epsilon(self, delta: float) -> float:
        """None is finite."""
        return math.inf

    def delta(self, epsilon: float) -> float:
        """Everything may be told apart."""
        return 1.0
