"""H = 1: the linear bandit under local privacy, published noise beside the least.

See docs/papers/mixture_ldp.md#bandit-benchmark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Figure, Judge, Named, Size
from tacit.experiments.judge import mean, ratio, reason, together
from tacit.experiments.mixture import bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

LEVELS = ((1.0, 0.01), (10.0, 0.01), (1.0, 1e-5))
ARMS = Named("linear-bandit")
UNIFORM = 0.3395
"""Regret per round of uniformly random arms."""
LAZY = 20


def _key(way: str, epsilon: float, delta: float) -> str:
    return f"{way}@{epsilon:g},{delta:g}"


def parts(size: Size) -> list[Curve]:
    """Both calibrations at three levels."""
    labels = {"paper": "as published", "tight": "least noise"}
    return [
        bars.curve(
            _key(way, epsilon, delta),
            f"LDP bandit, {label}",
            Named(
                "ldp-bandit",
                {"epsilon": epsilon, "delta": delta, "calibration": way, "every": LAZY},
            ),
            ARMS,
            size,
            seed=540,
        )
        for epsilon, delta in LEVELS
        for way, label in labels.items()
    ]


def picture(evidence: Evidence) -> Picture:
    """Cumulative regret."""
    drawing, (axes,) = draw.canvas(1, "the linear bandit under local privacy, d = 5, 20 arms")
    draw.regret_panel(axes, list(evidence.curves.values()), "cumulative regret")
    return drawing


def least_noise_wins(evidence: Evidence) -> Claim:
    """The same guarantee asked for, less noise."""
    ratios = {
        f"epsilon {e:g}, delta {d:g}": ratio(
            evidence.curve(_key("tight", e, d)), evidence.curve(_key("paper", e, d))
        )
        for e, d in LEVELS
    }
    holds = together([r.below(0.75) for r in ratios.values()])
    return Claim(
        claim="with the least noise for the same request regret is lower",
        expected="least noise over published below 0.75 at every level, paired over seeds",
        measured={name: r.value for name, r in ratios.items()},
        holds=holds,
        why=reason(holds, "the gain is smaller"),
    )


def learns(way: str, epsilon: float, delta: float) -> Judge:
    """Less than half of the regret of random arms."""

    def judge(evidence: Evidence) -> Claim:
        runs = evidence.curve(_key(way, epsilon, delta))
        rate = mean(runs.runs[:, -1] / runs.curve.episodes)
        holds = rate.below(0.5 * UNIFORM)
        return Claim(
            claim=f"{'as published' if way == 'paper' else 'with the least noise'} the bandit is "
            f"learnt at epsilon {epsilon:g}, delta {delta:g}",
            expected=f"regret per round below {0.5 * UNIFORM:.3g}, half of that of random arms",
            measured={"regret per round": rate.value},
            holds=holds,
            why=reason(holds, "noise and shift outweigh the data at this length"),
        )

    return judge


BANDIT = Figure(
    id="mixture-ldp/bandit",
    title="The linear bandit under local privacy, published noise beside the least",
    full=Size(episodes=20_000, instances=10, runs=1),
    quick=Size(episodes=20_000, instances=3, runs=1),
    full_time="102 s of processor time (measured)",
    quick_time="45 s of processor time (measured)",
    parts=parts,
    draw=picture,
    claims=(
        least_noise_wins,
        learns("paper", 10.0, 0.01),
        learns("paper", 1.0, 0.01),
        learns("tight", 1.0, 0.01),
    ),
    notes=lambda size: (
        "H = 1 is said to give the bandit; as written it does not (docs/papers/mixture_ldp.md#e7): "
        "this one is ours.",
    ),
)
