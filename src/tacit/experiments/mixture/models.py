"""Value iteration beside policy optimisation, a curator beside no curator, on RemapWalk.

See docs/papers/mixture_jdp.md#x7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Figure, Judge, Named, Size
from tacit.experiments.judge import reason, second_half
from tacit.experiments.mixture import bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

WALK = Named("remap-walk")
SEED = 740
EVERY = 50
EPSILONS = (1.0, 10.0)


def parts(size: Size) -> list[Curve]:
    """Both algorithms without and with privacy; both models at two levels."""

    def curve(key: str, label: str, name: str, **parameters: Any) -> Curve:
        return bars.curve(key, label, Named(name, parameters), WALK, size, SEED)

    found = [
        curve("vi", "LinOpt-VI", "linopt-vi", every=EVERY),
        curve("po", "LinOpt-PO", "linopt-po", every=EVERY),
    ]
    for epsilon in EPSILONS:
        asked = {"epsilon": epsilon, "every": EVERY}
        joint = {**asked, "counter": "toeplitz"}
        local = {**asked, "model": "local"}
        found += [
            curve(f"vi@{epsilon:g}", "Private-LinOpt-VI", "private-linopt-vi", **joint),
            curve(f"po@{epsilon:g}", "Private-LinOpt-PO", "private-linopt-po", **joint),
            curve(f"local-vi@{epsilon:g}", "Private-LinOpt-VI", "private-linopt-vi", **local),
            curve(f"local@{epsilon:g}", "tacit-local", "tacit-local", epsilon=epsilon),
            curve(f"joint@{epsilon:g}", "tacit-joint", "tacit-joint", epsilon=epsilon),
        ]
    return found


def picture(evidence: Evidence) -> Picture:
    """Left without privacy and at the larger level, right at the smaller one."""
    drawing, panels = draw.canvas(2, "RemapWalk: two algorithms, two models of privacy")
    for axes, epsilon in zip(panels, reversed(EPSILONS), strict=True):
        keys = [key for key in evidence.curves if key.endswith(f"@{epsilon:g}")]
        drawn = [evidence.curve(key) for key in ("vi", "po", *keys)]
        draw.regret_panel(axes, drawn, f"epsilon {epsilon:g}")
    return drawing


def learns_nothing(key: str, epsilon: float, said: str) -> Judge:
    """The second half of the users pays as much as the first."""

    def judge(evidence: Evidence) -> Claim:
        half = second_half(evidence.curve(f"{key}@{epsilon:g}"))
        holds = half.above(0.9)
        return Claim(
            claim=said,
            expected="second half of the users at least 0.9 of the first, by two standard errors",
            measured={"second half / first half": half.value},
            holds=holds,
            why=reason(holds, "it bends"),
        )

    return judge


MODELS = Figure(
    id="mixture-jdp/models",
    title="Value iteration beside policy optimisation, joint beside local privacy, on RemapWalk",
    full=Size(episodes=10_000, instances=10, runs=1),
    quick=Size(episodes=10_000, instances=3, runs=1),
    full_time="54 s of processor time (measured)",
    quick_time="7 s of processor time, already compiled (measured)",
    parts=parts,
    draw=picture,
    claims=(
        bars.smaller("vi", "po", "without privacy value iteration beats policy optimisation"),
        bars.smaller("vi@10", "po@10", "at epsilon 10 value iteration beats policy optimisation"),
        learns_nothing("local-vi", 1.0, "local privacy, epsilon 1: value targets learn nothing"),
        learns_nothing("local", 1.0, "local privacy, epsilon 1: one-step reports learn nothing"),
        bars.below(
            "local@10",
            1.0,
            10_000,
            "local privacy, epsilon 10: one-step reports learn",
            per_episode=True,
        ),
        bars.smaller("joint@1", "local@1", "a trusted curator lowers regret at epsilon 1"),
        bars.smaller("joint@10", "local@10", "a trusted curator lowers regret at epsilon 10"),
    ),
    notes=lambda size: (
        "Our own benchmark (docs/papers/mixture_jdp.md#x7): no experiment in the paper.",
    ),
)
