"""From the published algorithm to tacit-joint: which change buys what, on RemapWalk.

See docs/papers/mixture_jdp.md#x3 and docs/papers/mixture_jdp.md#x5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Figure, Judge, Named, Size
from tacit.experiments.judge import ratio, reason, together
from tacit.experiments.mixture import bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

USERS = 10_000
EPSILONS = (1.0, 10.0)
RELEASES = 22
WALK = Named("remap-walk")
SEED = 720


def _steps(epsilon: float, size: Size) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Key, label, agent and parameters of every rung."""
    every = max(1, size.episodes // RELEASES)
    asked = {"epsilon": epsilon}
    targeted = {**asked, "every": every}
    free = "tacit-joint"
    return [
        (
            "paper",
            "as published",
            "private-linopt-vi",
            {**targeted, "calibration": "paper"},
        ),
        ("tight-tree", "least noise, tree", "private-linopt-vi", targeted),
        (
            "tight-root",
            "least noise, Toeplitz",
            "private-linopt-vi",
            {**targeted, "counter": "toeplitz"},
        ),
        ("free-tree", "V-free, tree", free, {**asked, "counter": "tree"}),
        ("free-root", "V-free, Toeplitz (tacit-joint)", free, asked),
        ("free-theory", "V-free, bonus of the theorem", free, {**asked, "bonus_scale": 1.0}),
    ]


def parts(size: Size) -> list[Curve]:
    """Every rung at two levels."""
    return [
        bars.curve(f"{key}@{epsilon:g}", label, Named(name, parameters), WALK, size, SEED)
        for epsilon in EPSILONS
        for key, label, name, parameters in _steps(epsilon, size)
    ]


def picture(evidence: Evidence) -> Picture:
    """One panel of regret per level."""
    drawing, panels = draw.canvas(len(EPSILONS), "from Private-LinOpt-VI to tacit-joint, RemapWalk")
    for axes, epsilon in zip(panels, EPSILONS, strict=True):
        drawn = [runs for key, runs in evidence.curves.items() if key.endswith(f"@{epsilon:g}")]
        draw.regret_panel(axes, drawn, f"epsilon {epsilon:g} asked for")
    return drawing


def rung(better: str, worse: str, said: str, factor: float) -> Judge:
    """One rung has less regret than another, by a factor."""

    def judge(evidence: Evidence) -> Claim:
        ratios = {
            e: ratio(evidence.curve(f"{better}@{e:g}"), evidence.curve(f"{worse}@{e:g}"))
            for e in EPSILONS
        }
        holds = together([r.below(factor) for r in ratios.values()])
        return Claim(
            claim=said,
            expected=f"{better} / {worse} below {factor:g} at every epsilon, paired over seeds",
            measured={f"{better} / {worse} at {e:g}": r.value for e, r in ratios.items()},
            holds=holds,
            why=reason(holds, _WHY.get(better, "it does not at this length")),
        )

    return judge


_WHY = {
    "tight-root": "at epsilon 1 value-targeted regression learns nothing with either counter: "
    "while values are clipped flat its features are all alike (docs/papers/mixture_jdp.md#b1)",
}

LADDER = Figure(
    id="mixture-jdp/ladder",
    title="From Private-LinOpt-VI to tacit-joint step by step, on RemapWalk",
    full=Size(episodes=USERS, instances=20, runs=1),
    quick=Size(episodes=USERS, instances=4, runs=1),
    full_time="21 s of processor time (measured)",
    quick_time="4 s of processor time, already compiled (measured)",
    parts=parts,
    draw=picture,
    claims=(
        rung("tight-root", "tight-tree", "a better counter alone lowers regret", 1.0),
        rung("free-tree", "tight-tree", "sums that do not depend on V are the largest gain", 0.5),
        rung("free-root", "free-tree", "on these, the better counter lowers regret", 1.0),
        rung("free-root", "free-theory", "a bonus of a tenth lowers regret", 1.0),
        rung("free-root", "paper", "all together: a tenth of the published regret", 0.1),
        bars.below(
            "free-theory@1",
            0.7,
            USERS,
            "at epsilon 1 V-free sums learn also with the theorem's bonus",
            per_episode=True,
            why="learning starts late: the widths of the theorem are loose at this length",
        ),
    ),
    notes=lambda size: (
        "Our own benchmark (docs/papers/mixture_jdp.md#x3): no experiment in the paper.",
        f"Value-targeted learners release {RELEASES} times, evenly; V-free ones on their own "
        "geometric schedule.",
    ),
)


def states_parts(size: Size) -> list[Curve]:
    """tacit-joint on two walks that differ in the number of states only."""
    return [
        bars.curve(
            f"{states}@{epsilon:g}",
            f"tacit-joint, S = {states}",
            Named("tacit-joint", {"epsilon": epsilon}),
            Named("remap-walk", {"states": states}),
            size,
            SEED,
        )
        for epsilon in EPSILONS
        for states in (10, 100)
    ]


def states_picture(evidence: Evidence) -> Picture:
    """Regret per episode."""
    drawing, (axes,) = draw.canvas(1, "RemapWalk with ten and a hundred states")
    draw.rate_panel(axes, list(evidence.curves.values()), "tacit-joint")
    return drawing


def states_do_not_matter(epsilon: float) -> Judge:
    """Equal regret, give or take a quarter."""

    def judge(evidence: Evidence) -> Claim:
        found = ratio(evidence.curve(f"100@{epsilon:g}"), evidence.curve(f"10@{epsilon:g}"))
        holds = found.within(0.8, 1.25)
        return Claim(
            claim=f"epsilon {epsilon:g}: regret does not depend on the number of states",
            expected="S = 100 over S = 10, with its 95% interval, between 0.8 and 1.25",
            measured={"ratio": found.value, "low": found.low, "high": found.high},
            holds=holds,
            why=reason(holds, "the states do matter"),
        )

    return judge


STATES = Figure(
    id="mixture-jdp/states",
    title="tacit-joint on RemapWalk with ten and with a hundred states",
    full=Size(episodes=USERS, instances=20, runs=1),
    quick=Size(episodes=USERS, instances=6, runs=1),
    full_time="68 s of processor time, estimated from half of its runs",
    quick_time="22 s of processor time, estimated from half of its runs",
    parts=states_parts,
    draw=states_picture,
    claims=tuple(states_do_not_matter(epsilon) for epsilon in EPSILONS),
    notes=lambda size: (
        "Our own benchmark (docs/papers/mixture_jdp.md#x5): no experiment in the paper.",
    ),
)
