"""What one user pays, as records that keep their meaning, and what many of them add up to.

A charge says how far apart the output laws on two neighbouring datasets can be, for every release
it stands for. Charges are stored for years, so these rules hold:

- a kind is never removed and a field never changes its meaning; something new gets a new kind;
- reading refuses unknown kinds, unknown fields and missing fields, it never guesses;
- a number means the decimal it is written as: ten charges of 0.1 are exactly 1. Sums are made in
  rational arithmetic, and conversions to floating point round up.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from scipy.special import ndtri, ndtri_exp

from tacit.errors import InvalidInput, UnknownName
from tacit.privacy import accounting
from tacit.validate import integer, number

LARGEST = 1e9
"""No charge above this: nothing that large protects anybody."""
Point = tuple[Fraction, Fraction]
_HALF_PI = Fraction(15708, 10000)  # pi/2, rounded up
_HAIR = 1 + Fraction(1, 10**9)  # what special functions may be off by, with room to spare
_LOUD = 1e4  # a mu beyond which nothing is protected, and formulas are not trusted
_POINTS = 1_000_000  # of the grid on which privacy losses are composed
_MANY = 100_000  # charges that are composed on it
_FFT = 2e-15  # what composing one more charge there may be off by, about fifty times what is seen


def exact(x: float) -> Fraction:
    """The decimal number a float is written as."""
    return Fraction(repr(x))


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


def mixed_delta(mu: float, pure: float, epsilon: float) -> float:
    """Exact delta at epsilon of a mu-Gaussian mechanism together with a pure one.

    With s = 1 / (1 + e^-pure): s * delta_mu(epsilon - pure) + (1 - s) * delta_mu(epsilon + pure).
    """
    if math.isinf(pure):
        return 1.0
    share = 1.0 / (1.0 + math.exp(-pure))
    return share * _delta(mu, epsilon - pure) + (1.0 - share) * _delta(mu, epsilon + pure)


@dataclass(frozen=True)
class Loss:
    """What a fixed list of charges adds up to, in either direction, never optimistic.

    The charges may be used in any order, and the data of one release may depend on earlier ones,
    but the list itself is fixed in advance; a list chosen along the way is a filter's business.

    Attributes:
        mu_squared: sum over the Gaussian charges.
        others: the other charges, each with its number of copies.
    """

    mu_squared: Fraction
    others: tuple[tuple[PureCharge | FiniteCharge, int], ...]

    def delta(self, epsilon: float) -> float:
        """The least delta known to hold at epsilon."""
        epsilon = number(epsilon, "epsilon", low=0.0)
        deltas = [mixed_delta(self._mu, self._pure, epsilon)]
        if not self._one_term and self._mu_of_all is not None:
            deltas.append(_delta(self._mu_of_all, epsilon))
        if not self._one_term and self._pld is not None:
            composed = float(self._pld.get_delta_for_epsilon(epsilon))
            deltas.append(composed + _FFT * (1 + self._count))
        return min(1.0, *deltas)

    def epsilon(self, delta: float) -> float:
        """The least epsilon known to hold at delta; infinite where there is none."""
        delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
        if self._mu > _LOUD:
            return math.inf
        if not self.others:
            return accounting.gaussian_epsilon(self._mu, delta)
        if delta == 0.0:
            return self._pure if self.mu_squared == 0 else math.inf
        high = self._pure + accounting.gaussian_epsilon(self._mu, delta)
        if math.isinf(high) and self._pld is not None:
            high = float(self._pld.get_epsilon_for_delta(delta))
        if math.isinf(high) or self.delta(0.0) <= delta:
            return high if math.isinf(high) else 0.0
        while self.delta(high) > delta:  # a search may stop a hair short
            high *= 2
            if math.isinf(high):
                return high
        low = 0.0
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    @cached_property
    def _mu(self) -> float:
        return root_up(self.mu_squared)

    @cached_property
    def _pure(self) -> float:
        """Sum of the pure epsilons of everything that is not Gaussian."""
        total = Fraction(0)
        for charge, count in self.others:
            pure = charge.as_pure()
            if pure is None:
                return math.inf
            total += count * pure
        return rounded_up(total)

    @cached_property
    def _one_term(self) -> bool:
        """Whether one pure charge is all there is beside the Gaussian: the closed form is exact."""
        pure = all(isinstance(charge, PureCharge) for charge, _ in self.others)
        return pure and self._count <= 1

    @cached_property
    def _count(self) -> int:
        return sum(count for _, count in self.others)

    @cached_property
    def _mu_of_all(self) -> float | None:
        """Everything covered by one Gaussian."""
        total = self.mu_squared
        for charge, count in self.others:
            one = charge.as_gaussian()
            if one is None:
                return None
            total += count * one
        return root_up(total)

    @cached_property
    def _pld(self) -> Any:
        """Distribution of the privacy loss of everything together, rounded up to a grid.

        None for very many or very large charges: the grid would be too coarse, or it would take
        long, and convolutions in floating point drift, in either direction, with their number.
        """
        if self._count > _MANY:
            return None
        from dp_accounting.pld import privacy_loss_distribution as pld

        losses = [_log_pmfs(charge) for charge, _ in self.others]
        sizes = [max(_finite_losses(p, q), default=0.0) for p, q in losses]
        counts = [count for _, count in self.others]
        spans = [
            min(n * x, n * x**2 + 20 * math.sqrt(n) * x) for n, x in zip(counts, sizes, strict=True)
        ]
        finest = (self._mu**2 + 20 * self._mu + sum(spans)) / _POINTS
        if finest > 1.0:
            return None
        least = min((x for x in sizes if 0 < x >= finest), default=max(finest, 1e-4))
        step = max(finest, min(1e-4, least))
        points = max(1, math.floor(least / step))
        step = least / points
        while least / step > points:  # the least loss must fall on the grid, from above
            step = math.nextafter(step, math.inf)
        whole = None
        if self.mu_squared:
            whole = pld.from_gaussian_mechanism(1.0 / self._mu, value_discretization_interval=step)
        for (p, q), count in zip(losses, counts, strict=True):
            part = pld.from_two_probability_mass_functions(q, p, value_discretization_interval=step)
            part = part.self_compose(count) if count > 1 else part
            whole = part if whole is None else whole.compose(part)
        return whole


def total(charges: Iterable[Charge]) -> Loss:
    """What one user is charged, all together."""
    mu_squared = Fraction(0)
    others: Counter[PureCharge | FiniteCharge] = Counter()
    for charge in charges:
        copies = charge if isinstance(charge, CopiesCharge) else CopiesCharge(charge, 1)
        if isinstance(copies.charge, GaussianCharge):
            mu_squared += copies.count * exact(copies.charge.mu_squared)
        elif copies.charge.as_pure() != 0:
            others[copies.charge] += copies.count
    return Loss(mu_squared, tuple(others.items()))


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


def _delta(mu: float, epsilon: float) -> float:
    """The exact Gaussian delta, also at negative epsilon: 1 - e^eps + e^eps delta(-eps).

    Where the formula would underflow or cancel, a bound that is as good as exact.
    """
    if epsilon < 0:
        return -math.expm1(epsilon) + math.exp(epsilon) * _delta(mu, -epsilon)
    if mu > _LOUD:
        return 1.0
    if mu > 0.0 and epsilon / mu - mu / 2 > 38.0:  # delta < Phi(mu/2 - eps/mu) < 1e-300
        return 1e-300
    return accounting.gaussian_delta(mu, epsilon)


def _log_pmfs(charge: PureCharge | FiniteCharge) -> tuple[dict[int, float], dict[int, float]]:
    """A pair of laws that covers the charge in both directions."""
    if isinstance(charge, PureCharge):
        likely = -math.log1p(math.exp(-charge.epsilon))
        return {0: likely, 1: likely - charge.epsilon}, {0: likely - charge.epsilon, 1: likely}
    steps = list(itertools.pairwise(charge.corners))
    return (
        {i: _log(b[0] - a[0]) for i, (a, b) in enumerate(steps)},
        {i: _log(a[1] - b[1]) for i, (a, b) in enumerate(steps)},
    )


def _finite_losses(log_p: dict[int, float], log_q: dict[int, float]) -> list[float]:
    losses = [abs(log_p[i] - log_q[i]) for i in log_p]
    return [loss for loss in losses if math.isfinite(loss)]


def _log(x: Fraction) -> float:
    return math.log(x) if x else -math.inf
