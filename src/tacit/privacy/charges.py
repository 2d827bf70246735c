"""What one user pays, as records that keep their meaning.

A charge says how far apart the output laws on two neighbouring datasets can be, for every release
it stands for. Charges are stored for years, so these rules hold:

- a kind is never removed and a field never changes its meaning; something new gets a new kind;
- reading refuses unknown kinds, unknown fields and missing fields, it never guesses;
- a number means the decimal it is written as: ten charges of 0.1 are exactly 1. Sums are made in
  rational arithmetic, and conversions to floating point round up.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from scipy.special import ndtri_exp

from tacit.errors import InvalidInput, UnknownName
from tacit.validate import integer, number

LARGEST = 1e9
"""No charge above this: nothing that large protects anybody."""
_HALF_PI = Fraction(15708, 10000)  # pi/2, rounded up
_HAIR = 1 + Fraction(1, 10**9)  # what special functions may be off by, with room to spare


def exact(x: float) -> Fraction:
    """The decimal number a float is written as."""
    return Fraction(Decimal(repr(x)))


def rounded_up(x: Fraction) -> float:
    """The least float that is written as a number >= x."""
    y = float(x)
    while exact(y) < x:
        y = math.nextafter(y, math.inf)
    return y


def rounded_down(x: Fraction) -> float:
    """The greatest float that is written as a number <= x."""
    return 0.0 - rounded_up(-x)


def root_up(x: Fraction) -> float:
    """A float not below the square root of x."""
    y = math.sqrt(rounded_up(x))
    return y if Fraction(y) ** 2 >= x else math.nextafter(y, math.inf)


class _Kept:
    """What every kind of charge has: JSON that says its kind and its fields."""

    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        fields = {n: x.to_json() if isinstance(x, _Kept) else x for n, x in vars(self).items()}
        return {"kind": self.kind, **fields}


class _Simple(_Kept):
    """A charge that is one number."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            amount = number(value, name, low=0.0, high=LARGEST) + 0.0  # -0.0 becomes 0.0
            object.__setattr__(self, name, amount)


@dataclass(frozen=True)
class GaussianCharge(_Simple):
    """Outputs as far apart as N(0, 1) and N(mu, 1): L2 sensitivity over noise std, squared."""

    mu_squared: float
    kind: ClassVar[str] = "gaussian"

    @classmethod
    def of(cls, sensitivity: float, noise_std: float) -> GaussianCharge:
        """The charge for Gaussian noise of this standard deviation, never rounded down."""
        sensitivity = number(sensitivity, "sensitivity", low=0.0)
        noise_std = number(noise_std, "noise_std", low=0.0, low_open=True)
        return cls(rounded_up((Fraction(sensitivity) / Fraction(noise_std)) ** 2))

    def as_gaussian(self) -> Fraction:
        """The mu^2 that covers this charge."""
        return exact(self.mu_squared)

    def as_pure(self) -> Fraction | None:
        """The pure epsilon that covers this charge, None where none does."""
        return None if self.mu_squared else Fraction(0)


@dataclass(frozen=True)
class PureCharge(_Simple):
    """Any mechanism that is purely epsilon-DP: Laplace, randomized response, a sampled answer."""

    epsilon: float
    kind: ClassVar[str] = "pure"

    def as_gaussian(self) -> Fraction:
        """The mu^2 that covers this charge: (2 Phi^-1(e^eps / (1 + e^eps)))^2, at most pi/2 eps^2.

        The trade-off curve of pure DP has one corner, (1, 1) / (1 + e^eps), and a Gaussian curve
        that passes below a corner passes below its edges. Below 0.01 only the simple bound is
        used: it loses nothing there and cannot round to zero.
        """
        simple = _HALF_PI * exact(self.epsilon) ** 2
        if self.epsilon < 0.01:
            return simple
        log_corner = -self.epsilon - math.log1p(math.exp(-self.epsilon))
        return min(simple, (Fraction(-2.0 * float(ndtri_exp(log_corner))) * _HAIR) ** 2)

    def as_pure(self) -> Fraction:
        """Epsilon itself."""
        return exact(self.epsilon)


@dataclass(frozen=True)
class CopiesCharge(_Kept):
    """The same charge several times over, each time with fresh independent noise.

    This is what m participations with a report of their own cost. Where several contributions of
    one person meet under one noise draw, they move it m times as far, and mu^2 is m^2-fold.
    """

    charge: GaussianCharge | PureCharge
    count: int
    kind: ClassVar[str] = "copies"

    def __post_init__(self) -> None:
        if not isinstance(self.charge, GaussianCharge | PureCharge):
            raise InvalidInput(f"charge = {self.charge!r}, but copies are of one simple charge")
        object.__setattr__(self, "count", integer(self.count, "count", low=1, high=10**12))

    def as_gaussian(self) -> Fraction:
        """The mu^2 that covers all copies."""
        return self.count * self.charge.as_gaussian()

    def as_pure(self) -> Fraction | None:
        """The pure epsilon that covers all copies."""
        one = self.charge.as_pure()
        return None if one is None else self.count * one


Charge = GaussianCharge | PureCharge | CopiesCharge
CHARGES: tuple[type[Charge], ...] = (GaussianCharge, PureCharge, CopiesCharge)
KINDS = {charge.kind: charge for charge in CHARGES}


def charge_from_json(data: object) -> Charge:
    """The inverse of ``to_json``; unknown kinds and fields are refused."""
    if not isinstance(data, Mapping):
        raise InvalidInput(f"a charge must be a JSON object, got {type(data).__name__}")
    fields = dict(data)
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise UnknownName("kind of charge", str(kind), KINDS)
    names = [field.name for field in dataclasses.fields(KINDS[kind])]
    if set(fields) != set(names):
        raise InvalidInput(
            f"a charge of kind {kind} has the fields {', '.join(names)}, "
            f"got {', '.join(sorted(map(str, fields))) or 'none'}"
        )
    if "charge" in fields:
        fields["charge"] = charge_from_json(fields["charge"])
    return KINDS[kind](**fields)
