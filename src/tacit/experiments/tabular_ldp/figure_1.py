"""Figure 1: LDP-OBI with Laplace noise, LDP-PSRL and UCB-VI, regret and regret per episode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Figure, Size
from tacit.experiments.judge import bend, ratio, reason, together
from tacit.experiments.tabular_ldp import curves, instances
from tacit.experiments.tabular_ldp.curves import EPSILONS
from tacit.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

SLIGHTLY = 0.5
"""At least this share of the other's regret counts as slightly better."""


def parts(size: Size) -> list[Curve]:
    """Two private learners at three levels, the one without privacy, and ours."""
    return [
        *(curves.obi("laplace", epsilon, size) for epsilon in EPSILONS),
        *(curves.psrl(epsilon, size) for epsilon in EPSILONS),
        curves.ucb_vi(size),
        *(curves.tacit_local(epsilon, size) for epsilon in EPSILONS),
    ]


def picture(evidence: Evidence) -> Picture:
    """Left cumulative regret, right regret per episode."""
    drawn = list(evidence.curves.values())
    figure, (left, right) = draw.canvas(2, "LDP-OBI (Laplace), LDP-PSRL and UCB-VI on random MDPs")
    draw.regret_panel(left, drawn, "cumulative regret")
    draw.rate_panel(right, drawn, "regret per episode", legend=False)
    return figure


def larger_epsilon_bends(evidence: Evidence) -> Claim:
    """The exponents of growth come in the order of epsilon."""
    family = curves.family(evidence, "laplace")
    growth = [runs.growth() for runs in family]
    pairs = zip(family[:-1], family[1:], strict=True)
    holds = together([bend(smaller, larger).above(0.0) for smaller, larger in pairs])
    return Claim(
        claim="LDP-OBI: regret bends away from a straight line at epsilon 2 and 20",
        expected="regret ~ k^x over the last decade, x(0.2) > x(2) > x(20)",
        measured={f"x at {e:g}": x for e, x in zip(EPSILONS, growth, strict=True)},
        holds=holds,
        why=reason(holds, "the exponents at this length are not in that order"),
    )


def privacy_is_expensive(evidence: Evidence) -> Claim:
    """UCB-VI has less regret than LDP-OBI at every epsilon."""
    ucb = evidence.curve("ucb-vi")
    ratios = [ratio(ucb, runs) for runs in curves.family(evidence, "laplace")]
    holds = together([r.below(1.0) for r in ratios])
    return Claim(
        claim="LDP severely slows learning: LDP-OBI has more regret than non-private UCB-VI",
        expected="UCB-VI / LDP-OBI below 1 at every epsilon",
        measured={
            f"UCB-VI / LDP-OBI at {e:g}": r.value for e, r in zip(EPSILONS, ratios, strict=True)
        },
        holds=holds,
        why=reason(holds, "UCB-VI with the theorem's bonus is itself slow"),
    )


def psrl_is_better(evidence: Evidence) -> Claim:
    """LDP-PSRL below LDP-OBI."""
    ratios = _psrl_over_obi(evidence)
    holds = together([r.below(1.0) for r in ratios])
    return Claim(
        claim="LDP-PSRL performs better than LDP-OBI",
        expected="LDP-PSRL / LDP-OBI below 1 at every epsilon, paired over MDPs",
        measured={
            f"LDP-PSRL / LDP-OBI at {e:g}": r.value for e, r in zip(EPSILONS, ratios, strict=True)
        },
        holds=holds,
        why=reason(holds, "LDP-PSRL has more regret; its runs scatter widely (E11)"),
    )


def psrl_is_slightly_better(evidence: Evidence) -> Claim:
    """... and only slightly."""
    ratios = _psrl_over_obi(evidence)
    holds = together([r.within(SLIGHTLY, 1.0) for r in ratios])
    return Claim(
        claim="... and only slightly so",
        expected=f"LDP-PSRL / LDP-OBI between {SLIGHTLY:g} and 1 at every epsilon",
        measured={
            f"LDP-PSRL / LDP-OBI at {e:g}": r.value for e, r in zip(EPSILONS, ratios, strict=True)
        },
        holds=holds,
        why=reason(
            holds,
            "the gap is far larger where the noise is small, because LDP-OBI pays a worst-case "
            "bonus and LDP-PSRL pays none (E11, E16)",
        ),
    )


def same_guarantee_spent_well(evidence: Evidence) -> Claim:
    """Ours: tacit-local at the epsilon that LDP-OBI truly gives."""
    pairs = zip(
        curves.family(evidence, "tacit-local"), curves.family(evidence, "laplace"), strict=True
    )
    ratios = [ratio(ours, obi) for ours, obi in pairs]
    holds = together([r.below(1.0) for r in ratios])
    return Claim(
        claim="not in the paper: tacit-local, with LDP-OBI's true epsilon, has less regret",
        expected="LDP-OBI / tacit-local above 1 at every epsilon, paired over MDPs",
        measured={
            f"LDP-OBI / tacit-local at {e:g}": 1 / r.value
            for e, r in zip(EPSILONS, ratios, strict=True)
        },
        holds=holds,
        why=reason(holds, "tacit-local has more regret here"),
    )


def _psrl_over_obi(evidence: Evidence) -> list[Interval]:
    pairs = zip(curves.family(evidence, "psrl"), curves.family(evidence, "laplace"), strict=True)
    return [ratio(psrl, obi) for psrl, obi in pairs]


FIGURE_1 = Figure(
    id="tabular-ldp/figure-1",
    title="LDP-OBI with Laplace noise and LDP-PSRL beside non-private UCB-VI",
    full=curves.FULL,
    quick=curves.QUICK,
    full_time="194 s of processor time (measured)",
    quick_time="92 s of processor time (measured)",
    parts=parts,
    draw=picture,
    claims=(
        curves.smaller_epsilon_costs_more("laplace", "LDP-OBI"),
        curves.almost_linear_yet_learning("laplace", "LDP-OBI"),
        larger_epsilon_bends,
        privacy_is_expensive,
        psrl_is_better,
        psrl_is_slightly_better,
        same_guarantee_spent_well,
    ),
    notes=instances.notes,
    paper_size=curves.PAPER,
    paper_time="4 h of processor time, estimated from runs of 1e7 and one of 1e8",
)
