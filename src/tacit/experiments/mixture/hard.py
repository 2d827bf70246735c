"""The hard linear mixture of the lower bound, which the authors' own repository runs.

d = 5, H = 6, ten thousand users, delta 0.01; the gap is 0.02, several times theirs, so that there
is something to learn in that time (docs/papers/mixture_ldp.md#hard-mixture,
docs/papers/mixture_ldp.md#measured).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Curve, Figure, Named, Size
from tacit.experiments.mixture import bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

EPSILONS = (0.1, 1.0, 10.0)
USERS = 10_000
UNIFORM = 6775.5
"""Regret of the uniform policy after that many users."""
HARD = Named("hard-mixture", {"gap": 0.02})
LAZY = 20


def parts(size: Size) -> list[Curve]:
    """Without privacy, as published, and with the index of a transition released."""

    def curve(key: str, label: str, name: str, **parameters: Any) -> Curve:
        agent = Named(name, {**parameters, "every": LAZY})
        return bars.curve(key, label, agent, HARD, size, seed=520)

    asked = [{"epsilon": epsilon, "delta": 0.01} for epsilon in EPSILONS]
    return [
        curve("ucrl-vtr", "UCRL-VTR", "ucrl-vtr"),
        *(
            curve(
                f"paper@{a['epsilon']:g}", "LDP-UCRL-VTR", "ldp-ucrl-vtr", calibration="paper", **a
            )
            for a in asked
        ),
        *(
            curve(
                f"index@{a['epsilon']:g}",
                "index on the policy's support",
                "ldp-ucrl-vtr",
                statistic="index",
                **a,
            )
            for a in asked[1:]
        ),
    ]


def picture(evidence: Evidence) -> Picture:
    """Cumulative regret."""
    drawing, (axes,) = draw.canvas(1, "the hard linear mixture, d = 5, H = 6, gap 0.02")
    draw.regret_panel(axes, list(evidence.curves.values()), "cumulative regret")
    return drawing


HARD_MIXTURE = Figure(
    id="mixture-ldp/hard-mixture",
    title="LDP-UCRL-VTR on the hard linear mixture of the lower bound",
    full=Size(episodes=USERS, instances=10, runs=1),
    quick=Size(episodes=USERS, instances=3, runs=1),
    full_time="16 s of processor time (measured)",
    quick_time="6 s of processor time, already compiled (measured)",
    parts=parts,
    draw=picture,
    claims=(
        bars.below(
            "ucrl-vtr", 1617.0, USERS, "UCRL-VTR learns the hard mixture", per_episode=False
        ),
        bars.not_learning(
            [f"paper@{epsilon:g}" for epsilon in EPSILONS],
            "as published LDP-UCRL-VTR learns nothing up to epsilon 10",
        ),
        bars.below(
            "index@10",
            0.75 * UNIFORM,
            USERS,
            "not in the paper: the index at epsilon 10 learns",
            per_episode=False,
        ),
        bars.below(
            "index@1",
            0.75 * UNIFORM,
            USERS,
            "not in the paper: the index at epsilon 1 learns",
            per_episode=False,
        ),
    ),
    notes=lambda size: (
        f"The uniform policy has regret {UNIFORM:g} after ten thousand users.",
        "The paper has no figure of this problem; its authors' repository runs it.",
    ),
)
