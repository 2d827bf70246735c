"""The budget, and the filter that refuses before it would be overspent.

What is charged next may depend on everything released so far. Composition theorems for a fixed list
of mechanisms do not cover that, so the filter does not use them. It keeps two sums below two caps
that are fixed before the first charge: mu^2 of what counts as Gaussian, and the pure epsilons that
are added plainly. With such caps (M, E) everything together is no worse than one Gaussian release
of mu^2 = M beside one purely E-private release, whatever was chosen along the way; the argument is
in proofs/ledger_and_filter.md. Caps that could be traded against each other along the way would
not be safe.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from scipy.special import log_ndtr

from tacit.errors import BudgetExceeded, InvalidInput
from tacit.grid import least_scale
from tacit.privacy.accounting import mixed_delta
from tacit.privacy.charges import LARGEST, Charge, GaussianCharge, exact, root_up, rounded_up
from tacit.validate import integer, number

_HAIR = 1 + Fraction(1, 10**9)
_PARTS = ("epsilon", "delta", "pure", "mu_squared")


@dataclass(frozen=True)
class Cost:
    """An amount in the two currencies of a filter, exact."""

    mu_squared: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.mu_squared + other.mu_squared, self.epsilon + other.epsilon)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.mu_squared - other.mu_squared, self.epsilon - other.epsilon)

    def within(self, caps: Cost) -> bool:
        """Whether neither currency exceeds its cap."""
        return self.mu_squared <= caps.mu_squared and self.epsilon <= caps.epsilon

    def to_json(self) -> dict[str, float]:
        """As floats that are not below the amounts."""
        return {"mu_squared": rounded_up(self.mu_squared), "epsilon": rounded_up(self.epsilon)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Cost:
        """The inverse of :meth:`to_json` for amounts that are floats."""
        return cls(*(exact(number(data[k], k, low=0.0)) for k in ("mu_squared", "epsilon")))

    def __str__(self) -> str:
        return f"mu^2 {float(self.mu_squared):.9g} and epsilon {float(self.epsilon):.9g}"


@dataclass(frozen=True, init=False)
class Budget:
    """What one user may lose at most, and how it is divided before anything is spent.

    Attributes:
        epsilon: of the (epsilon, delta) that everything together will satisfy.
        delta: 0 allows pure charges only.
        pure: the part of epsilon set aside for pure charges that are added plainly; by default
            everything if delta is 0 and nothing otherwise. Pure charges beyond it count as Gaussian
            ones: cheaper for many small charges, dearer for a few large ones.
        mu_squared: the cap on what counts as Gaussian; by default the largest that fits.
    """

    epsilon: float
    delta: float
    pure: float
    mu_squared: float

    def __init__(
        self,
        epsilon: float,
        delta: float,
        pure: float | None = None,
        mu_squared: float | None = None,
    ) -> None:
        epsilon = number(epsilon, "epsilon", low=0.0, high=LARGEST, low_open=True)
        delta = number(delta, "delta", low=0.0, high=1.0, high_open=True) + 0.0
        if pure is None:
            pure = 0.0 if delta else epsilon
        pure = number(pure, "pure", low=0.0, high=epsilon) + 0.0
        if mu_squared is None:
            mu_squared = _largest_mu_squared(epsilon, delta, pure)
        mu_squared = number(mu_squared, "mu_squared", low=0.0, high=LARGEST) + 0.0
        if _delta_bound(mu_squared, pure, epsilon, margin=1) > delta:
            raise InvalidInput(
                f"mu_squared = {mu_squared:g} beside pure = {pure:g} does not keep delta below "
                f"{delta:g} at epsilon = {epsilon:g}; leave mu_squared out to get the largest"
            )
        for name, value in zip(_PARTS, (epsilon, delta, pure, mu_squared), strict=True):
            object.__setattr__(self, name, value)

    @cached_property
    def caps(self) -> Cost:
        """The two caps, fixed in advance."""
        return Cost(exact(self.mu_squared), exact(self.pure))

    def noise_std(self, sensitivity: float, releases: int = 1) -> float:
        """The least noise with which that many Gaussian releases fit, to the last digit.

        Calibrate with this, charge :meth:`GaussianCharge.of` for each release.
        """
        number(sensitivity, "sensitivity", low=0.0, low_open=True)
        releases = integer(releases, "releases", low=1)
        if self.mu_squared == 0.0:
            raise InvalidInput("this budget has nothing for Gaussian noise; it needs delta > 0")
        share = exact(self.mu_squared) / releases

        def suffices(std: float) -> bool:
            return GaussianCharge.of(sensitivity, std).as_gaussian() <= share

        return least_scale(sensitivity / math.sqrt(float(share)), suffices)

    def to_json(self) -> dict[str, float]:
        """Plain values for JSON; :meth:`from_json` restores the very same caps."""
        return {name: getattr(self, name) for name in _PARTS}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Budget:
        """The inverse of :meth:`to_json`; the caps are checked again, not trusted."""
        return cls(*(data[name] for name in _PARTS))

    def __str__(self) -> str:
        return f"epsilon = {self.epsilon:g}, delta = {self.delta:g} ({self.caps})"


class BudgetExhausted(BudgetExceeded):
    """A request that would have overspent. Nothing was charged and nothing will be any more.

    The message depends on charges and budget only, never on data.
    """

    def __init__(
        self, *, spent: Cost, reserved: Cost, asked: Cost, budget: Budget, reason: str
    ) -> None:
        self.spent, self.reserved, self.asked, self.budget = spent, reserved, asked, budget
        super().__init__(
            f"budget exhausted: asked for {asked}; already spent: {spent}; reserved: {reserved}; "
            f"the budget is {budget}. Nothing was charged; {reason}"
        )


@dataclass(frozen=True)
class Reservation:
    """Budget held for a charge until it is committed or cancelled."""

    id: int
    charge: Charge
    cost: Cost


class PrivacyFilter:
    """Admits charges as long as everything together stays within the budget, then closes.

    A charge is reserved first and committed before its noise is drawn; a reservation whose noise
    was never drawn may be cancelled. Once a request has been refused for lack of budget, every
    later one is refused too, however small: what is asked must not become a way to probe. Earlier
    reservations may still be committed, they are paid for.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._spent = Cost()
        self._reserved = Cost()
        self._closed = False
        self._open: dict[int, Reservation] = {}
        self._made = 0

    @property
    def spent(self) -> Cost:
        """What has been committed."""
        return self._spent

    @property
    def reserved(self) -> Cost:
        """What is held by open reservations."""
        return self._reserved

    @property
    def closed(self) -> bool:
        """Whether a request has been refused for lack of budget."""
        return self._closed

    @property
    def remaining(self) -> Cost:
        """What neither is spent nor reserved. Not an invitation: a closed filter keeps it."""
        return self.budget.caps - self._spent - self._reserved

    def price(self, charge: Charge) -> Cost:
        """What reserving this charge costs now; refuses and closes if it would overspend."""
        held = self._spent + self._reserved
        cost = self._cost(charge, held)
        if self._closed or not (held + cost).within(self.budget.caps):
            raise self.refusal(cost, self._reason(charge, cost))
        return cost

    def refusal(self, asked: Cost, reason: str) -> BudgetExhausted:
        """Close for good; what says so, for the caller to raise."""
        self._closed = True
        return BudgetExhausted(
            spent=self._spent,
            reserved=self._reserved,
            asked=asked,
            budget=self.budget,
            reason=reason,
        )

    def reserve(self, charge: Charge) -> Reservation:
        """Hold budget for a charge, or refuse and close."""
        return self._hold(charge, self.price(charge))

    def commit(self, reservation: Reservation) -> None:
        """Spend what is reserved; noise may be drawn from now on, and budget never comes back."""
        self._take(reservation)
        self._spent += reservation.cost

    def cancel(self, reservation: Reservation) -> None:
        """Give back a reservation for which no noise was drawn."""
        self._take(reservation)

    def restore(self, charge: Charge, cost: Cost) -> Reservation:
        """Reserve again what a ledger says was reserved, at the cost it recorded."""
        if self._closed or not (self._spent + self._reserved + cost).within(self.budget.caps):
            raise InvalidInput(f"a reservation of {cost} does not fit into what was left")
        # another version of the special functions may differ in the last digits
        loosened = Cost(cost.mu_squared * _HAIR, cost.epsilon * _HAIR)
        if not any(bound is not None and bound.within(loosened) for bound in _covers(charge)):
            raise InvalidInput(f"a cost of {cost} does not cover the charge it was recorded for")
        return self._hold(charge, cost)

    def close(self) -> None:
        """Refuse everything from now on, as after a refusal."""
        self._closed = True

    def _reason(self, charge: Charge, cost: Cost) -> str:
        """What a refusal adds for the person who has to fix it; from charges and budget only."""
        if self._closed:
            return "the filter closed for good when an earlier request was refused"
        reason = "the filter is now closed for good"
        if cost.mu_squared and charge.as_pure() is not None:
            reason += " (pure charges count as mu^2 beyond what Budget(pure=...) sets aside)"
        elif self.remaining.mu_squared < cost.mu_squared < self.remaining.mu_squared * _HAIR:
            reason += " (over by rounding only: calibrate with Budget.noise_std)"
        return reason

    def _hold(self, charge: Charge, cost: Cost) -> Reservation:
        self._made += 1
        reservation = Reservation(self._made, charge, cost)
        self._open[reservation.id] = reservation
        self._reserved += cost
        return reservation

    def _take(self, reservation: Reservation) -> None:
        if self._open.get(reservation.id) is not reservation:
            raise InvalidInput(
                f"reservation {reservation.id} is not open here: it was committed or cancelled "
                "before, or belongs to another filter"
            )
        del self._open[reservation.id]
        self._reserved -= reservation.cost

    def _cost(self, charge: Charge, held: Cost) -> Cost:
        """How a charge counts: as a pure epsilon while those last, then as mu^2."""
        plain, gaussian = _covers(charge)
        if plain is None or self.budget.mu_squared == 0.0:
            return gaussian if plain is None else plain
        return plain if (held + plain).within(self.budget.caps) else gaussian


def _covers(charge: Charge) -> tuple[Cost | None, Cost]:
    """The charge as pure epsilon and as mu^2, rounded up to floats so that they can be recorded."""
    pure = charge.as_pure()
    return (
        None if pure is None else Cost(epsilon=exact(rounded_up(pure))),
        Cost(mu_squared=exact(rounded_up(charge.as_gaussian()))),
    )


def _delta_bound(mu_squared: float, pure: float, epsilon: float, margin: int) -> float:
    """Delta at epsilon of the two caps together, plus what its evaluation may be off by."""
    if mu_squared == 0.0:
        return mixed_delta(0.0, pure, epsilon)
    mu = root_up(exact(mu_squared))
    off = 1e-290  # what underflow may hide
    for x in (epsilon - pure, epsilon + pure):
        first, second = (float(log_ndtr(half - x / mu)) for half in (mu / 2, -mu / 2))
        if math.exp(first) > 0.0:
            off += math.exp(first) * (1 + abs(first) + abs(second) + 2 * x)
    return mixed_delta(mu, pure, epsilon) + margin * 1e-14 * off


def _largest_mu_squared(epsilon: float, delta: float, pure: float) -> float:
    """The largest cap that keeps delta, found with twice the margin with which it is checked."""

    def fits(mu_squared: float) -> bool:
        return _delta_bound(mu_squared, pure, epsilon, margin=2) <= delta

    low = 1.0
    while not fits(low):
        low /= 2
        if low < 1e-200:
            return 0.0
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
