"""Joint privacy: Private-LinOpt beside tacit-joint, and value iteration beside policy optimisation.

The paper has no experiments; these are the benchmarks docs/papers/mixture_jdp.md#x2, #x3, #x4 and
#x7. As published nothing is learnt: with every Q clipped to the same number the policy is a draw of
ties, whose mean value is that of the uniform policy exactly, because a stage is met once in an
episode and every (stage, state) is drawn apart.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tacit_lab.figures import draw
from tacit_lab.figures.draw import Picture
from tacit_lab.figures.evidence import Evidence
from tacit_lab.figures.figure import Claim, Curve, Figure, Named, Size
from tacit_lab.figures.judge import judged, mean, second_half
from tacit_lab.papers.mixture.bars import WALK, curve, not_learning, rate_below, smaller

EPSILONS = (0.1, 1.0, 10.0)
EVERY = 50
"""Users between two releases: rare ones change nothing where it is flat."""
PLACES = {
    "RemapWalk": WALK,
    "RiverSwim": Named("river-swim", {"states": 5, "horizon": 10, "rewards": "bernoulli"}),
}
UNIFORM = {"RemapWalk": 2.801629281, "RiverSwim": 0.877278030}
"""Regret per episode of the uniform policy, exact."""
WAYS = {"vi": "private-linopt-vi", "po": "private-linopt-po"}
NEAR = 0.02


def flat_parts(size: Size) -> list[Curve]:
    """Both algorithms at three levels on both problems."""
    found = []
    for place, problem in PLACES.items():
        for way, name in WAYS.items():
            for epsilon in EPSILONS:
                key = f"{way}@{epsilon:g} {place}"
                label = f"Private-LinOpt-{way.upper()} asked for {epsilon:g}"
                asked = {"epsilon": epsilon, "calibration": "paper", "every": EVERY}
                found.append(curve(key, label, problem, size, 710, name, **asked))
    return found


def flat_picture(evidence: Evidence) -> Picture:
    """Regret per episode with the level of the uniform policy."""
    drawing, panels = draw.canvas(2, "Private-LinOpt as published")
    for axes, place in zip(panels, PLACES, strict=True):
        draw.rate_panel(axes, evidence.ending(f" {place}"), place)
        axes.axhline(UNIFORM[place], color="black", ls="--", lw=1)
        axes.set_ylim(0.5 * UNIFORM[place], 2.0 * UNIFORM[place])
    return drawing


def plays_ties(place: str, evidence: Evidence) -> Claim:
    """Value iteration: a fresh draw of ties at every release."""
    level, K = UNIFORM[place], evidence.size.episodes
    rates = {
        f"regret per episode at {e:g}": mean(evidence.curve(f"vi@{e:g} {place}").runs[:, -1] / K)
        for e in EPSILONS
    }
    return judged(
        f"{place}: as published, value iteration learns nothing at any epsilon",
        f"regret per episode within {NEAR:.0%} of {level:.4g}, the uniform policy",
        rates,
        [r.within((1 - NEAR) * level, (1 + NEAR) * level) for r in rates.values()],
        "some policy is not a draw of ties",
    )


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
    return judged(
        "as published, policy optimisation stays at the uniform policy",
        "regret per episode off by less than 1e-6",
        off,
        max(off.values()) < 1e-6,
        "some Q was below its cap",
    )


NO_LEARNING = Figure(
    id="mixture-jdp/no-learning",
    title="Private-LinOpt-VI and -PO with the published constants, on two problems",
    full=Size(episodes=10_000, instances=10, runs=1),
    quick=Size(episodes=10_000, instances=3, runs=1),
    full_time="63 s of processor time (measured)",
    quick_time="21 s of processor time, already compiled (measured)",
    parts=flat_parts,
    draw=flat_picture,
    claims=(*(partial(plays_ties, place) for place in PLACES), stays_uniform),
    notes=lambda size: (
        "Our own benchmark (docs/papers/mixture_jdp.md#x2): no experiment in the paper.",
        "Ties are drawn at random: with the first of equal actions taken instead, regret per "
        "episode would be 2.576 and 0.857.",
    ),
)

BARS = {0.1: 1.7, 1.0: 0.23, 10.0: 0.04}
USERS, LONG = 10_000, 100_000


def _both(problem: Named, size: Size, seed: int, epsilon: float, every: int) -> tuple[Curve, Curve]:
    """Private-LinOpt-VI as published, and tacit-joint at the same request."""
    label, asked = f"Private-LinOpt-VI asked for {epsilon:g}", {"epsilon": epsilon}
    paper = {**asked, "calibration": "paper", "every": every}
    return (
        curve(f"paper@{epsilon:g}", label, problem, size, seed, "private-linopt-vi", **paper),
        curve(
            f"tacit-joint@{epsilon:g}", "tacit-joint", problem, size, seed, "tacit-joint", **asked
        ),
    )


def walk_parts(size: Size) -> list[Curve]:
    """The published learner, the non-private one, and ours with two counters."""
    at = (WALK, size, 700)
    tree: dict[str, Any] = {"epsilon": 1.0, "counter": "tree"}
    return [
        curve("linopt-vi", "LinOpt-VI", *at, "linopt-vi", every=20),
        *(part for epsilon in BARS for part in _both(*at, epsilon, EVERY)),
        curve("tree@1", "tacit-joint with a tree", *at, "tacit-joint", **tree),
    ]


def river_parts(size: Size) -> list[Curve]:
    """One level of privacy, a hundred thousand users."""
    river = Named("river-swim", {"states": 5, "horizon": 10})
    return list(_both(river, size, 800, 1.0, 500))


REMAP_WALK = Figure(
    id="mixture-jdp/remap-walk",
    title="Private-LinOpt-VI as published and tacit-joint at the same request, on RemapWalk",
    full=Size(episodes=USERS, instances=10, runs=1),
    quick=Size(episodes=USERS, instances=3, runs=1),
    full_time="34 s of processor time (measured)",
    quick_time="12 s of processor time, estimated from the full size",
    parts=walk_parts,
    draw=lambda evidence: draw.regret_and_rate(
        "Linear mixtures under joint privacy: RemapWalk", list(evidence.curves.values())
    ),
    claims=(
        *(
            partial(
                rate_below, f"tacit-joint@{e:g}", bar, USERS, f"tacit-joint learns at epsilon {e:g}"
            )
            for e, bar in BARS.items()
        ),
        partial(
            not_learning,
            [f"paper@{epsilon:g}" for epsilon in BARS],
            "Private-LinOpt-VI as published stays at the level of no learning",
        ),
        partial(smaller, "tacit-joint@1", "tree@1", "the Toeplitz counter beats the tree"),
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
    draw=lambda evidence: draw.rates(
        "RiverSwim under joint privacy, S = 5, H = 10", "regret per episode", evidence
    ),
    claims=(
        partial(rate_below, "tacit-joint@1", 0.14, LONG, "tacit-joint learns at epsilon 1"),
        partial(not_learning, ["paper@1"], "Private-LinOpt-VI as published does not"),
    ),
    notes=lambda size: ("Our own benchmark: the paper has no experiments.",),
)

LEVELS = (1.0, 10.0)


def models_parts(size: Size) -> list[Curve]:
    """Both algorithms without and with privacy; both models at two levels."""

    def at(key: str, label: str, name: str, **parameters: Any) -> Curve:
        return curve(key, label, WALK, size, 740, name, **parameters)

    found = [
        at("vi", "LinOpt-VI", "linopt-vi", every=EVERY),
        at("po", "LinOpt-PO", "linopt-po", every=EVERY),
    ]
    for epsilon in LEVELS:
        asked = {"epsilon": epsilon, "every": EVERY}
        joint, local = {**asked, "counter": "toeplitz"}, {**asked, "model": "local"}
        found += [
            at(f"vi@{epsilon:g}", "Private-LinOpt-VI", "private-linopt-vi", **joint),
            at(f"po@{epsilon:g}", "Private-LinOpt-PO", "private-linopt-po", **joint),
            at(f"local-vi@{epsilon:g}", "Private-LinOpt-VI", "private-linopt-vi", **local),
            at(f"local@{epsilon:g}", "tacit-local", "tacit-local", epsilon=epsilon),
            at(f"joint@{epsilon:g}", "tacit-joint", "tacit-joint", epsilon=epsilon),
        ]
    return found


def models_picture(evidence: Evidence) -> Picture:
    """Left without privacy and at the larger level, right at the smaller one."""
    free = [evidence.curve("vi"), evidence.curve("po")]
    panels = {f"epsilon {e:g}": [*free, *evidence.ending(f"@{e:g}")] for e in reversed(LEVELS)}
    return draw.regrets("RemapWalk: two algorithms, two models of privacy", panels)


def learns_nothing(key: str, said: str, evidence: Evidence) -> Claim:
    """The second half of the users pays as much as the first."""
    half = second_half(evidence.curve(key))
    return judged(
        said,
        "second half of the users at least 0.9 of the first, by two standard errors",
        {"second half / first half": half},
        half.above(0.9),
        "it bends",
    )


MODELS = Figure(
    id="mixture-jdp/models",
    title="Value iteration beside policy optimisation, joint beside local privacy, on RemapWalk",
    full=Size(episodes=10_000, instances=10, runs=1),
    quick=Size(episodes=10_000, instances=3, runs=1),
    full_time="54 s of processor time (measured)",
    quick_time="7 s of processor time, already compiled (measured)",
    parts=models_parts,
    draw=models_picture,
    claims=(
        partial(smaller, "vi", "po", "without privacy value iteration beats policy optimisation"),
        partial(
            smaller, "vi@10", "po@10", "at epsilon 10 value iteration beats policy optimisation"
        ),
        partial(
            learns_nothing, "local-vi@1", "local privacy, epsilon 1: value targets learn nothing"
        ),
        partial(
            learns_nothing, "local@1", "local privacy, epsilon 1: one-step reports learn nothing"
        ),
        partial(
            rate_below, "local@10", 1.0, USERS, "local privacy, epsilon 10: one-step reports learn"
        ),
        partial(smaller, "joint@1", "local@1", "a trusted curator lowers regret at epsilon 1"),
        partial(smaller, "joint@10", "local@10", "a trusted curator lowers regret at epsilon 10"),
    ),
    notes=lambda size: (
        "Our own benchmark (docs/papers/mixture_jdp.md#x7): no experiment in the paper.",
    ),
)
