"""Figure 7: LDP-PSRL alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Curve, Figure, Size
from tacit.experiments.tabular_ldp import curves, instances

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


def parts(size: Size) -> list[Curve]:
    """LDP-PSRL at three levels."""
    return [curves.psrl(epsilon, size) for epsilon in curves.EPSILONS]


def picture(evidence: Evidence) -> Picture:
    """Left cumulative regret, right regret per episode."""
    drawn = curves.family(evidence, "psrl")
    figure, (left, right) = draw.canvas(2, "LDP-PSRL on random MDPs")
    draw.regret_panel(left, drawn, "cumulative regret")
    draw.rate_panel(right, drawn, "regret per episode", legend=False)
    return figure


FIGURE_7 = Figure(
    id="tabular-ldp/figure-7",
    title="LDP-PSRL at three privacy levels",
    full=curves.FULL,
    quick=curves.QUICK,
    full_time="110 s of processor time, none after figure 1 (measured)",
    quick_time="48 s of processor time (measured)",
    parts=parts,
    draw=picture,
    claims=(
        curves.smaller_epsilon_costs_more("psrl", "LDP-PSRL"),
        curves.almost_linear_yet_learning("psrl", "LDP-PSRL"),
    ),
    notes=instances.notes,
    paper_size=curves.PAPER,
    paper_time="2.2 h of processor time, estimated from runs of 1e7",
)
