"""Figures 1 and 7: LDP-OBI with Laplace noise, LDP-PSRL and UCB-VI, and LDP-PSRL alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tacit.util.intervals import Interval
from tacit_lab.figures import draw
from tacit_lab.figures.evidence import Evidence, Runs
from tacit_lab.figures.figure import Claim, Curve, Figure, Size
from tacit_lab.figures.judge import bend, growth, judged, ratio
from tacit_lab.papers.tabular_ldp import learners
from tacit_lab.papers.tabular_ldp.learners import EPSILONS, MIDWAY

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


def family(evidence: Evidence, name: str) -> list[Runs]:
    """The curves of one learner at the three privacy levels."""
    return [evidence.curve(f"{name}@{epsilon:g}") for epsilon in EPSILONS]


def _ratios(evidence: Evidence, first: str, second: str) -> list[Interval]:
    """Regret of one learner over another's at the three levels."""
    pairs = zip(family(evidence, first), family(evidence, second), strict=True)
    return [ratio(one, other) for one, other in pairs]


def _by_level(what: str, found: Sequence[Interval | float]) -> dict[str, Interval | float]:
    return {f"{what} at {e:g}": x for e, x in zip(EPSILONS, found, strict=True)}


def smaller_epsilon_costs_more(name: str, shown: str, evidence: Evidence) -> Claim:
    """The ordering of a learner's three curves."""
    curves = family(evidence, name)
    pairs = zip(curves[1:], curves[:-1], strict=True)
    return judged(
        f"{shown}: the smaller epsilon, the larger the regret",
        "regret at 0.2 > at 2 > at 20, paired over MDPs",
        _by_level("regret", [float(runs.final.mean()) for runs in curves]),
        [ratio(weaker, stronger).below(1.0) for weaker, stronger in pairs],
        "the measured order is another one",
    )


def almost_linear_yet_learning(name: str, shown: str, evidence: Evidence) -> Claim:
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
    laplace = family(evidence, "laplace")
    pairs = zip(laplace[:-1], laplace[1:], strict=True)
    return judged(
        "LDP-OBI: regret bends away from a straight line at epsilon 2 and 20",
        "regret ~ k^x over the last decade, x(0.2) > x(2) > x(20)",
        _by_level("x", [runs.growth() for runs in laplace]),
        [bend(smaller, larger).above(0.0) for smaller, larger in pairs],
        "the exponents at this length are not in that order",
    )


def privacy_is_expensive(evidence: Evidence) -> Claim:
    """UCB-VI has less regret than LDP-OBI at every epsilon."""
    ucb = evidence.curve("ucb-vi")
    ratios = [ratio(ucb, runs) for runs in family(evidence, "laplace")]
    return judged(
        "LDP severely slows learning: LDP-OBI has more regret than non-private UCB-VI",
        "UCB-VI / LDP-OBI below 1 at every epsilon",
        _by_level("UCB-VI / LDP-OBI", ratios),
        [r.below(1.0) for r in ratios],
        "UCB-VI with the theorem's bonus is itself slow",
    )


def psrl_is_better(evidence: Evidence) -> Claim:
    """LDP-PSRL below LDP-OBI."""
    ratios = _ratios(evidence, "psrl", "laplace")
    return judged(
        "LDP-PSRL performs better than LDP-OBI",
        "LDP-PSRL / LDP-OBI below 1 at every epsilon, paired over MDPs",
        _by_level("LDP-PSRL / LDP-OBI", ratios),
        [r.below(1.0) for r in ratios],
        "LDP-PSRL has more regret; its runs scatter widely (E11)",
    )


def psrl_is_slightly_better(evidence: Evidence) -> Claim:
    """... and only slightly."""
    ratios = _ratios(evidence, "psrl", "laplace")
    return judged(
        "... and only slightly so",
        f"LDP-PSRL / LDP-OBI between {SLIGHTLY:g} and 1 at every epsilon",
        _by_level("LDP-PSRL / LDP-OBI", ratios),
        [r.within(SLIGHTLY, 1.0) for r in ratios],
        "the gap is far larger where the noise is small, because LDP-OBI pays a worst-case "
        "bonus and LDP-PSRL pays none (E11, E16)",
    )


def same_guarantee_spent_well(evidence: Evidence) -> Claim:
    """Ours: tacit-local at the epsilon that LDP-OBI truly gives."""
    ratios = _ratios(evidence, "tacit-local", "laplace")
    return judged(
        "not in the paper: tacit-local, with LDP-OBI's true epsilon, has less regret",
        "LDP-OBI / tacit-local above 1 at every epsilon, paired over MDPs",
        _by_level("LDP-OBI / tacit-local", [1 / r.value for r in ratios]),
        [r.below(1.0) for r in ratios],
        "tacit-local has more regret here",
    )


FIGURE_1 = Figure(
    id="tabular-ldp/figure-1",
    title="LDP-OBI with Laplace noise and LDP-PSRL beside non-private UCB-VI",
    full=learners.FULL,
    quick=learners.QUICK,
    full_time="194 s of processor time (measured)",
    quick_time="92 s of processor time (measured)",
    parts=parts,
    draw=lambda evidence: draw.regret_and_rate(
        "LDP-OBI (Laplace), LDP-PSRL and UCB-VI on random MDPs", list(evidence.curves.values())
    ),
    claims=(
        partial(smaller_epsilon_costs_more, "laplace", "LDP-OBI"),
        partial(almost_linear_yet_learning, "laplace", "LDP-OBI"),
        larger_epsilon_bends,
        privacy_is_expensive,
        psrl_is_better,
        psrl_is_slightly_better,
        same_guarantee_spent_well,
    ),
    notes=learners.notes,
    paper_size=learners.PAPER,
    paper_time="4 h of processor time, estimated from runs of 1e7 and one of 1e8",
)

FIGURE_7 = Figure(
    id="tabular-ldp/figure-7",
    title="LDP-PSRL at three privacy levels",
    full=learners.FULL,
    quick=learners.QUICK,
    full_time="110 s of processor time, none after figure 1 (measured)",
    quick_time="48 s of processor time (measured)",
    parts=lambda size: [learners.psrl(epsilon, size) for epsilon in EPSILONS],
    draw=lambda evidence: draw.regret_and_rate("LDP-PSRL on random MDPs", family(evidence, "psrl")),
    claims=(
        partial(smaller_epsilon_costs_more, "psrl", "LDP-PSRL"),
        partial(almost_linear_yet_learning, "psrl", "LDP-PSRL"),
    ),
    notes=learners.notes,
    paper_size=learners.PAPER,
    paper_time="2.2 h of processor time, estimated from runs of 1e7",
)
