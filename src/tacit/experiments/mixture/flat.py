"""Private-LinOpt as published: nothing is learnt, by value iteration or policy optimisation.

This is docs/papers/mixture_jdp.md#x2. With every Q clipped to the same number the policy is a draw
of ties, whose mean value is that of the uniform policy exactly: a stage is met once in an episode,
and every (stage, state) is drawn apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Figure, Judge, Named, Size
from tacit.experiments.judge import mean, reason, together
from tacit.experiments.mixture import bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

EPSILONS = (0.1, 1.0, 10.0)
EVERY = 50
"""Users between two releases: rare ones change nothing where it is flat."""
PLACES = {
    "RemapWalk": Named("remap-walk"),
    "RiverSwim": Named("river-swim", {"states": 5, "horizon": 10, "rewards": "bernoulli"}),
}
UNIFORM = {"RemapWalk": 2.801629281, "RiverSwim": 0.877278030}
"""Regret per episode of the uniform policy, exact."""
WAYS = {"vi": "private-linopt-vi", "po": "private-linopt-po"}
NEAR = 0.02


def parts(size: Size) -> list[Curve]:
    """Both algorithms at three levels on both problems."""
    return [
        bars.curve(
            f"{way}@{epsilon:g} {place}",
            f"Private-LinOpt-{way.upper()} asked for {epsilon:g}",
            Named(name, {"epsilon": epsilon, "calibration": "paper", "every": EVERY}),
            problem,
            size,
            seed=710,
        )
        for place, problem in PLACES.items()
        for way, name in WAYS.items()
        for epsilon in EPSILONS
    ]


def picture(evidence: Evidence) -> Picture:
    """Regret per episode with the level of the uniform policy."""
    drawing, panels = draw.canvas(2, "Private-LinOpt as published")
    for axes, place in zip(panels, PLACES, strict=True):
        drawn = [runs for key, runs in evidence.curves.items() if key.endswith(f" {place}")]
        draw.rate_panel(axes, drawn, place)
        axes.axhline(UNIFORM[place], color="black", ls="--", lw=1)
        axes.set_ylim(0.5 * UNIFORM[place], 2.0 * UNIFORM[place])
    return drawing


def plays_ties(place: str) -> Judge:
    """Value iteration: a fresh draw of ties at every release."""

    def judge(evidence: Evidence) -> Claim:
        level = UNIFORM[place]
        keys = [f"vi@{epsilon:g} {place}" for epsilon in EPSILONS]
        K = evidence.size.episodes
        rates = [mean(evidence.curve(key).runs[:, -1] / K) for key in keys]
        holds = together([r.within((1 - NEAR) * level, (1 + NEAR) * level) for r in rates])
        return Claim(
            claim=f"{place}: as published, value iteration learns nothing at any epsilon",
            expected=f"regret per episode within {NEAR:.0%} of {level:.4g}, the uniform policy",
            measured={
                f"regret per episode at {e:g}": r.value
                for e, r in zip(EPSILONS, rates, strict=True)
            },
            holds=holds,
            why=reason(holds, "some policy is not a draw of ties"),
        )

    return judge


def stays_uniform(evidence: Evidence) -> Claim:
    """Mirror descent on equal Q never leaves the uniform policy."""
    K = evidence.size.episodes
    off = {
        f"{place}, epsilon {epsilon:g}": float(
            abs(evidence.curve(f"po@{epsilon:g} {place}").runs[:, -1] / K - UNIFORM[place]).max()
        )
        for place in PLACES
        for epsilon in EPSILONS
    }
    holds = max(off.values()) < 1e-6
    return Claim(
        claim="as published, policy optimisation stays at the uniform policy",
        expected="regret per episode off by less than 1e-6",
        measured=off,
        holds=holds,
        why=reason(holds, "some Q was below its cap"),
    )


NO_LEARNING = Figure(
    id="mixture-jdp/no-learning",
    title="Private-LinOpt-VI and -PO with the published constants, on two problems",
    full=Size(episodes=10_000, instances=10, runs=1),
    quick=Size(episodes=10_000, instances=3, runs=1),
    full_time="63 s of processor time (measured)",
    quick_time="21 s of processor time, already compiled (measured)",
    parts=parts,
    draw=picture,
    claims=(*(plays_ties(place) for place in PLACES), stays_uniform),
    notes=lambda size: (
        "Our own benchmark (docs/papers/mixture_jdp.md#x2): no experiment in the paper.",
        "Ties are drawn at random: with the first of equal actions taken instead, regret per "
        "episode would be 2.576 and 0.857.",
    ),
)
