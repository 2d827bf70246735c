"""Figures of "Exploring Differential Privacy in RL: Towards Optimal Regret in Linear MDPs".

The five learners of the paper, with the constants of their theorems (``paper`` calibration) and
with tuned ones (``tight``). ``corrected`` is ``paper`` at this epsilon, but for Ngo's noise, which
is too little. The text gives neither K nor epsilon nor delta, and its code never learns: every
learner plays the first action, which is optimal there (docs/papers/linear_jdp.md#e20). So both ways
are shown here, on the problem the text names, with random ties and exact regret.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from tacit.util.intervals import Interval, mean_interval
from tacit_lab.figures import draw
from tacit_lab.figures.figure import Curve, Figure, Judge, Named, Size
from tacit_lab.figures.judge import every, in_order, lower

DELTA = 1e-5
EPSILON = 10.0

LEARNERS: Mapping[str, str] = {
    "lsvi-ucb": "LSVI-UCB",
    "lsvi-ucb++": "LSVI-UCB++",
    "dp-lsvi-batch": "Luyo et al.",
    "dp-lsvi-adaptive": "Ngo et al.",
    "dp-lsvi-ucb++": "DP-LSVI-UCB++",
}
PRIVATE = ("dp-lsvi-batch", "dp-lsvi-adaptive", "dp-lsvi-ucb++")

GRID = (0.0, 0.1, 0.3, 1.0)
TUNED: Mapping[str, float] = {
    "lsvi-ucb": 0.3,
    "lsvi-ucb++": 0.1,
    "dp-lsvi-batch": 0.0,
    "dp-lsvi-adaptive": 1.0,
    "dp-lsvi-ucb++": 0.0,
}
"""c of the bonus c H |phi|: the best of GRID for each learner, on runs that are not shown."""

SEED = 0
"""Root of the runs shown; the bonus scales were chosen at root 900."""


def _key(name: str, epsilon: float) -> str:
    return name if epsilon == EPSILON else f"{name}@{epsilon:g}"


def _curve(
    key: str, label: str, name: str, size: Size, epsilon: float = EPSILON, **more: Any
) -> Curve:
    """On synthetic-linear with the alpha_h of seeds 0, 1, 2, ..."""
    private = name in (*PRIVATE, "tacit-linear")
    asked = {"epsilon": epsilon, "delta": DELTA} if private else {}
    seeds = range(size.instances)
    problems = tuple(Named("synthetic-linear", {"seed": seed}) for seed in seeds)
    agent = Named(name, {**asked, **more})
    return Curve(_key(key, epsilon), label, agent, problems, size, SEED)


def calibrated(name: str, calibration: str) -> dict[str, Any]:
    """As a parameter; LSVI-UCB has no choice of it."""
    return {"calibration": calibration} if name != "lsvi-ucb" else {}


def by_theory(name: str, size: Size, calibration: str = "paper") -> Curve:
    """Constants as published, noise included; or what is corrected of them."""
    word = "theory" if calibration == "paper" else calibration
    asked = calibrated(name, calibration)
    return _curve(f"{word} {name}", f"{LEARNERS[name]}, {word}", name, size, **asked)


def tuned(name: str, size: Size, epsilon: float = EPSILON) -> Curve:
    """Tight noise, tuned bonus."""
    key, label = f"tuned {name}", f"{LEARNERS[name]}, tuned"
    more = {"bonus_scale": TUNED[name], **calibrated(name, "tight")}
    return _curve(key, label, name, size, epsilon, **more)


def ours(size: Size, epsilon: float = EPSILON) -> Curve:
    """tacit-linear at the same guarantee; it has no bonus to tune."""
    return _curve("tacit-linear", "tacit-linear", "tacit-linear", size, epsilon)


NOTES = (
    "theory: paper calibration, which states the true guarantee, not that asked for; tuned: tight "
    "calibration with a chosen bonus, at the guarantee asked for",
    "reward unknown: with the reward revealed, a learner that ignores all data has regret 0",
    f"bonus scales were chosen from {', '.join(f'{c:g}' for c in GRID)} on other runs",
    "the paper plots |cumulated (H/2 - sampled reward)| of a program in which every learner "
    "plays action 0 (docs/papers/linear_jdp.md#e20 and #e21); that plot is not reproduced",
)

TIES = 9.8
"""Regret per episode of the uniform policy."""
NEAR = 1.0


def one_level(size: Size) -> list[Curve]:
    """All five, twice, Ngo's once more at the guarantee asked for, and ours."""
    return [
        *(by_theory(name, size) for name in LEARNERS),
        by_theory("dp-lsvi-adaptive", size, "corrected"),
        *(tuned(name, size) for name in LEARNERS),
        ours(size),
    ]


def _near(rate: Interval) -> bool | None:
    """Within reach of the uniform policy; open where only the interval reaches it."""
    if TIES - NEAR <= rate.value <= TIES + NEAR:
        return True
    return None if rate.low <= TIES <= rate.high else False


all_play_ties = every(
    "not in the paper: with the theorems' constants (paper calibration) all five play ties",
    f"regret per episode within {NEAR:g} of {TIES} (the uniform policy) for each",
    lambda evidence: {
        f"{shown}, regret per episode": mean_interval(
            evidence.curve(f"theory {name}").final / evidence.size.episodes, least=0.0
        )
        for name, shown in LEARNERS.items()
    },
    _near,
    "somebody has learnt, or unlearnt, something",
    "not decided at this size: one draw of ties serves a whole run, and runs scatter",
)
"""With theory constants regret is that of random ties, whoever learns."""


def order(way: str, calibration: str) -> Judge:
    """DP-LSVI-UCB++ < Ngo < Luyo."""
    luyo, ngo, plus = (f"{way} {name}" for name in PRIVATE)
    return lower(
        f"DP-LSVI-UCB++ beats Ngo, and Ngo beats Luyo ({way} constants, {calibration} calibration)",
        "both ratios below 1, paired over instances",
        {"DP-LSVI-UCB++ / Ngo": (plus, ngo), "Ngo / Luyo": (ngo, luyo)},
        "not in this order here"
        if way == "tuned"
        else "where nobody learns, the order is that of the ties",
    )


beats_non_private = lower(
    "DP-LSVI-UCB++ beats even non-private LSVI-UCB (tuned constants, tight calibration)",
    "ratio below 1, paired over instances",
    {"DP-LSVI-UCB++ / LSVI-UCB": ("tuned dp-lsvi-ucb++", "tuned lsvi-ucb")},
    "without noise there is less regret here; what the published plot shows is E21",
)
same_guarantee_spent_well = lower(
    "not in the paper: tacit-linear beats all three at the same epsilon and delta, in every "
    "calibration that gives them",
    "each ratio below 1, paired over instances",
    {
        f"tacit-linear / {LEARNERS[name]}, {way}": ("tacit-linear", f"{way} {name}")
        for name, published in zip(PRIVATE, ("theory", "corrected", "theory"), strict=True)
        for way in ("tuned", published)
    },
    "it has more regret here",
)


FIGURE_1A = Figure(
    id="linear-jdp/figure-1a",
    title="LSVI-UCB, Luyo, Ngo, LSVI-UCB++ and DP-LSVI-UCB++ at one privacy level",
    full=Size(5000, 10, 1, "4 min of processor time (measured over two sittings)"),
    quick=Size(400, 4, 1, "about a minute on two free cores"),
    parts=one_level,
    draw=lambda evidence: draw.regrets(
        "Five learners on synthetic-linear, one privacy level",
        {
            "constants of the theorems": [
                *evidence.matching("theory *"),
                *evidence.matching("corrected *"),
            ],
            "tuned bonus, tight noise": [
                *evidence.matching("tuned *"),
                evidence.curve("tacit-linear"),
            ],
        },
    ),
    claims=(
        all_play_ties,
        order("theory", "paper"),
        order("tuned", "tight"),
        beats_non_private,
        same_guarantee_spent_well,
    ),
    notes=NOTES,
)

EPSILONS = (1.0, 10.0, 100.0)


def three_levels(size: Size) -> list[Curve]:
    """DP-LSVI-UCB++, the learner without privacy, and ours at the same levels."""
    return [
        *(tuned("dp-lsvi-ucb++", size, epsilon) for epsilon in EPSILONS),
        tuned("lsvi-ucb++", size),
        *(ours(size, epsilon) for epsilon in EPSILONS),
    ]


_BY_LEVEL = {epsilon: _key("tuned dp-lsvi-ucb++", epsilon) for epsilon in EPSILONS}
approaches = in_order(
    "the larger epsilon, the smaller the regret of DP-LSVI-UCB++ (tight calibration)",
    "regret at 1 > at 10 > at 100, paired over instances",
    {f"regret at {epsilon:g}": key for epsilon, key in _BY_LEVEL.items()},
    [(larger, smaller) for smaller, larger in pairwise(_BY_LEVEL.values())],
    "a larger epsilon has no less regret here",
)
arrives = lower(
    "DP-LSVI-UCB++ comes close to non-private LSVI-UCB++ as epsilon grows (tight calibration)",
    "at epsilon 100 at most 1.5 times its regret, paired over instances",
    {"DP-LSVI-UCB++ / LSVI-UCB++ at 100": (_BY_LEVEL[100.0], "tuned lsvi-ucb++")},
    "at epsilon 100, after this many users, it is not close yet",
    1.5,
)
ours_is_ahead = lower(
    "not in the paper: tacit-linear has less regret at every level",
    "tacit-linear / DP-LSVI-UCB++ below 1 at every epsilon, paired over instances",
    {
        f"tacit-linear / DP-LSVI-UCB++ at {e:g}": (_key("tacit-linear", e), key)
        for e, key in _BY_LEVEL.items()
    },
    "it has more regret here",
)


FIGURE_1B = Figure(
    id="linear-jdp/figure-1b",
    title="DP-LSVI-UCB++ at several privacy levels beside LSVI-UCB++",
    full=Size(5000, 10, 1, "47 s of processor time (measured)"),
    quick=Size(400, 4, 1, "about 20 seconds on two free cores"),
    parts=three_levels,
    draw=partial(draw.regret_and_rate, "DP-LSVI-UCB++ and tacit-linear on synthetic-linear"),
    claims=(approaches, arrives, ours_is_ahead),
    notes=NOTES,
)

FIGURES = (FIGURE_1A, FIGURE_1B)
