"""The tables of a report, computed from arms, with what theorems say beside them.

Arms on one problem with one K are compared with each other; nothing is averaged over problems.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tacit.bounds import RegretBound, Theorem, bound_of, theorem
from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_epsilon
from tacit.privacy.guarantee import Guarantee
from tacit.util.intervals import Interval, mean_interval
from tacit_lab.report import statistics
from tacit_lab.report.results import Arm, paired
from tacit_lab.report.statistics import PairedComparison, compare, holm, price

AIM = 0.5
"""Forecasts count users until regret is this share of what the baseline policy would lose."""

T = TypeVar("T")


def grouped(arms: Iterable[Arm], key: Callable[[Arm], T]) -> dict[T, list[Arm]]:
    """Arms by a key, in the order of their first appearance."""
    groups: dict[T, list[Arm]] = {}
    for arm in arms:
        groups.setdefault(key(arm), []).append(arm)
    return groups


def by_level(arms: Sequence[Arm]) -> dict[str, list[Arm]]:
    """Private arms by learner, each with its epsilons increasing."""
    groups = grouped((arm for arm in arms if arm.private), lambda arm: arm.learner)
    return {name: sorted(same, key=lambda arm: arm.level) for name, same in groups.items()}


@dataclass(frozen=True)
class PriceOfPrivacy:
    """What privacy costs: regret of a private arm over that of a non-private one."""

    arm: Arm
    against: Arm
    counterpart: bool
    ratio: Interval | None
    pairs: int


def prices(arms: Sequence[Arm]) -> list[PriceOfPrivacy]:
    """Each private arm against its non-private counterpart, or the best non-private arm there is.

    Arms are on one problem and have one K.
    """
    free = [arm for arm in arms if not arm.private and not arm.result.reference]
    rows = []
    for arm in arms:
        if not arm.private or not free:
            continue
        wanted = theorem(arm.result.agent).counterpart
        same = [other for other in free if other.result.agent["name"] == wanted]
        against = min(same or free, key=lambda other: float(other.final.mean()))
        mine, theirs = paired(arm, against)
        ratio = price(mine, theirs) if len(mine) else None
        rows.append(PriceOfPrivacy(arm, against, bool(same), ratio, len(mine)))
    return rows


@dataclass(frozen=True)
class BreakEven:
    """From which K on an arm beats the baseline policy."""

    arm: Arm
    answer: statistics.FirstWin
    several: bool


def break_even(arms: Sequence[Arm]) -> list[BreakEven]:
    """For each learner and epsilon on one problem; over its runs of several K if there are some.

    A learner may plan for its K, so that runs of different K are different algorithms: then their
    ends are compared, otherwise the checkpoints of the one curve.
    """
    rows = []
    for same in grouped(arms, lambda arm: arm.label).values():
        lengths = sorted(same, key=lambda arm: arm.users)
        last = lengths[-1]
        if last.result.reference or last.result.gap <= 0:
            continue
        episodes, samples = last.result.episodes, list(last.result.regret.T)
        if len(lengths) > 1:
            episodes = np.array([arm.result.completed for arm in lengths])
            samples = [arm.final for arm in lengths]
        answer = statistics.smallest_winning(episodes, samples, last.result.gap)
        rows.append(BreakEven(last, answer, len(lengths) > 1))
    return rows


@dataclass(frozen=True)
class Exponent:
    """A fitted exponent beside the theorem's."""

    name: str
    fit: statistics.Slope | None
    stated: float | None
    bound: Theorem
    points: str
    xs: Sequence[float]
    means: Sequence[Interval]
    stated_regret: RegretBound | None = None


def in_epsilon(arms: Sequence[Arm]) -> list[Exponent]:
    """Final regret against epsilon, learner by learner; arms on one problem with one K."""
    rows = []
    for name, ordered in by_level(arms).items():
        if len(ordered) > 1:
            xs, bound = [arm.level for arm in ordered], theorem(ordered[0].result.agent)
            means, points = [arm.interval for arm in ordered], f"{len(ordered)} epsilons"
            rows.append(Exponent(name, _over(ordered, xs), bound.privacy, bound, points, xs, means))
    return rows


def in_users(arms: Sequence[Arm]) -> list[Exponent]:
    """Regret against K on one problem: over runs of several K, or along the curve of one."""
    rows = []
    for name, same in grouped(
        (a for a in arms if not a.result.reference), lambda a: a.label
    ).items():
        ordered = sorted(same, key=lambda arm: arm.users)
        bound, xs = theorem(ordered[0].result.agent), [float(arm.users) for arm in ordered]
        if len(ordered) > 1:
            fit, points = _over(ordered, xs), f"runs of {len(ordered)} lengths"
        else:
            fit = statistics.growth(ordered[0].result.regret, ordered[0].result.episodes)
            points = "the last decade of one curve"
        means = [arm.interval for arm in ordered]
        number = bound_of(ordered[-1].result)
        rows.append(Exponent(name, fit, bound.users, bound, points, xs, means, number))
    return rows


def _over(arms: Sequence[Arm], xs: Sequence[float]) -> statistics.Slope | None:
    """A slope over arms, on the seeds that all of them have."""
    samples = paired(*arms)
    return statistics.slope(np.array(xs), samples.T.copy()) if samples.size else None


@dataclass(frozen=True)
class PairwiseTest:
    """Two arms on the same users; ``adjusted`` is p corrected for all comparisons of the table."""

    first: Arm
    second: Arm
    result: PairedComparison
    adjusted: float

    @property
    def verdict(self) -> str:
        """What is shown at 5%, over all comparisons of the table together."""
        if self.adjusted <= 0.05:
            better = self.first if self.result.difference.value < 0 else self.second
            return f"{better.label} is better"
        if self.result.least_p > 0.05:
            return f"not decided: {self.result.pairs} seeds are too few for any verdict"
        return "not decided"


def pairwise_tests(arms: Sequence[Arm]) -> list[PairwiseTest]:
    """Neighbouring epsilons of each learner, and the best learner at each; one problem, one K.

    All of them are corrected together (Holm), and as the same runs say which learner is best, with
    all pairs of learners at each epsilon, though only those of the best are given.
    """
    couples = [
        (a, b, True) for same in by_level(arms).values() for a, b in itertools.pairwise(same)
    ]
    for equal in grouped((arm for arm in arms if arm.private), lambda arm: arm.epsilon).values():
        ranked = sorted(equal, key=lambda arm: float(arm.final.mean()))
        couples += [(a, b, a is ranked[0]) for a, b in itertools.combinations(ranked, 2)]
    couples = [couple for couple in couples if set(couple[0].pairs) & set(couple[1].pairs)]
    results = [compare(*paired(a, b)) for a, b, _ in couples]
    adjusted = holm([comparison.p for comparison in results])
    rows = zip(couples, results, adjusted, strict=True)
    return [PairwiseTest(a, b, result, p) for (a, b, shown), result, p in rows if shown]


@dataclass(frozen=True)
class PerPerson:
    """One way of counting people: what a participation and what a person loses and pays.

    Attributes:
        arm: who learned, with how people came back.
        people: how many different ones took part.
        each: regret per participation.
        late: the same over the last tenth.
        person: regret per person.
        times: how often a person takes part, in ``paid``.
        paid: the epsilon that such a person truly pays, in a period where there is one, at the
            stated delta; None where it is not known.
    """

    arm: Arm
    people: int
    each: Interval
    late: Interval
    person: Interval
    times: int
    paid: float | None


def per_person(arms: Sequence[Arm]) -> list[PerPerson]:
    """Per participation against per person; arms on one problem with one K, of several rules.

    An arm in which everybody takes part once states its guarantee per participation. Beside arms
    whose people come back it is asked what somebody pays who comes as often as they do there.
    """
    back = [arm for arm in arms if arm.rule is not None]
    if not back:
        return []
    times = max(_times(arm) for arm in back)
    rows = []
    for arm in arms:
        who = arm.result.returning
        rows.append(
            PerPerson(
                arm,
                arm.result.completed if who is None else who.people,
                mean_interval(arm.final / arm.result.completed, least=0.0),
                mean_interval(arm.result.late_regret()[1], least=0.0),
                mean_interval(arm.result.regret_per_person(), least=0.0),
                times if arm.rule is None else _times(arm),
                paid(arm.result.guarantee, times if arm.rule is None else 1),
            )
        )
    return rows


def _times(arm: Arm) -> int:
    """How often a person of an arm takes part, at most; where that is not bounded, on average."""
    assert arm.rule is not None and arm.result.returning is not None
    return arm.rule.times or -(-arm.result.completed // arm.result.returning.people)


def paid(guarantee: Guarantee, times: int) -> float | None:
    """Epsilon of a person who takes part that often where a guarantee covers one participation.

    Reports of a device have noise of their own and compose. All participations go through the same
    noise of a curator, so there they add up: a group. Of other mechanisms it is not worked out.
    """
    if guarantee.model == "none":
        return None
    if times == 1:
        return guarantee.epsilon
    if guarantee.model == "local":
        return guarantee.compose(times).epsilon
    if guarantee.model == "joint" and guarantee.mu is not None:
        return gaussian_epsilon(times * guarantee.mu, guarantee.delta)
    return None


@dataclass(frozen=True)
class UsersNeeded:
    """Users until regret is AIM of the baseline's, of one learner.

    Attributes:
        name: the learner.
        measured: by epsilon, how many (None where some run did not get there), and by how many runs
            it was reached.
        forecasts: at other epsilons, and where it was not measured.
        why_not: why nothing can be forecast.
    """

    name: str
    measured: Sequence[tuple[float, Interval | None, int]]
    forecasts: tuple[statistics.UsersAt, ...] = ()
    why_not: str = ""


def users_needed(arms: Sequence[Arm]) -> list[UsersNeeded]:
    """At each epsilon and at others, learner by learner; one problem, one K."""
    return [
        _users_needed(name, same)
        for name, same in by_level(arms).items()
        if same[0].result.gap > 0 and len(same) > 1 and len({arm.pairs for arm in same}) == 1
    ]


def _users_needed(name: str, arms: Sequence[Arm]) -> UsersNeeded:
    needed, measured, asked = {}, [], []
    for arm in arms:
        result = arm.result
        runs = statistics.first_reaching(result.regret, result.episodes, AIM * result.gap)
        reached = np.isfinite(runs)
        needed[arm.level] = runs
        everywhere = mean_interval(np.log(runs)).exponential() if reached.all() else None
        measured.append((arm.level, everywhere, int(reached.sum())))
        asked += [] if reached.all() else [arm.level]
    try:
        epsilons = sorted({*asked, min(needed) / 2})
        forecasts = tuple(statistics.forecast(needed, epsilon) for epsilon in epsilons)
    except InvalidInput as error:
        return UsersNeeded(name, measured, why_not=str(error))
    return UsersNeeded(name, measured, forecasts)
