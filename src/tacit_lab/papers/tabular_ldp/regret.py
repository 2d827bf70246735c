"""Figures 1 and 7: LDP-OBI with Laplace noise, LDP-PSRL and UCB-VI, and LDP-PSRL alone.

Figures 2, 4, 5 and 6: LDP-OBI with the four randomizers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from tacit.arrays import Array
from tacit.privacy.bounded import paper_radius, tabular_delta
from tacit_lab.figures import draw, judge
from tacit_lab.figures.figure import LEAST, Claim, Curve, Evidence, Figure, Judge, Runs, Size
from tacit_lab.figures.judge import every, growth, judged, judging, lower, ratio, ratios
from tacit_lab.papers.tabular_ldp import learners
from tacit_lab.papers.tabular_ldp.learners import DELTA, EPSILONS, MIDWAY, RANDOMIZERS

T = TypeVar("T")

SLIGHTLY = 0.5
"""At least this share of the other's regret counts as slightly better."""


def parts(size: Size) -> list[Curve]:
    """Two private learners at three levels, two without privacy, and two of ours."""
    return [
        *(learners.obi("laplace", epsilon, size) for epsilon in EPSILONS),
        *(learners.psrl(epsilon, size) for epsilon in EPSILONS),
        learners.ucb_vi(size),
        learners.exact(size),
        *(learners.tight(epsilon, size) for epsilon in EPSILONS),
        *(learners.tacit_local(epsilon, size) for epsilon in EPSILONS),
    ]


def family(name: str) -> list[str]:
    """The curves of one learner at the three privacy levels."""
    return [f"{name}@{epsilon:g}" for epsilon in EPSILONS]


def by_level(what: str, things: Iterable[T]) -> dict[str, T]:
    """One thing for each of the three levels, by what it is called."""
    return {f"{what} at {e:g}": x for e, x in zip(EPSILONS, things, strict=True)}


def over(first: str, second: str) -> Iterator[tuple[str, str]]:
    """The curves of two learners, level by level."""
    return zip(family(first), family(second), strict=True)


def smaller_epsilon_costs_more(name: str, shown: str) -> Judge:
    """The ordering of a learner's three curves."""
    return judge.in_order(
        f"{shown}: the smaller epsilon, the larger the regret",
        "regret at 0.2 > at 2 > at 20, paired over MDPs",
        by_level("regret", family(name)),
        [(weaker, stronger) for stronger, weaker in pairwise(family(name))],
        "the measured order is another one",
    )


@judging
def almost_linear_yet_learning(evidence: Evidence, name: str, shown: str) -> Claim:
    """At epsilon = 0.2: regret close to linear, regret per episode falling."""
    runs = evidence.curve(f"{name}@0.2")
    last = runs.curve.episodes
    early, late = runs.at(last // 10) / (last // 10), runs.at(last) / last
    x = growth(runs)
    return judged(
        f"{shown}: at epsilon 0.2 regret looks almost linear while R_k/k decreases",
        f"R_k/k falls over the last decade, and regret ~ k^x with x > {MIDWAY:g}",
        {"R_k/k at K/10": early, "R_k/k at K": late, "x": x},
        [x.below(1.0), x.above(MIDWAY)],
        "R_k/k does not fall: at this length nothing has been learnt yet"
        if late >= early
        else "regret bends: at this length much has been learnt already",
    )


def larger_epsilon_bends(evidence: Evidence) -> Claim:
    """The exponents of growth come in the order of epsilon."""
    laplace = [evidence.curve(key) for key in family("laplace")]
    return judged(
        "LDP-OBI: regret bends away from a straight line at epsilon 2 and 20",
        "regret ~ k^x over the last decade, x(0.2) > x(2) > x(20)",
        by_level("x", [growth(runs).value for runs in laplace]),
        [judge.bend(smaller, larger).above(0.0) for smaller, larger in pairwise(laplace)],
        "the exponents at this length are not in that order",
    )


privacy_is_expensive = lower(
    "LDP severely slows learning: LDP-OBI has more regret than the same algorithm without noise",
    "OBI / LDP-OBI below 1 at every epsilon",
    by_level("OBI / LDP-OBI", [("obi", key) for key in family("laplace")]),
    "the same widths without noise are no better",
)
"""The comparison in which nothing but privacy differs."""

worse_than_ucb_vi = lower(
    "LDP-OBI has more regret than non-private UCB-VI (with the bonus 7 H L / sqrt(N), which is "
    "ours: the paper gives none, and the verdict hangs on it)",
    "UCB-VI / LDP-OBI below 1 at every epsilon",
    by_level("UCB-VI / LDP-OBI", [("ucb-vi", key) for key in family("laplace")]),
    "UCB-VI with this bonus is itself slow; with a smaller one it would not be",
)
psrl_is_better = lower(
    "LDP-PSRL performs better than LDP-OBI",
    "LDP-PSRL / LDP-OBI below 1 at every epsilon, paired over MDPs",
    by_level("LDP-PSRL / LDP-OBI", over("psrl", "laplace")),
    "LDP-PSRL has more regret; its runs scatter widely (E11)",
)
psrl_is_slightly_better = every(
    "... and only slightly so",
    f"LDP-PSRL / LDP-OBI between {SLIGHTLY:g} and 1 at every epsilon",
    lambda evidence: by_level("LDP-PSRL / LDP-OBI", ratios(evidence, over("psrl", "laplace"))),
    lambda r: r.within(SLIGHTLY, 1.0),
    "the gap is far larger where the noise is small, because LDP-OBI pays a worst-case "
    "bonus and LDP-PSRL pays none (E11, E16)",
)


def same_guarantee_spent_well(evidence: Evidence) -> Claim:
    """Ours: tacit-local at the epsilon that LDP-OBI truly gives, against its best calibration."""
    rivals = ("laplace", "tight")
    measured = {name: list(ratios(evidence, over("tacit-local", name))) for name in rivals}
    return judged(
        "not in the paper: tacit-local, with LDP-OBI's true epsilon, has less regret than LDP-OBI "
        "as published and in tight calibration",
        "LDP-OBI / tacit-local above 1 at every epsilon, paired over MDPs",
        {
            f"{name} / tacit-local at {e:g}": 1 / r.value
            for name, found in measured.items()
            for e, r in zip(EPSILONS, found, strict=True)
        },
        [r.below(1.0) for found in measured.values() for r in found],
        "tacit-local has more regret here",
    )


FIGURE_1 = Figure(
    id="tabular-ldp/figure-1",
    title="LDP-OBI with Laplace noise and LDP-PSRL beside non-private UCB-VI",
    full=learners.FULL.taking("206 s of processor time (measured)"),
    quick=learners.QUICK.taking("92 s of processor time (measured)"),
    parts=parts,
    draw=partial(draw.regret_and_rate, "LDP-OBI (Laplace), LDP-PSRL and UCB-VI on random MDPs"),
    claims=(
        smaller_epsilon_costs_more("laplace", "LDP-OBI"),
        almost_linear_yet_learning("laplace", "LDP-OBI"),
        larger_epsilon_bends,
        privacy_is_expensive,
        worse_than_ucb_vi,
        psrl_is_better,
        psrl_is_slightly_better,
        same_guarantee_spent_well,
    ),
    notes=learners.notes,
    paper_size=learners.PAPER.taking(
        "4 h of processor time, estimated from runs of 1e7 and one of 1e8"
    ),
)

FIGURE_7 = Figure(
    id="tabular-ldp/figure-7",
    title="LDP-PSRL at three privacy levels",
    full=learners.FULL.taking("110 s of processor time, none after figure 1 (measured)"),
    quick=learners.QUICK.taking("48 s of processor time (measured)"),
    parts=lambda size: [learners.psrl(epsilon, size) for epsilon in EPSILONS],
    draw=partial(draw.regret_and_rate, "LDP-PSRL on random MDPs"),
    claims=(
        smaller_epsilon_costs_more("psrl", "LDP-PSRL"),
        almost_linear_yet_learning("psrl", "LDP-PSRL"),
    ),
    notes=learners.notes,
    paper_size=learners.PAPER.taking("2.2 h of processor time, estimated from runs of 1e7"),
)

BOUNDED = ("bounded", "undivided")


def randomizer_parts(epsilons: Sequence[float], size: Size) -> list[Curve]:
    """Every randomizer at every level, and what the paper leaves open in two of them."""
    return [
        curve
        for epsilon in epsilons
        for curve in (
            *(learners.obi(name, epsilon, size) for name in RANDOMIZERS),
            learners.proposition(epsilon, size),
            learners.undivided(epsilon, size),
        )
    ]


def at(evidence: Evidence, epsilon: float) -> dict[str, Runs]:
    """The curves of one level, by randomizer."""
    names = (*RANDOMIZERS, "proposition", "undivided")
    return {name: evidence.curve(f"{name}@{epsilon:g}") for name in names}


@judging
def is_lowest(
    evidence: Evidence, name: str, others: Sequence[str], claim: str, epsilon: float
) -> Claim:
    """One randomizer has less regret than some others."""
    curves = at(evidence, epsilon)
    ratios = {other: ratio(curves[name], curves[other]) for other in others}
    lower = [other for other, r in ratios.items() if r.below(1.0) is False]
    return judged(
        f"epsilon {epsilon:g}: {claim}",
        f"{name} / other below 1, paired over MDPs",
        {f"{name} / {other}": r for other, r in ratios.items()},
        lambda r: r.below(1.0),
        f"lower is {' and '.join(lower)}; {_why_not(name, lower)}",
    )


_HINT = {
    "bounded": "its budget is divided by 3H, as Prop. 14 says: see the claim on the undivided one",
    "undivided": "even with a larger budget than Prop. 14 allows",
}


def _why_not(name: str, lower: Sequence[str]) -> str:
    """Why a randomizer is not the lowest; of Laplace noise, by what is lower."""
    reasons = {
        "gaussian": "Gaussian noise has the proof's constant here: see the claim with that of "
        "Prop. 10, which is 2 sqrt(ln(24 / delta)) times larger (E1)",
        "proposition": "even with the larger constant of Prop. 10",
        "response": "the published widths of randomized response are half of what they must be "
        "(E5), whatever constant Gaussian noise has",
    }
    return _HINT.get(name) or "; ".join(reasons[other] for other in lower)


@judging
def scatters_most(evidence: Evidence, epsilon: float) -> Claim:
    """Bounded noise has the widest spread of runs."""
    scatter = {name: _relative_variances(runs) for name, runs in at(evidence, epsilon).items()}

    def lead(variances: Sequence[Array]) -> float:
        """Relative standard deviation of bounded noise minus the largest of the others."""
        spread = {name: math.sqrt(v.mean()) for name, v in zip(scatter, variances, strict=True)}
        others = max(value for name, value in spread.items() if name not in BOUNDED)
        return min(spread[name] for name in BOUNDED) - others

    of_the_paper = evidence.size.episodes >= learners.PAPER.episodes
    return judged(
        f"epsilon {epsilon:g}: bounded noise has the higher variance in its performance",
        "largest relative standard deviation between runs on the same MDP",
        {name: math.sqrt(v.mean()) for name, v in scatter.items()},
        judge.jackknife(list(scatter.values()), lead).above(0.0) if of_the_paper else None,
        "another randomizer scatters more",
        "" if of_the_paper else "two runs on a problem decide nothing below the paper's length",
    )


def _relative_variances(runs: Runs) -> Array:
    """Variance between the runs on each problem over their squared mean; two runs at least."""
    finals = [result.regret[:, -1] for result in runs.results]
    return np.array([f.var(ddof=1) / max(f.mean(), LEAST) ** 2 for f in finals])


@judging
def equal_privacy(evidence: Evidence, epsilon: float) -> Claim:
    """Whether all four give what is asked for."""
    deltas, weak = {}, []
    for name, (_, more) in RANDOMIZERS.items():
        deltas[name] = learners.true_delta(evidence.curve(f"{name}@{epsilon:g}"))
        if deltas[name] > more.get("delta", 0.0) * (1 + 1e-6):
            weak.append(name)
    # bounded noise with eps' = epsilon (S = A = 2)
    radius = paper_radius(epsilon, DELTA, 2, 2)
    deltas["undivided"] = tabular_delta(radius, math.sqrt(2), learners.HORIZON, epsilon)
    return judged(
        f"epsilon {epsilon:g}: all four give the privacy they are compared at",
        f"true delta at epsilon {epsilon:g}: 0 for Laplace and response, at most "
        f"{DELTA:g} for Gaussian and bounded",
        {f"delta of {name}": delta for name, delta in deltas.items()},
        not weak,
        f"weaker than asked for: {' and '.join(weak)} (E3, E7); bounded noise with an "
        "undivided budget is far from private",
    )


not_yet_square_root = every(
    "epsilon 0.2: no randomizer has reached the square-root phase of the regret",
    f"regret ~ k^x over the last decade with x > {MIDWAY:g}",
    lambda evidence: {f"x of {name}": growth(runs) for name, runs in at(evidence, 0.2).items()},
    lambda x: x.above(MIDWAY),
    "a curve has bent further than the paper says",
)
"""Appendix F.4 on epsilon = 0.2."""


def claims(epsilon: float) -> tuple[Judge, ...]:
    """What the paper says at one level."""
    others = [name for name in RANDOMIZERS if name != "bounded"]
    best = "bounded noise is the most effective randomizer"
    undivided = f"{best}, if its budget is not divided by 3H"
    return (
        is_lowest("bounded", others, best, epsilon),
        is_lowest("undivided", others, undivided, epsilon),
        is_lowest(
            "laplace",
            ("gaussian", "response"),
            "Laplace noise comes second, Gaussian noise with the proof's constant",
            epsilon,
        ),
        is_lowest(
            "laplace",
            ("proposition", "response"),
            "Laplace noise comes second, Gaussian noise with the constant of Prop. 10",
            epsilon,
        ),
        scatters_most(epsilon),
        equal_privacy(epsilon),
    )


FIGURE_2 = Figure(
    id="tabular-ldp/figure-2",
    title="LDP-OBI with four randomizers at three privacy levels",
    full=learners.FULL_RANDOMIZERS.taking("288 s of processor time (measured)"),
    quick=learners.QUICK_RANDOMIZERS.taking("116 s of processor time (measured)"),
    parts=partial(randomizer_parts, EPSILONS),
    draw=lambda evidence: draw.regrets(
        "LDP-OBI with four randomizers on random MDPs",
        {f"epsilon {e:g} asked for": list(at(evidence, e).values()) for e in EPSILONS},
    ),
    claims=tuple(judge for epsilon in EPSILONS for judge in claims(epsilon)),
    notes=learners.notes,
    paper_size=learners.PAPER.taking("11.4 h of processor time, estimated from runs of 1e7"),
)


def one_level(number: int, epsilon: float, *more: Judge) -> Figure:
    """Figures 4, 5 and 6: one level each; they share their runs with figure 2."""
    return Figure(
        id=f"tabular-ldp/figure-{number}",
        title=f"LDP-OBI with four randomizers at epsilon {epsilon:g}",
        full=learners.FULL_RANDOMIZERS.taking(
            "120 s of processor time, none after figure 2 (measured for figure 4)"
        ),
        quick=learners.QUICK_RANDOMIZERS.taking(
            "41 s of processor time, none after figure 2 (measured for figure 4)"
        ),
        parts=partial(randomizer_parts, (epsilon,)),
        draw=partial(draw.regret_and_rate, f"LDP-OBI with four randomizers, epsilon {epsilon:g}"),
        claims=(*claims(epsilon), *more),
        notes=learners.notes,
        paper_size=learners.PAPER.taking(
            "3.8 h of processor time, estimated from runs of 1e7, none after figure 2"
        ),
    )


FIGURE_4 = one_level(4, 0.2, not_yet_square_root)
FIGURE_5 = one_level(5, 2.0)
FIGURE_6 = one_level(6, 20.0)
