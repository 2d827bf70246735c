"""When to release: growth of the schedule and length of the first batch, on RemapWalk.

See docs/papers/mixture_jdp.md#x6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Figure, Named, Size
from tacit.experiments.judge import mean, ratio, reason, together
from tacit.experiments.mixture import bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

GROWTHS = (1.02, 1.1, 1.25, 1.5, 2.0, 4.0)
FIRSTS = (10, 100, 1_000)
EPSILONS = (0.1, 1.0, 10.0)
WALK = Named("remap-walk")
SEED = 730


def parts(size: Size) -> list[Curve]:
    """Growth at epsilon 1, the first batch at three levels."""
    growth = [_curve(f"growth {growth:g}", size, epsilon=1.0, growth=growth) for growth in GROWTHS]
    first = [
        _curve(f"first {first}@{epsilon:g}", size, epsilon=epsilon, first=first)
        for epsilon in EPSILONS
        for first in FIRSTS
    ]
    return [*growth, *first]


def _curve(key: str, size: Size, **parameters: float) -> Curve:
    label = f"tacit-joint, {key.partition('@')[0]}"
    return bars.curve(key, label, Named("tacit-joint", parameters), WALK, size, SEED)


def picture(evidence: Evidence) -> Picture:
    """Final regret per episode with two standard errors."""
    drawing, (left, right) = draw.canvas(2, "tacit-joint on RemapWalk: when to release")
    left.set_title("growth of the schedule, epsilon 1", fontsize="medium")
    _points(left, evidence, [f"growth {g:g}" for g in GROWTHS], GROWTHS, "joint epsilon 1")
    right.set_title("users before the first release", fontsize="medium")
    for epsilon in EPSILONS:
        keys = [f"first {first}@{epsilon:g}" for first in FIRSTS]
        _points(right, evidence, keys, FIRSTS, f"joint epsilon {epsilon:g}")
    right.set_yscale("log")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_ylabel("regret per episode")
        axes.grid(alpha=0.3)
        draw.legend_below(axes)
    return drawing


def _points(
    axes: Axes, evidence: Evidence, keys: Sequence[str], xs: Sequence[float], label: str
) -> None:
    found = [mean(evidence.curve(key).runs[:, -1] / evidence.size.episodes) for key in keys]
    values = np.array([one.value for one in found])
    errors = np.array([one.high - one.value for one in found])
    axes.errorbar(xs, values, yerr=errors, marker="o", capsize=3, label=label)


def moderate_growth(evidence: Evidence) -> Claim:
    """Neither at every user nor too rarely."""
    finals = {g: evidence.curve(f"growth {g:g}") for g in GROWTHS}
    chosen = finals[1.25]
    verdicts = [ratio(chosen, finals[g]).below(1.0) for g in (GROWTHS[0], GROWTHS[-1])]
    holds = together(verdicts)
    return Claim(
        claim="releases at moderately growing distances are best",
        expected="regret at growth 1.25 below that at 1.02 and at 4, paired over seeds",
        measured={f"regret at {g:g}": float(runs.final.mean()) for g, runs in finals.items()},
        holds=holds,
        why=reason(
            holds,
            "many releases cost next to nothing through the Toeplitz counter and with widths that "
            "know the noise, so frequent plans do not lose",
        ),
    )


def patience(evidence: Evidence) -> Claim:
    """The smaller epsilon, the longer the best first batch."""
    best = {
        epsilon: min(
            FIRSTS, key=lambda f: float(evidence.curve(f"first {f}@{epsilon:g}").final.mean())
        )
        for epsilon in EPSILONS
    }
    weak = ratio(evidence.curve("first 10@10"), evidence.curve("first 1000@10")).below(1.0)
    strict = ratio(evidence.curve("first 1000@0.1"), evidence.curve("first 10@0.1")).below(1.0)
    holds = together([weak, strict])
    return Claim(
        claim="the smaller epsilon, the longer should be the first batch",
        expected="a first batch of 1000 loses to 10 at epsilon 10 and wins at 0.1",
        measured={f"best first batch at {e:g}": float(f) for e, f in best.items()},
        holds=holds,
        why=reason(
            holds,
            "at epsilon 0.1 an early plan does not hurt: where noise drowns everything it is one "
            "more draw of ties",
        ),
    )


SCHEDULE = Figure(
    id="mixture-jdp/schedule",
    title="tacit-joint on RemapWalk with other release schedules",
    full=Size(episodes=10_000, instances=20, runs=1),
    quick=Size(episodes=10_000, instances=5, runs=1),
    full_time="42 s of processor time (measured)",
    quick_time="14 s of processor time, already compiled (measured)",
    parts=parts,
    draw=picture,
    claims=(moderate_growth, patience),
    notes=lambda size: (
        "Our own benchmark (docs/papers/mixture_jdp.md#x6): no experiment in the paper.",
    ),
)
