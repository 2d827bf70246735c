"""tacit-control beside doing nothing and learners without privacy (docs/papers/lq_jdp.md#x4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Figure, Judge, Size
from tacit.experiments.judge import mean, reason, together
from tacit.experiments.lq_jdp import curves
from tacit.experiments.lq_jdp.curves import DELTA, EPSILONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

LONG = 10_000
KNOWN = {
    # the better of the two learners of docs/papers/lq_jdp.md#beyond, at ten thousand users
    0.1: {"lq-scalar": 1122.0, "lq-double-integrator": 1426.0, "lq-thermal": 1016.0},
    1.0: {"lq-scalar": 152.0, "lq-double-integrator": 261.0, "lq-thermal": 179.0},
    10.0: {"lq-scalar": 57.0, "lq-double-integrator": 78.0, "lq-thermal": 48.0},
}


def parts(size: Size) -> list[Curve]:
    """tacit-control at three levels, and the references."""
    found = []
    for system in curves.systems(size):
        found += curves.references(system, size)
        found += [
            curves.curve(
                f"tacit@{epsilon:g}",
                "tacit-control",
                "tacit-control",
                system,
                size,
                epsilon=epsilon,
                delta=DELTA,
            )
            for epsilon in EPSILONS
        ]
    return found


def picture(evidence: Evidence) -> Picture:
    """One panel per system."""
    return curves.picture(evidence, "linear quadratic control under joint privacy")


def no_harm(evidence: Evidence) -> Claim:
    """No run much worse than doing nothing."""
    worst = {
        f"{system}, epsilon {epsilon:g}": curves.worst_over_idle(
            evidence, f"tacit@{epsilon:g}", system
        )
        for system in curves.systems(evidence.size)
        for epsilon in EPSILONS
    }
    holds = max(worst.values()) <= 1.1
    return Claim(
        claim="tacit-control: no single run is more than 10% worse than doing nothing",
        expected="largest regret of a run over that of doing nothing at most 1.1",
        measured=worst,
        holds=holds,
        why=reason(holds, "one run acted on a wrong model"),
    )


def at_least_as_good(epsilon: float) -> Judge:
    """Against the better of the two known learners, at the length they were measured at."""

    def judge(evidence: Evidence) -> Claim:
        shown = curves.systems(evidence.size)
        means = {s: mean(evidence.curve(f"tacit@{epsilon:g}:{s}").runs[:, -1]) for s in shown}
        long = evidence.size.episodes == LONG
        holds = together([means[s].below(KNOWN[epsilon][s]) for s in shown]) if long else None
        limits = ", ".join(f"{KNOWN[epsilon][s]:g}" for s in shown)
        return Claim(
            claim=f"tacit-control at epsilon {epsilon:g} is at least as good as PIE-CE and its "
            "gated form",
            expected=f"mean regret at 10^4 users at most {limits}, by two standard errors",
            measured={system: regret.value for system, regret in means.items()},
            holds=holds,
            why=reason(
                holds,
                "more regret than the better of them had",
                "" if long else "known at 10^4 users only: run the full size",
            ),
        )

    return judge


def far_below_optimism(evidence: Evidence) -> Claim:
    """Paper mode is doing nothing, so the ratio to it is the gain over the paper."""
    shown = curves.systems(evidence.size)
    shares = {system: curves.over_idle(evidence, "tacit@1", system) for system in shown}
    long = evidence.size.episodes >= LONG
    holds = together([share.below(1 / 5) for share in shares.values()]) if long else None
    return Claim(
        claim="at epsilon 1 regret is far below that of the published algorithm, which does "
        "nothing",
        expected="at least 5 times less at 10^4 users",
        measured={system: 1.0 / share.value for system, share in shares.items()},
        holds=holds,
        why=reason(
            holds, "less than 5 times", "" if long else "stated for 10^4 users: run the full size"
        ),
    )


LEARNERS = Figure(
    id="lq-jdp/learners",
    title="tacit-control, doing nothing and learners without privacy, on three linear systems",
    full=Size(episodes=LONG, instances=3, runs=10),
    quick=Size(episodes=1_000, instances=3, runs=3),
    full_time="102 s of processor time (measured)",
    quick_time="20 s of processor time, estimated from the full size",
    parts=parts,
    draw=picture,
    claims=(no_harm, *(at_least_as_good(epsilon) for epsilon in EPSILONS), far_below_optimism),
)
