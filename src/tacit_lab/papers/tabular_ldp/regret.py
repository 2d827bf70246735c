"""Figures 1 and 7: LDP-OBI with Laplace noise, LDP-PSRL and UCB-VI, and LDP-PSRL alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import TypeVar

from tacit_lab.figures import draw
from tacit_lab.figures.figure import Claim, Curve, Evidence, Figure, Judge, Size
from tacit_lab.figures.judge import (
    bend,
    every,
    growth,
    in_order,
    judged,
    judging,
    lower,
    ratios,
)
from tacit_lab.papers.tabular_ldp import learners
from tacit_lab.papers.tabular_ldp.learners import EPSILONS, MIDWAY

T = TypeVar("T")

SLIGHTLY = 0.5
"""At least this share of the other's regret counts as slightly better."""


def parts(size: Size) -> list[Curve]:
    """Two private learners at three levels, the one without privacy, and ours."""
    return [
        *(learners.obi("laplace", epsilon, size) for epsilon in EPSILONS),
        *(learners.psrl(epsilon, size) for epsilon in EPSILONS),
        learners.ucb_vi(size),
        *(learners.tacit_local(epsilon, size) for epsilon in EPSILONS),
    ]


def family(name: str) -> list[str]:
    """The curves of one learner at the three privacy levels."""
    return [f"{name}@{epsilon:g}" for epsilon in EPSILONS]


def by_level(what: str, found: Iterable[T]) -> dict[str, T]:
    """One thing for each of the three levels, by what it is called."""
    return {f"{what} at {e:g}": x for e, x in zip(EPSILONS, found, strict=True)}


def over(first: str, second: str) -> Iterator[tuple[str, str]]:
    """The curves of two learners, level by level."""
    return zip(family(first), family(second), strict=True)


def smaller_epsilon_costs_more(name: str, shown: str) -> Judge:
    """The ordering of a learner's three curves."""
    return in_order(
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
        [bend(smaller, larger).above(0.0) for smaller, larger in pairwise(laplace)],
        "the exponents at this length are not in that order",
    )


privacy_is_expensive = lower(
    "LDP severely slows learning: LDP-OBI has more regret than non-private UCB-VI",
    "UCB-VI / LDP-OBI below 1 at every epsilon",
    by_level("UCB-VI / LDP-OBI", [("ucb-vi", key) for key in family("laplace")]),
    "UCB-VI with the theorem's bonus is itself slow",
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
    """Ours: tacit-local at the epsilon that LDP-OBI truly gives."""
    found = ratios(evidence, over("tacit-local", "laplace"))
    return judged(
        "not in the paper: tacit-local, with LDP-OBI's true epsilon, has less regret",
        "LDP-OBI / tacit-local above 1 at every epsilon, paired over MDPs",
        by_level("LDP-OBI / tacit-local", [1 / r.value for r in found]),
        [r.below(1.0) for r in found],
        "tacit-local has more regret here",
    )


FIGURE_1 = Figure(
    id="tabular-ldp/figure-1",
    title="LDP-OBI with Laplace noise and LDP-PSRL beside non-private UCB-VI",
    full=learners.FULL.taking("194 s of processor time (measured)"),
    quick=learners.QUICK.taking("92 s of processor time (measured)"),
    parts=parts,
    draw=partial(draw.regret_and_rate, "LDP-OBI (Laplace), LDP-PSRL and UCB-VI on random MDPs"),
    claims=(
        smaller_epsilon_costs_more("laplace", "LDP-OBI"),
        almost_linear_yet_learning("laplace", "LDP-OBI"),
        larger_epsilon_bends,
        privacy_is_expensive,
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
