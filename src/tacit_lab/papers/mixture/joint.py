"""Joint privacy: Private-LinOpt beside tacit-joint, and value iteration beside policy optimisation.

The paper has no experiments; these are the benchmarks docs/papers/mixture_jdp.md#x2, #x3, #x4 and
#x7. As published nothing is learnt: with every Q clipped to the same number the policy is a draw of
ties, whose mean value is that of the uniform policy exactly, because a stage is met once in an
episode and every (stage, state) is drawn apart.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from tacit_lab.figures import draw
from tacit_lab.figures.figure import Curve, Evidence, Figure, Judge, Named, Size
from tacit_lab.figures.judge import every, mean, not_learning, rate_below_bar, second_half, smaller

WALK = Named("remap-walk")
EPSILONS = (0.1, 1.0, 10.0)
TIGHT = {"calibration": "tight"}
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
    curves = []
    for (place, problem), (way, name), e in product(PLACES.items(), WAYS.items(), EPSILONS):
        key, label = f"{way}@{e:g} {place}", f"Private-LinOpt-{way.upper()} asked for {e:g}"
        asked = {"epsilon": e, "calibration": "paper", "every": EVERY}
        curves.append(Curve(key, label, Named(name, asked), (problem,) * size.instances, size, 710))
    return curves


def flat_picture(evidence: Evidence) -> draw.Picture:
    """Regret per episode with the level of the uniform policy."""
    drawing, panels = draw.canvas(2, "Private-LinOpt as published")
    for axes, place in zip(panels, PLACES, strict=True):
        draw.rate_panel(axes, evidence.matching(f"* {place}"), place)
        axes.axhline(UNIFORM[place], color="black", ls="--", lw=1)
        axes.set_ylim(0.5 * UNIFORM[place], 2.0 * UNIFORM[place])
    return drawing


def plays_ties(place: str) -> Judge:
    """Value iteration: a fresh draw of ties at every release."""
    level = UNIFORM[place]
    return every(
        f"{place}: as published, value iteration learns nothing at any epsilon",
        f"regret per episode within {NEAR:.0%} of {level:.4g}, the uniform policy",
        lambda evidence: {
            f"regret per episode at {e:g}": mean(evidence.curve(f"vi@{e:g} {place}").rates)
            for e in EPSILONS
        },
        lambda rate: rate.within((1 - NEAR) * level, (1 + NEAR) * level),
        "some policy is not a draw of ties",
    )


stays_uniform = every(
    "as published, policy optimisation stays at the uniform policy",
    "regret per episode off by less than 1e-6",
    lambda evidence: {
        f"{place}, epsilon {e:g}": float(
            abs(evidence.curve(f"po@{e:g} {place}").rates - UNIFORM[place]).max()
        )
        for place, e in product(PLACES, EPSILONS)
    },
    lambda off: off < 1e-6,
    "some Q was below its cap",
)
"""Mirror descent on equal Q never leaves the uniform policy."""


NO_LEARNING = Figure(
    id="mixture-jdp/no-learning",
    title="Private-LinOpt-VI and -PO with the published constants, on two problems",
    full=Size(10_000, 10, 1, "63 s of processor time (measured)"),
    quick=Size(10_000, 3, 1, "21 s of processor time, already compiled (measured)"),
    parts=flat_parts,
    draw=flat_picture,
    claims=(*map(plays_ties, PLACES), stays_uniform),
    notes=(
        "Our own benchmark (docs/papers/mixture_jdp.md#x2): no experiment in the paper.",
        "Ties are drawn at random: with the first of equal actions taken instead, regret per "
        "episode would be 2.576 and 0.857.",
        "Calibration paper.",
    ),
)

BARS = {0.1: 1.7, 1.0: 0.23, 10.0: 0.04}
USERS, LONG = 10_000, 100_000
CALIBRATED = (
    "Our own benchmark: the paper has no experiments. Private-LinOpt-VI: calibration paper; "
    "LinOpt-VI: tight."
)


def _both(problem: Named, size: Size, seed: int, e: float, every: int) -> list[Curve]:
    """Private-LinOpt-VI as published, and tacit-joint at the same request."""
    problems, label = (problem,) * size.instances, f"Private-LinOpt-VI asked for {e:g}"
    asked = {"epsilon": e, "calibration": "paper", "every": every}
    paper, ours = Named("private-linopt-vi", asked), Named("tacit-joint", {"epsilon": e})
    return [
        Curve(f"paper@{e:g}", label, paper, problems, size, seed),
        Curve(f"tacit-joint@{e:g}", "tacit-joint", ours, problems, size, seed),
    ]


def walk_parts(size: Size) -> list[Curve]:
    """The published learner, the non-private one, and ours with two counters."""
    at = ((WALK,) * size.instances, size, 700)
    tree = Named("tacit-joint", {"epsilon": 1.0, "counter": "tree"})
    return [
        Curve("linopt-vi", "LinOpt-VI", Named("linopt-vi", {"every": 20, **TIGHT}), *at),
        *(part for epsilon in BARS for part in _both(WALK, size, 700, epsilon, EVERY)),
        Curve("tree@1", "tacit-joint with a tree", tree, *at),
    ]


def river_parts(size: Size) -> list[Curve]:
    """One level of privacy, a hundred thousand users."""
    river = Named("river-swim", {"states": 5, "horizon": 10})
    return _both(river, size, 800, 1.0, 500)


REMAP_WALK = Figure(
    id="mixture-jdp/remap-walk",
    title="Private-LinOpt-VI as published and tacit-joint at the same request, on RemapWalk",
    full=Size(USERS, 10, 1, "34 s of processor time (measured)"),
    quick=Size(USERS, 3, 1, "12 s of processor time, estimated from the full size"),
    parts=walk_parts,
    draw=partial(draw.regret_and_rate, "Linear mixtures under joint privacy: RemapWalk"),
    claims=(
        *(
            rate_below_bar(f"tacit-joint@{e:g}", bar, USERS, f"tacit-joint learns at epsilon {e:g}")
            for e, bar in BARS.items()
        ),
        not_learning(
            [f"paper@{epsilon:g}" for epsilon in BARS],
            "Private-LinOpt-VI as published stays at the level of no learning",
        ),
        smaller("tacit-joint@1", "tree@1", "the Toeplitz counter beats the tree"),
    ),
    notes=(CALIBRATED,),
)

RIVER_SWIM = Figure(
    id="mixture-jdp/river-swim",
    title="The same on RiverSwim, S = 5, H = 10, a hundred thousand users",
    full=Size(LONG, 10, 1, "42 s of processor time (measured)"),
    quick=Size(LONG, 2, 1, "15 s of processor time, estimated from the full size"),
    parts=river_parts,
    draw=partial(draw.rates, "RiverSwim under joint privacy, S = 5, H = 10", "regret per episode"),
    claims=(
        rate_below_bar("tacit-joint@1", 0.14, LONG, "tacit-joint learns at epsilon 1"),
        not_learning(["paper@1"], "Private-LinOpt-VI as published does not"),
    ),
    notes=(CALIBRATED,),
)

LEVELS = (1.0, 10.0)


def models_parts(size: Size) -> list[Curve]:
    """Both algorithms without and with privacy; both models at two levels."""

    def at(key: str, label: str, name: str, **parameters: Any) -> Curve:
        return Curve(key, label, Named(name, parameters), (WALK,) * size.instances, size, 740)

    curves = [
        at("vi", "LinOpt-VI", "linopt-vi", every=EVERY, **TIGHT),
        at("po", "LinOpt-PO", "linopt-po", every=EVERY, **TIGHT),
    ]
    for e in LEVELS:
        joint: dict[str, Any] = {"epsilon": e, "every": EVERY, "counter": "toeplitz", **TIGHT}
        local: dict[str, Any] = {"epsilon": e, "every": EVERY, "model": "local", **TIGHT}
        curves += [
            at(f"vi@{e:g}", "Private-LinOpt-VI", "private-linopt-vi", **joint),
            at(f"po@{e:g}", "Private-LinOpt-PO", "private-linopt-po", **joint),
            at(f"local-vi@{e:g}", "Private-LinOpt-VI", "private-linopt-vi", **local),
            at(f"local@{e:g}", "tacit-local", "tacit-local", epsilon=e),
            at(f"joint@{e:g}", "tacit-joint", "tacit-joint", epsilon=e),
        ]
    return curves


def models_picture(evidence: Evidence) -> draw.Picture:
    """Left without privacy and at the larger level, right at the smaller one."""
    free = [evidence.curve("vi"), evidence.curve("po")]
    panels = {f"epsilon {e:g}": [*free, *evidence.matching(f"*@{e:g}")] for e in reversed(LEVELS)}
    return draw.regrets("RemapWalk: two algorithms, two models of privacy", panels)


def learns_nothing(key: str, claim: str) -> Judge:
    """The second half of the users pays as much as the first."""
    return every(
        claim,
        "second half of the users at least 0.9 of the first, by two standard errors",
        lambda evidence: {"second half / first half": second_half(evidence.curve(key))},
        lambda half: half.above(0.9),
        "it bends",
    )


MODELS = Figure(
    id="mixture-jdp/models",
    title="Value iteration beside policy optimisation, joint beside local privacy, on RemapWalk",
    full=Size(10_000, 10, 1, "54 s of processor time (measured)"),
    quick=Size(10_000, 3, 1, "7 s of processor time, already compiled (measured)"),
    parts=models_parts,
    draw=models_picture,
    claims=(
        smaller("vi", "po", "without privacy value iteration beats policy optimisation"),
        smaller("vi@10", "po@10", "at epsilon 10 value iteration beats policy optimisation"),
        learns_nothing("local-vi@1", "local privacy, epsilon 1: value targets learn nothing"),
        learns_nothing("local@1", "local privacy, epsilon 1: one-step reports learn nothing"),
        rate_below_bar("local@10", 1.0, USERS, "local privacy, epsilon 10: one-step reports learn"),
        smaller("joint@1", "local@1", "a trusted curator lowers regret at epsilon 1"),
        smaller("joint@10", "local@10", "a trusted curator lowers regret at epsilon 10"),
    ),
    notes=(
        "Our own benchmark (docs/papers/mixture_jdp.md#x7): no experiment in the paper.",
        "Everything is tight.",
    ),
)
