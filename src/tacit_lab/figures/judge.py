"""Comparing curves with an honest "not decided": nothing is said within the error of a mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.util.intervals import Interval, mean_interval
from tacit_lab.figures.figure import LEAST, Claim, Evidence, Judge, Runs

ERRORS = 2.0
"""A number closer to its limit than this many standard errors decides nothing."""


def mean(samples: Array) -> Interval:
    """The mean of independent samples, give or take two standard errors."""
    n, value = len(samples), float(samples.mean())
    half = ERRORS * float(samples.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    return Interval(value, value - half, value + half)


def jackknife(samples: Sequence[Array], statistic: Callable[[Sequence[Array]], float]) -> Interval:
    """A function of samples, give or take two standard errors.

    Args:
        samples: one or more arrays [n, ...] over the same n problems (or runs), paired.
        statistic: smooth in their means; computed with one problem left out at a time.
    """
    n, value = len(samples[0]), statistic(samples)
    if n < 2:
        return Interval(value, -np.inf, np.inf)
    without = [statistic([np.delete(one, i, axis=0) for one in samples]) for i in range(n)]
    half = ERRORS * float(np.sqrt((n - 1) * np.var(without)))
    return Interval(value, value - half, value + half)


def exponent(episodes: IntArray, regret: Array) -> float:
    """Exponent x of regret ~ k^x over the last decade."""
    first = int(np.searchsorted(episodes, 0.1 * episodes[-1]))
    if first + 1 >= len(episodes):
        return float("nan")
    rise = max(regret[-1], LEAST) / max(regret[first], LEAST)
    return float(np.log(rise) / np.log(episodes[-1] / episodes[first]))


def growth(runs: Runs) -> Interval:
    """Exponent x of regret ~ k^x over the last decade, give or take two standard errors."""
    return jackknife([runs.samples], lambda left: exponent(runs.episodes, left[0].mean(axis=0)))


def bend(first: Runs, second: Runs) -> Interval:
    """How much larger the exponent of ``first`` is than that of ``second``."""

    def difference(samples: Sequence[Array]) -> float:
        one, two = (exponent(first.episodes, each.mean(axis=0)) for each in samples)
        return one - two

    return jackknife([first.samples, second.samples], difference)


def second_half(runs: Runs) -> Interval:
    """Regret of the second half of the users over that of the first."""
    middle = int(np.searchsorted(runs.episodes, runs.curve.episodes // 2, side="right")) - 1

    def share(samples: Sequence[Array]) -> float:
        regret = samples[0].mean(axis=0)
        return float((regret[-1] - regret[middle]) / max(regret[middle], LEAST))

    return jackknife([runs.samples], share)


def ratio(first: Runs, second: Runs) -> Interval:
    """Final regret of ``first`` over ``second``: geometric mean, paired over their problems."""
    logs = np.log(np.maximum(first.final, LEAST) / np.maximum(second.final, LEAST))
    return mean_interval(logs).exponential()


def ratios(evidence: Evidence, pairs: Iterable[tuple[str, str]]) -> list[Interval]:
    """The same for curves by their keys."""
    return [ratio(evidence.curve(first), evidence.curve(second)) for first, second in pairs]


Verdict = bool | None
"""None: not decided."""


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """All of them: one failure fails, one open question leaves it open."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def judged(
    claim: str,
    expected: str,
    measured: Mapping[str, float | Interval],
    holds: Verdict | Sequence[Verdict] | Callable[[Any], Verdict],
    failed: str,
    undecided: str = "",
) -> Claim:
    """A claim with its verdict, and why it does not plainly hold where it does not.

    Args:
        claim: the statement.
        expected: what the measurement must show.
        measured: numbers; of an interval its value is shown.
        holds: the verdict, or several that must all be true, or what each number must pass.
        failed: why, where it does not hold.
        undecided: why, where nothing is decided; by default the error of the means.
    """
    if callable(holds):
        holds = [holds(number) for number in measured.values()]
    verdict = together(holds) if isinstance(holds, Sequence) else holds
    open_because = undecided or (
        "not decided at this size: the limit is within the error of the means"
    )
    why = {True: "", False: failed, None: open_because}[verdict]
    numbers = {k: x.value if isinstance(x, Interval) else x for k, x in measured.items()}
    return Claim(claim, expected, numbers, verdict, why)


P = ParamSpec("P")
N = TypeVar("N", bound=float | Interval)


def judging(claim: Callable[Concatenate[Evidence, P], Claim]) -> Callable[P, Judge]:
    """Makes judges of a claim with parameters: ``claim(evidence, x)`` becomes ``claim(x)``."""

    @wraps(claim)
    def judge_of(*args: P.args, **kwargs: P.kwargs) -> Judge:
        return lambda evidence: claim(evidence, *args, **kwargs)

    return judge_of


@judging
def every(
    evidence: Evidence,
    claim: str,
    expected: str,
    measure: Callable[[Evidence], Mapping[str, N]],
    passes: Callable[[N], Verdict],
    failed: str,
    undecided: str = "",
) -> Claim:
    """Each of some numbers passes; what they are follows from the evidence."""
    return judged(claim, expected, measure(evidence), passes, failed, undecided)


def lower(
    claim: str,
    expected: str,
    pairs: Mapping[str, tuple[str, str]],
    failed: str,
    factor: float = 1.0,
) -> Judge:
    """Final regret of one curve over another's is below a factor, paired over problems.

    Args:
        claim: the statement.
        expected: what the measurement must show.
        pairs: keys of both curves, by what their ratio is called.
        failed: why, where some ratio is not below the factor.
        factor: that every ratio must be below.
    """

    def measure(evidence: Evidence) -> Mapping[str, Interval]:
        return dict(zip(pairs, ratios(evidence, pairs.values()), strict=True))

    return every(claim, expected, measure, lambda r: r.below(factor), failed)


@judging
def in_order(
    evidence: Evidence,
    claim: str,
    expected: str,
    shown: Mapping[str, str],
    pairs: Iterable[tuple[str, str]],
    failed: str,
    factor: float = 1.0,
) -> Claim:
    """The same, beside the mean final regrets themselves.

    Args:
        evidence: all curves.
        claim: the statement.
        expected: what the measurement must show.
        shown: keys of curves, by what their regret is called.
        pairs: keys of curves, the first of which has less regret.
        failed: why, where some ratio is not below the factor.
        factor: that every ratio must be below.
    """
    finals = {name: float(evidence.curve(key).final.mean()) for name, key in shown.items()}
    below = [r.below(factor) for r in ratios(evidence, pairs)]
    return judged(claim, expected, finals, below, failed)


def smaller(first: str, second: str, claim: str) -> Judge:
    """The final regret of one curve is below that of another, paired over problems."""
    return in_order(
        claim,
        f"regret of {first} below that of {second}, paired over seeds",
        {first: first, second: second},
        [(first, second)],
        "it is the other way round",
    )


def not_learning(keys: Sequence[str], claim: str) -> Judge:
    """The second half of the users pays at least 0.8 of what the first half paid."""
    return every(
        claim,
        "second half at least 0.8 of the first, at every epsilon",
        lambda evidence: {
            f"second half / first half, {key}": second_half(evidence.curve(key)) for key in keys
        },
        lambda half: half.above(0.8),
        "some curve bends",
    )


@judging
def below_bar(
    evidence: Evidence,
    key: str,
    bar: float,
    at: int,
    claim: str,
    unit: Literal["regret", "regret per episode"] = "regret",
    failed: str = "it is above",
) -> Claim:
    """The mean is below a bar that was set for ``at`` episodes, by two standard errors."""
    runs = evidence.curve(key)
    K = runs.curve.episodes
    reached = mean(runs.runs[:, -1] / (1.0 if unit == "regret" else K))
    error = (reached.high - reached.value) / ERRORS
    return judged(
        claim,
        f"{unit} after {at:,} episodes below {bar:g}, by two standard errors",
        {unit: reached, "standard error": error, "episodes": float(K)},
        reached.below(bar) if at == K else None,
        failed,
        "" if at == K else f"the bar is for {at:,} episodes, this run has {K:,}",
    )


rate_below_bar = partial(below_bar, unit="regret per episode")
"""The same for regret per episode."""
