"""Appendix B: on the hard tree no locally private learner has less regret than the bound.

For every number of users K and every epsilon the tree has the gap that makes it hardest, so every
point is a problem of its own, averaged over which leaf and action are special.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

from tacit.bounds.tabular import theorem_2
from tacit.util.intervals import Interval, mean_interval
from tacit_lab.figures import draw
from tacit_lab.figures.figure import Claim, Curve, Evidence, Figure, Named, Runs, Size
from tacit_lab.figures.judge import judged, judging, together

STATES, ACTIONS, HORIZON = 15, 3, 7
"""The tree of the paper's drawing, with the shortest horizon allowed."""

LEAVES = 9
EPSILONS = (0.2, 2.0)
BLIND = 4 * (1 - 1 / (LEAVES * ACTIONS))
"""Regret of uniform actions over the bound: the gap times (H - d) K (1 - 1/(LA)), exactly."""

DECADES = (0.01, 0.1, 1.0)
LEARNERS = {"ldp-obi": "LDP-OBI Laplace", "tacit-local": "tacit-local", "psrl": "PSRL"}
PRIVATE: dict[str, dict[str, Any]] = {"ldp-obi": {"calibration": "paper"}, "tacit-local": {}}
"""Parameters besides epsilon."""


def bound(epsilon: float, users: int) -> float:
    """What Theorem 2 says of this tree (docs/papers/tabular_ldp.md#e10)."""
    value = theorem_2((HORIZON, STATES, ACTIONS), users, epsilon)
    assert value is not None, "at least ten users are enough for both epsilons"
    return value


def _users(size: Size) -> list[int]:
    return sorted({max(10, round(size.episodes * share)) for share in DECADES})


def parts(size: Size) -> list[Curve]:
    """Every learner at every epsilon and length; references without privacy beside them."""
    tree = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON}
    curves = []
    for epsilon, (name, shown), users in product(EPSILONS, LEARNERS.items(), _users(size)):
        gap = {**tree, "epsilon": epsilon, "users": users}
        trees = tuple(Named("hard-tree", {**gap, "seed": i}) for i in range(size.instances))
        agent = Named(name, {"epsilon": epsilon, **PRIVATE[name]} if name in PRIVATE else {})
        key, label = f"{name}@{epsilon:g}:{users}", f"{shown}, K = {users:,}"
        curves.append(Curve(key, label, agent, trees, replace(size, episodes=users)))
    return curves


def _points(evidence: Evidence, name: str, epsilon: float) -> list[tuple[int, Runs]]:
    return [
        (users, evidence.curve(f"{name}@{epsilon:g}:{users}")) for users in _users(evidence.size)
    ]


def picture(evidence: Evidence) -> draw.Picture:
    """Regret against K, with the bound."""
    drawing, panels = draw.canvas(len(EPSILONS), "the hard tree at its hardest gap")
    for axes, epsilon in zip(panels, EPSILONS, strict=True):
        for name, shown in LEARNERS.items():
            points = _points(evidence, name, epsilon)
            label = f"{shown}: {points[0][1].guarantee.brief()}"
            means = [runs.final.mean() for _, runs in points]
            axes.loglog([users for users, _ in points], means, marker="o", label=label)
        ks = _users(evidence.size)
        axes.loglog(ks, [bound(epsilon, k) for k in ks], "k--", label="lower bound (corrected)")
        blind = [BLIND * bound(epsilon, k) for k in ks]
        axes.loglog(ks, blind, "k:", label="uniform actions (exact): collects nothing, epsilon 0")
        draw.label(axes, f"gap of epsilon {epsilon:g}", "users K", "regret after K users")
    return drawing


def _over_bound(evidence: Evidence, name: str) -> dict[str, Interval]:
    """Regret over bound, with its 95% interval over special pairs, at every epsilon and K."""
    return {
        f"epsilon {epsilon:g}, K = {users:,}": mean_interval(
            runs.final / bound(epsilon, users), least=0.0
        )
        for epsilon in EPSILONS
        for users, runs in _points(evidence, name, epsilon)
    }


@judging
def above_the_bound(evidence: Evidence, name: str, lost: float, constant: str) -> Claim:
    """One private learner against the bound of its epsilon, times ``lost``."""
    ratios = _over_bound(evidence, name)
    below = [mean.below(lost) for mean in ratios.values()]
    return judged(
        f"{LEARNERS[name]}: regret on the hard tree is at least the {constant} bound",
        "regret / bound at least 1",
        {at: mean.value / lost for at, mean in ratios.items()},
        [None if verdict is None else not verdict for verdict in below],
        "below the bound: a constant is wrong, or a guarantee",
    )


def privacy_makes_it_hard(evidence: Evidence) -> Claim:
    """Whether the tree separates private from non-private learning."""
    ratios = _over_bound(evidence, "psrl")
    strict = [mean.below(1.0) for at, mean in ratios.items() if at.startswith("epsilon 0.2")]
    return judged(
        "at epsilon 0.2 a learner without privacy gets under the bound",
        "regret of PSRL / bound of epsilon 0.2 below 1",
        ratios,
        True if True in strict else together(strict),
        "the constants are too small to show it: at the hard gap K Delta^2 / (LA) = 0.04, too "
        "little for anybody to find the special pair, and uniform actions are at "
        f"{BLIND:.3g} times the bound",
    )


LOWER_BOUND = Figure(
    id="tabular-ldp/lower-bound",
    title="regret on the hard tree beside the lower bound of Appendix B",
    full=Size(10**6, 6, 1, "10 min of processor time (measured)"),
    quick=Size(10**5, 6, 1, "79 s of processor time (measured)"),
    parts=parts,
    draw=picture,
    claims=(
        *(above_the_bound(name, 1.0, "corrected") for name in PRIVATE),
        *(above_the_bound(name, math.sqrt(2), "printed, sqrt 2 larger,") for name in PRIVATE),
        privacy_makes_it_hard,
    ),
)
