"""What one user pays, as records that keep their meaning.

A charge says how far apart the output laws on two neighbouring datasets can be, for every release
it stands for. Charges are stored for years, so these rules hold:

- a kind is never removed and a field never changes its meaning; something new gets a new kind;
- reading refuses unknown kinds, unknown fields and missing fields, it never guesses;
- a number means the decimal it is written as: ten charges of 0.1 are exactly 1. Sums are made in
  rational arithmetic, and conversions to floating point round up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from scipy.special import ndtri, ndtri_exp

from tacit.errors import InvalidInput, UnknownName
from tacit.privacy.decimals import exact, rounded_up
from tacit.validate import integer, number

LARGEST = 1e9
"""No charge above this: nothing that large protects anybody."""
Point = tuple[Fraction, Fraction]
_HALF_PI = Fraction(15708, 10000)  # pi/2, rounded up
_HAIR = 1 + Fraction(1, 10**9)  # what special functions may be off by, with room to spare


@dataclass(frozen=True)
class GaussianCharge:
    """Outputs as far apart as N(0, 1) and N(mu, 1): L2 sensitivity over noise std, squared."""

    mu_squared: float
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        _set(self, "mu_squared")

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

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"kind": self.kind, "mu_squared": self.mu_squared}


@dataclass(frozen=True)
class PureCharge:
    """Any mechanism that is purely epsilon-DP: Laplace, randomized response, a sampled answer."""

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        _set(self, "epsilon")

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

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"kind": self.kind, "epsilon": self.epsilon}


@dataclass(frozen=True)
class FiniteCharge:
    """A mechanism with finitely many outputs: the logs of both laws of its worst pair, by output.

    Both laws are normalised, and every neighbouring pair must be covered by (p, q) or by (q, p).
    """

    log_p: tuple[float, ...]
    log_q: tuple[float, ...]
    kind: ClassVar[str] = "finite"

    def __post_init__(self) -> None:
        for name in ("log_p", "log_q"):
            object.__setattr__(self, name, _log_law(getattr(self, name), name))
        if len(self.log_p) != len(self.log_q):
            raise InvalidInput(
                f"log_p has {len(self.log_p)} outputs and log_q has {len(self.log_q)}, but both "
                "laws must list the same outputs"
            )
        if not any(math.isfinite(p + q) for p, q in zip(self.log_p, self.log_q, strict=True)):
            raise InvalidInput("the two laws share no output, so nothing at all is protected")

    @cached_property
    def corners(self) -> tuple[Point, ...]:
        """Corners of a trade-off curve below that of (p, q) and that of (q, p), exact.

        From (0, 1) to (1, 0): for a false alarm rate x, the least miss rate y of any test. The
        lower convex hull of both directions is the curve of a pair that covers both.
        """
        p, q = (_normalised(log) for log in (self.log_p, self.log_q))
        points = {(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))}
        for null, other in ((p, q), (q, p)):
            outputs = [pair for pair in zip(null, other, strict=True) if any(pair)]
            outputs.sort(key=lambda pair: pair[1] / sum(pair), reverse=True)
            x, y = Fraction(0), Fraction(1)
            for alarm, hit in outputs:
                x, y = x + alarm, y - hit
                points.add((x, y))
        hull: list[Point] = []
        for point in sorted(points):
            while len(hull) > 1 and not _turns_left(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
        if hull[0][1] < 1:
            hull.insert(0, (Fraction(0), Fraction(1)))
        return tuple(hull)

    def as_gaussian(self) -> Fraction | None:
        """The mu^2 that covers this charge: the largest -Phi^-1(x) - Phi^-1(y) over corners."""
        pure = self.as_pure()
        if pure is None:
            return None
        simple = _HALF_PI * pure**2
        if pure < Fraction(1, 100):
            return simple
        mu = max(-_quantile(x) - _quantile(y) for x, y in self.corners[1:-1])
        return min(simple, (Fraction(mu) * _HAIR) ** 2)

    def as_pure(self) -> Fraction | None:
        """The largest log ratio of the two laws, None where an output has probability 0 in one."""
        first = self.corners[1]
        if first[0] == 0:
            return None
        excess = float((1 - first[1]) / first[0] - 1)
        return exact(math.log1p(excess) * (1 + 1e-14))

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; the log of 0 is null."""
        p, q = ([x if math.isfinite(x) else None for x in log] for log in (self.log_p, self.log_q))
        return {"kind": self.kind, "log_p": p, "log_q": q}


@dataclass(frozen=True)
class CopiesCharge:
    """The same charge several times over, each time with fresh independent noise.

    This is what m participations with a report of their own cost. Where several contributions of
    one person meet under one noise draw, use :func:`grouped` instead: it costs more.
    """

    charge: GaussianCharge | PureCharge | FiniteCharge
    count: int
    kind: ClassVar[str] = "copies"

    def __post_init__(self) -> None:
        if not isinstance(self.charge, GaussianCharge | PureCharge | FiniteCharge):
            raise InvalidInput(f"charge = {self.charge!r}, but copies are of one simple charge")
        object.__setattr__(self, "count", integer(self.count, "count", low=1, high=10**12))

    def as_gaussian(self) -> Fraction | None:
        """The mu^2 that covers all copies."""
        one = self.charge.as_gaussian()
        return None if one is None else self.count * one

    def as_pure(self) -> Fraction | None:
        """The pure epsilon that covers all copies."""
        one = self.charge.as_pure()
        return None if one is None else self.count * one

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"kind": self.kind, "charge": self.charge.to_json(), "count": self.count}


Charge = GaussianCharge | PureCharge | FiniteCharge | CopiesCharge


def charge_from_json(data: object) -> Charge:
    """The inverse of ``to_json``; unknown kinds and fields are refused."""
    if not isinstance(data, Mapping):
        raise InvalidInput(f"a charge must be a JSON object, got {type(data).__name__}")
    fields = dict(data)
    kind = fields.pop("kind", None)
    names = {
        GaussianCharge.kind: ("mu_squared",),
        PureCharge.kind: ("epsilon",),
        FiniteCharge.kind: ("log_p", "log_q"),
        CopiesCharge.kind: ("charge", "count"),
    }
    if not isinstance(kind, str) or kind not in names:
        raise UnknownName("kind of charge", str(kind), names)
    if set(fields) != set(names[kind]):
        raise InvalidInput(
            f"a charge of kind {kind} has the fields {', '.join(names[kind])}, "
            f"got {', '.join(sorted(map(str, fields))) or 'none'}"
        )
    match kind:
        case GaussianCharge.kind:
            return GaussianCharge(fields["mu_squared"])
        case PureCharge.kind:
            return PureCharge(fields["epsilon"])
        case FiniteCharge.kind:
            return FiniteCharge(fields["log_p"], fields["log_q"])
    return CopiesCharge(charge_from_json(fields["charge"]), fields["count"])  # type: ignore[arg-type]


def grouped(charge: Charge, people: int) -> Charge:
    """What ``people`` neighbours in a row cost: m contributions of one person under one noise draw.

    Distances add up along a chain of neighbours, so mu and epsilon grow m-fold and mu^2 grows
    m^2-fold: more than the m copies that fresh noise for every participation would cost.
    """
    m = integer(people, "people", low=1)
    match charge:
        case CopiesCharge():
            inner = grouped(charge.charge, m)
            return CopiesCharge(inner, charge.count)  # type: ignore[arg-type]
        case GaussianCharge():
            return GaussianCharge(rounded_up(m**2 * exact(charge.mu_squared)))
    pure = charge.as_pure()
    if pure is None:
        raise InvalidInput(
            "this finite charge has outputs that only one of its laws can produce, so a group of "
            f"{m} has no finite epsilon; charge the group's own worst pair"
        )
    return PureCharge(rounded_up(m * pure))


def _set(charge: Any, name: str) -> None:
    value = number(getattr(charge, name), name, low=0.0, high=LARGEST)
    object.__setattr__(charge, name, value + 0.0)  # -0.0 becomes 0.0


def _log_law(values: object, name: str) -> tuple[float, ...]:
    """Checked logs of a probability law; None stands for the log of 0."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name} must list the logs of probabilities, got {values!r}")
    logs = []
    for i, value in enumerate(values):
        if value is None or (isinstance(value, float) and value == -math.inf):
            logs.append(-math.inf)
        else:
            logs.append(number(value, f"{name}[{i}]", low=-700.0, high=0.0) + 0.0)
    mass = math.fsum(map(math.exp, logs))
    if abs(mass - 1.0) > 1e-10:
        raise InvalidInput(f"the probabilities of {name} sum to {mass:.12g}, but must sum to 1")
    return tuple(logs)


def _normalised(logs: tuple[float, ...]) -> list[Fraction]:
    masses = [Fraction(math.exp(x)) for x in logs]
    mass = sum(masses)
    return [x / mass for x in masses]


def _turns_left(a: Point, b: Point, c: Point) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0])


def _quantile(x: Fraction) -> float:
    """The standard normal quantile, precise in both tails."""
    return float(ndtri(float(x))) if 2 * x <= 1 else -float(ndtri(float(1 - x)))
