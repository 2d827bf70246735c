"""Statements about one person added up: several tasks, or one task several times.

What a part says is all that is used: its Gaussian curve where it has a mu, else the worst mechanism
with its epsilon and delta, which tells everything with chance delta and else answers a yes-or-no
question by randomized response. Such worst cases compose exactly, also where a later task is chosen
after looking at an earlier one (Kairouz, Oh and Viswanath, 2015; Dong, Roth and Su, 2022): squares
of mu add, log ratios of answers add, and everything stays untold only if every part keeps quiet.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import InvalidInput
from tacit.privacy.accounting import LEAST_DELTA, least, signed_delta

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from tacit.arrays import Array
    from tacit.privacy.guarantee import Guarantee

Parts = tuple[tuple[int, "Guarantee"], ...]
"""How often, and what."""

MOST_TIMES = 10**9
"""Nothing is added up more often."""

_ATOMS, _MIXED_ATOMS = 100_000, 200
"""So many values of the log ratio are told apart, without and with Gaussian noise; were there more,
answers are joined, two of epsilon into one of twice epsilon, which covers them."""

_HAIR = 1.0 + 1e-9
"""Above the rounding errors of weights and sums."""

INDEPENDENT = "the parts of the sum draw their noise independently of each other"


def added(statements: Sequence[tuple[int, Guarantee]]) -> Guarantee:
    """One statement for one person who takes part in all of these."""
    first = statements[0][1]
    for _, other in statements:
        _check(first, other)
    parts = _merged(statements)
    total = Total.of(parts)
    leaves = [part for _, part in parts]
    delta, epsilon = total.stated, total.pure
    if delta >= 1.0:
        raise InvalidInput(
            f"together these statements hold at delta {delta:.3g} only, which promises nothing; "
            "add up fewer, or state each at a smaller delta"
        )
    if total.mu or total.fails:
        epsilon = total.epsilon(delta)
    return dataclasses.replace(
        first,
        epsilon=epsilon,
        delta=type(first.delta)(delta),
        mu=total.mu if all(part.mu is not None for part in leaves) else None,
        mechanism="; ".join(
            part.mechanism + (f" ({times:,} times)" if times > 1 else "") for times, part in parts
        ),
        accountant=f"{total.count:,} statements composed from what each of them says",
        requested_epsilon=None,
        requested_delta=None,
        delta_at_requested_epsilon=None,
        participations=_all_times(parts),
        rule=None,
        noise={
            f"{number}.{name}": scale
            for number, part in enumerate(leaves, 1)
            for name, scale in part.noise.items()
        },
        assumptions=_union([*(part.assumptions for part in leaves), (INDEPENDENT,)]),
        revealed=_union([part.revealed for part in leaves]),
        also=(),
        parts=parts,
    )


def _check(a: Guarantee, b: Guarantee) -> None:
    """Refuse what has no sum."""
    if "none" in (a.model, b.model):
        raise InvalidInput(
            "one of these statements promises nothing, and then nothing is promised together"
        )
    for name in ("model", "unit", "relation"):
        x, y = getattr(a, name), getattr(b, name)
        if x != y:
            raise InvalidInput(
                f"{name} {x!r} and {name} {y!r} do not add up to one statement; state them side "
                f"by side, or add statements with the same {name}"
            )
    if a.simulated != b.simulated:
        raise InvalidInput(
            "one statement was made in simulation and the other was not; only those of real runs, "
            "or only those of simulated ones, add up"
        )


def _merged(statements: Sequence[tuple[int, Guarantee]]) -> Parts:
    """Parts of parts are parts; equal ones are counted, and the order does not matter."""
    counts: dict[Guarantee, int] = {}
    for times, statement in statements:
        for inner, part in statement.parts or ((1, statement),):
            counts[part] = counts.get(part, 0) + times * inner
    if sum(counts.values()) > MOST_TIMES:
        raise InvalidInput(f"more than {MOST_TIMES:,} statements are not added up")
    return tuple(
        (times, part) for part, times in sorted(counts.items(), key=lambda item: item[0].digest())
    )


def _all_times(parts: Parts) -> int | None:
    """Participations of one person in all parts; None if in one of them it is any number."""
    often = [(times, part.participations) for times, part in parts]
    if any(each is None for _, each in often):
        return None
    return sum(times * (each or 0) for times, each in often)


def _union(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for texts in lists for text in texts))


@dataclass(frozen=True)
class Total:
    """The privacy loss of all parts together.

    Attributes:
        mu: of the Gaussian ones.
        answers: epsilon and number of the randomized responses.
        fails: the chance that some part tells everything.
        stated: the delta at which the sum is stated: what the parts that may fail need, and the
            largest delta of the Gaussian ones.
        pure: the sum of the epsilons of the answers.
        count: how many statements these are.
    """

    mu: float
    answers: tuple[tuple[float, int], ...]
    fails: float
    stated: float
    pure: float
    count: int

    @staticmethod
    @lru_cache(maxsize=64)
    def of(parts: Parts) -> Total:
        """Sums are rational and rounded up."""
        from tacit.privacy.charges import exact, root_up, rounded_up  # needs SciPy

        squares, pure, quiet, deltas = Fraction(0), Fraction(0), 0.0, Fraction(0)
        answers: dict[float, int] = {}
        largest = 0.0
        for times, part in parts:
            if part.mu is not None:
                squares += times * Fraction(part.mu) ** 2
                largest = max(largest, part.delta)
                continue
            pure += times * exact(part.epsilon)
            deltas += times * exact(part.delta)
            quiet += times * math.log1p(-part.delta) if part.delta < 1.0 else -math.inf
            answers[part.epsilon] = answers.get(part.epsilon, 0) + times
        return Total(
            mu=root_up(squares) if squares else 0.0,
            answers=tuple(sorted(answers.items())),
            fails=min(1.0, -math.expm1(quiet) * _HAIR, rounded_up(deltas)),
            stated=rounded_up(deltas + exact(largest)),
            pure=rounded_up(pure),
            count=sum(times for times, _ in parts),
        )

    def delta(self, epsilon: float) -> float:
        """The least delta at epsilon that follows, rounded up."""
        if not self.mu and epsilon >= self.pure:
            bound = 0.0
        else:
            losses, weights = _law(self.answers, _MIXED_ATOMS if self.mu else _ATOMS)
            if self.mu:
                apart = np.array([signed_delta(self.mu, epsilon - loss) for loss in losses])
            else:
                apart = -np.expm1(np.minimum(epsilon - losses, 0.0))
            bound = min(1.0, float(weights @ apart) * (_HAIR if self.answers else 1.0))
        return min(1.0, self.fails + (1.0 - self.fails) * bound)

    def epsilon(self, delta: float) -> float:
        """The least epsilon at delta that follows; infinite where none does."""
        if self.delta(0.0) <= delta:
            return 0.0
        if delta < self.fails or (self.mu and delta <= self.fails + 2 * LEAST_DELTA):
            return math.inf
        return least(lambda epsilon: self.delta(epsilon) <= delta, max(self.pure, self.mu))

    def points(self) -> tuple[tuple[float, float], ...]:
        """(epsilon, delta) along the curve, each of which holds."""
        end = self.pure + self.mu * (self.mu / 2 + 8.0)
        return tuple((float(e), self.delta(float(e))) for e in np.linspace(0.0, end, 65))


@lru_cache(maxsize=64)
def _law(answers: tuple[tuple[float, int], ...], most: int) -> tuple[Array, Array]:
    """Values of the log ratio of all answers together, and their chances."""
    from scipy.stats import binom

    groups = list(answers)
    while math.prod(times + 1 for _, times in groups) > most:
        groups.sort(key=lambda group: group[1])
        epsilon, times = groups.pop()
        if times > 1:
            groups.append((2 * epsilon, (times + 1) // 2))
        else:
            groups[-1] = (groups[-1][0] + epsilon, 1)
    losses, weights = np.zeros(1), np.ones(1)
    for epsilon, times in groups:
        true = np.arange(times + 1)
        chance = binom.pmf(true, times, 1.0 / (1.0 + math.exp(-epsilon)))
        losses = np.add.outer(losses, (2.0 * true - times) * epsilon).ravel()
        weights = np.outer(weights, chance).ravel()
    return losses, weights


def dp_event(statement: Guarantee) -> DpEvent:
    """The statement as an event of dp-accounting; see :meth:`Guarantee.to_dp_event`."""
    import dp_accounting as dp

    if statement.model == "none":
        return dp.NonPrivateDpEvent()
    parts = statement.parts or ((1, statement),)
    gaussian = all(part.mu is not None for _, part in parts)
    events: list[Any] = []
    for times, part in parts:
        if part.mu == 0.0 or (part.epsilon, part.delta) == (0.0, 0.0):
            continue
        if part.mu is not None:
            one = dp.GaussianDpEvent((1.0 if gaussian else 2.0) / part.mu)
            events.append(one if times == 1 else dp.SelfComposedDpEvent(one, times))
        elif part.delta == 0.0:
            # its accountant counts a self-composed randomized response once only
            share = 2.0 / (1.0 + math.exp(min(part.epsilon, 700.0)))
            events += [dp.RandomizedResponseDpEvent(share, 2)] * times
        else:
            raise InvalidInput(
                f"dp-accounting has no event for ({part.epsilon:.6g}, {part.delta:.3g}) of unknown "
                "noise; use delta(epsilon) and compose, or its from_privacy_parameters"
            )
    if not events:
        return dp.NoOpDpEvent()
    return events[0] if len(events) == 1 else dp.ComposedDpEvent(events)
