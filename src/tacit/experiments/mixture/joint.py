"""The benchmark of Private-LinOpt: the paper has no experiments.

See docs/papers/mixture_jdp.md#x3 and docs/papers/mixture_jdp.md#x4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Curve, Figure, Named, Size
from tacit.experiments.mixture import bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

BARS = {0.1: 1.7, 1.0: 0.23, 10.0: 0.04}
USERS, LONG = 10_000, 100_000
WALK = Named("remap-walk")
RIVER = Named("river-swim", {"states": 5, "horizon": 10})


def paper(epsilon: float, every: int) -> Named:
    """Private-LinOpt-VI as published; updates are rare, which changes nothing where it is flat."""
    asked = {"epsilon": epsilon, "calibration": "paper", "every": every}
    return Named("private-linopt-vi", asked)


def walk_parts(size: Size) -> list[Curve]:
    """The published learner, the non-private one, and ours with two counters."""

    def curve(key: str, label: str, name: str, **parameters: Any) -> Curve:
        return bars.curve(key, label, Named(name, parameters), WALK, size, seed=700)

    found = [curve("linopt-vi", "LinOpt-VI", "linopt-vi", every=20)]
    for epsilon in BARS:
        agent = paper(epsilon, 50)
        label = f"Private-LinOpt-VI asked for {epsilon:g}"
        found.append(bars.curve(f"paper@{epsilon:g}", label, agent, WALK, size, seed=700))
        found.append(
            curve(f"tacit-joint@{epsilon:g}", "tacit-joint", "tacit-joint", epsilon=epsilon)
        )
    tree = {"epsilon": 1.0, "counter": "tree"}
    found.append(curve("tree@1", "tacit-joint with a tree", "tacit-joint", **tree))
    return found


def river_parts(size: Size) -> list[Curve]:
    """One level of privacy, a hundred thousand users."""
    ours = Named("tacit-joint", {"epsilon": 1.0})
    return [
        bars.curve("paper@1", "Private-LinOpt-VI asked for 1", paper(1.0, 500), RIVER, size, 800),
        bars.curve("tacit-joint@1", "tacit-joint", ours, RIVER, size, 800),
    ]


def walk_picture(evidence: Evidence) -> Picture:
    """Regret and regret per episode."""
    figure, (left, right) = draw.canvas(2, "Linear mixtures under joint privacy: RemapWalk")
    drawn = list(evidence.curves.values())
    draw.regret_panel(left, drawn, "cumulative regret")
    draw.rate_panel(right, drawn, "regret per episode", legend=False)
    return figure


def river_picture(evidence: Evidence) -> Picture:
    """Regret per episode."""
    figure, (panel,) = draw.canvas(1, "RiverSwim under joint privacy, S = 5, H = 10")
    draw.rate_panel(panel, list(evidence.curves.values()), "regret per episode")
    return figure


REMAP_WALK = Figure(
    id="mixture-jdp/remap-walk",
    title="Private-LinOpt-VI as published and tacit-joint at the same request, on RemapWalk",
    full=Size(episodes=USERS, instances=10, runs=1),
    quick=Size(episodes=USERS, instances=3, runs=1),
    full_time="34 s of processor time (measured)",
    quick_time="12 s of processor time, estimated from the full size",
    parts=walk_parts,
    draw=walk_picture,
    claims=(
        *(
            bars.below(
                f"tacit-joint@{epsilon:g}",
                bar,
                USERS,
                f"tacit-joint learns at epsilon {epsilon:g}",
                per_episode=True,
            )
            for epsilon, bar in BARS.items()
        ),
        bars.not_learning(
            [f"paper@{epsilon:g}" for epsilon in BARS],
            "Private-LinOpt-VI as published stays at the level of no learning",
        ),
        bars.smaller("tacit-joint@1", "tree@1", "the Toeplitz counter beats the tree"),
    ),
    notes=lambda size: ("Our own benchmark: the paper has no experiments.",),
)
RIVER_SWIM = Figure(
    id="mixture-jdp/river-swim",
    title="The same on RiverSwim, S = 5, H = 10, a hundred thousand users",
    full=Size(episodes=LONG, instances=10, runs=1),
    quick=Size(episodes=LONG, instances=2, runs=1),
    full_time="42 s of processor time (measured)",
    quick_time="15 s of processor time, estimated from the full size",
    parts=river_parts,
    draw=river_picture,
    claims=(
        bars.below(
            "tacit-joint@1", 0.14, LONG, "tacit-joint learns at epsilon 1", per_episode=True
        ),
        bars.not_learning(["paper@1"], "Private-LinOpt-VI as published does not"),
    ),
    notes=lambda size: ("Our own benchmark: the paper has no experiments.",),
)
