"""Figure 2 of the paper on LDP-UCRL-VTR with five states: larger H and d are slower.

S is lost in the text, so both sizes that its grid of H = 2S could have been are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Figure, Judge, Named, Size
from tacit.experiments.judge import mean, reason
from tacit.experiments.mixture import bars
from tacit.experiments.mixture.local import DELTA, EPSILONS, LAZY, RIVER, learners
from tacit.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

RIVERS = {
    3: Named("river-swim", RIVER),
    5: Named("river-swim", {**RIVER, "states": 5, "horizon": 10, "reward_scale": 1 / 10}),
}
UNIFORM = {3: 0.2755558417 - 0.0267296605, 5: 0.0840767683 - 0.0026154940}
"""Regret per episode of the uniform policy (docs/papers/mixture_ldp.md#river-swim)."""


def parts(size: Size) -> list[Curve]:
    """The curves of figure 2, homogeneous, at both sizes; those of three states are shared."""
    return [
        bars.curve(f"{key} {states}", label, agent, river, size, seed=500)
        for states, river in RIVERS.items()
        for key, label, agent in learners()
    ]


def picture(evidence: Evidence) -> Picture:
    """One panel per number of states."""
    drawing, panels = draw.canvas(2, "LDP-UCRL-VTR on RiverSwim, rewards over H")
    for states, axes in zip(RIVERS, panels, strict=True):
        drawn = [runs for key, runs in evidence.curves.items() if key.endswith(f" {states}")]
        draw.regret_panel(axes, drawn, f"S = {states}, H = {2 * states}", legend=states == 3)
    return drawing


def _share(evidence: Evidence, key: str, states: int) -> Interval:
    """Regret over that of the uniform policy."""
    runs = evidence.curve(f"{key} {states}")
    return mean(runs.runs[:, -1] / (runs.curve.episodes * UNIFORM[states]))


def slower(key: str, said: str) -> Judge:
    """A larger share of the uniform policy's regret at five states than at three."""

    def judge(evidence: Evidence) -> Claim:
        small, large = (_share(evidence, key, states) for states in RIVERS)
        error = ((small.high - small.value) ** 2 + (large.high - large.value) ** 2) ** 0.5
        gap = large.value - small.value
        holds = Interval(gap, gap - error, gap + error).above(0.0)
        return Claim(
            claim=f"{said} learns more slowly with larger H and d",
            expected="regret over that of the uniform policy: larger at S = 5 than at S = 3",
            measured={"share at S = 3": small.value, "share at S = 5": large.value},
            holds=holds,
            why=reason(holds, "it learns as fast"),
        )

    return judge


LARGER = Figure(
    id="mixture-ldp/figure-2-larger",
    title="The same on RiverSwim with three and with five states: larger H and d",
    full=Size(episodes=10_000, instances=10, runs=1),
    quick=Size(episodes=10_000, instances=3, runs=1),
    full_time="31 s of processor time after figure 2 (measured)",
    quick_time="10 s of processor time after figure 2 (measured)",
    parts=parts,
    draw=picture,
    claims=(
        slower("ucrl-vtr", "UCRL-VTR"),
        slower("index@10", "not in the paper: the index at epsilon 10"),
        bars.not_learning(
            [f"paper@{epsilon:g} 5" for epsilon in EPSILONS],
            "not in the paper: as published nothing is learnt at S = 5 either",
        ),
    ),
    notes=lambda size: (
        f"Delta {DELTA:g}, policies refreshed every {LAZY} users, no constant tuned here.",
    ),
)
