"""Optimism: without privacy, as published, with least noise (docs/papers/lq_jdp.md#x1 to #x3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Figure, Size
from tacit.experiments.judge import growth, reason, together
from tacit.experiments.lq_jdp import curves
from tacit.experiments.lq_jdp.curves import DELTA, EPSILONS
from tacit.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


def parts(size: Size) -> list[Curve]:
    """OFU-RL, Private-OFU-RL in both calibrations, and the references."""
    found = []
    for system in curves.systems(size):
        found += curves.references(system, size)
        found.append(curves.curve("ofu-rl", "OFU-RL", "ofu-rl", system, size))
        for calibration in ("paper", "tight"):
            found += [
                curves.curve(
                    f"{calibration}@{epsilon:g}",
                    f"Private-OFU-RL {calibration}",
                    "private-ofu-rl",
                    system,
                    size,
                    epsilon=epsilon,
                    delta=DELTA,
                    calibration=calibration,
                )
                for epsilon in EPSILONS
            ]
    return found


def picture(evidence: Evidence) -> Picture:
    """One panel per system."""
    return curves.picture(evidence, "optimism for linear quadratic control")


def learns_without_privacy(evidence: Evidence) -> Claim:
    """X1: OFU-RL is sublinear."""
    shown = curves.systems(evidence.size)
    ratios = {s: curves.over_idle(evidence, "ofu-rl", s) for s in shown}
    powers = {s: growth(evidence.curve(f"ofu-rl:{s}")) for s in shown}
    holds = together(
        [*(x.below(0.9) for x in powers.values()), *(r.below(1.0) for r in ratios.values())]
    )
    return Claim(
        claim="without privacy OFU-RL has sublinear regret",
        expected="regret ~ k^x with x < 0.9 over the last decade, and below doing nothing",
        measured={
            **{f"x, {s}": x.value for s, x in powers.items()},
            **{f"over doing nothing, {s}": r.value for s, r in ratios.items()},
        },
        holds=holds,
        why=reason(holds, "at this length the confidence set is still too wide"),
    )


def private_is_sublinear(evidence: Evidence) -> Claim:
    """The theorem of Private-OFU-RL, with its own constants."""
    powers = {
        f"x, {system}, epsilon {epsilon:g}": growth(evidence.curve(f"paper@{epsilon:g}:{system}"))
        for system in curves.systems(evidence.size)
        for epsilon in EPSILONS
    }
    holds = together([x.below(0.9) for x in powers.values()])
    return Claim(
        claim="Private-OFU-RL has regret of order sqrt(K)",
        expected="regret ~ k^x with x < 0.9 over the last decade, as published",
        measured={name: x.value for name, x in powers.items()},
        holds=holds,
        why=reason(
            holds,
            "vacuous at this size (E5): the confidence set contains the plant that is still, so "
            "that the learner does nothing and its regret is linear",
        ),
    )


def _over_idle(evidence: Evidence, calibration: str) -> dict[str, Interval]:
    """Regret of Private-OFU-RL over that of doing nothing, on every system at every level."""
    return {
        f"{system}, epsilon {epsilon:g}": curves.over_idle(
            evidence, f"{calibration}@{epsilon:g}", system
        )
        for system in curves.systems(evidence.size)
        for epsilon in EPSILONS
    }


def published_is_doing_nothing(evidence: Evidence) -> Claim:
    """X2: paper mode coincides with u = 0."""
    ratios = _over_idle(evidence, "paper")
    holds = all(ratio.value == 1.0 for ratio in ratios.values())
    return Claim(
        claim="as published, Private-OFU-RL equals doing nothing at every epsilon up to 10^4 users",
        expected="regret over that of doing nothing is exactly 1",
        measured={name: ratio.value for name, ratio in ratios.items()},
        holds=holds,
        why=reason(holds, "some confidence set left out zero: are the constants as published?"),
    )


def least_noise_is_no_rescue(evidence: Evidence) -> Claim:
    """X3: tight calibration changes little."""
    ratios = _over_idle(evidence, "tight")
    small = [ratio for name, ratio in ratios.items() if not name.endswith(" 10")]
    holds = together(
        [
            *(ratio.above(0.5) for ratio in ratios.values()),
            *(ratio.within(0.95, 1.05) for ratio in small),
        ]
    )
    return Claim(
        claim="the least noise does not rescue optimism at 10^4 users",
        expected="over doing nothing: within 5% at epsilon up to 1, above a half at 10",
        measured={name: ratio.value for name, ratio in ratios.items()},
        holds=holds,
        why=reason(holds, "at this size it does learn something"),
    )


OPTIMISM = Figure(
    id="lq-jdp/optimism",
    title="OFU-RL and Private-OFU-RL against doing nothing, on three linear systems",
    full=Size(episodes=10_000, instances=3, runs=2),
    quick=Size(episodes=1_000, instances=3, runs=2),
    full_time="162 s of processor time (measured)",
    quick_time="22 s of processor time, already compiled (measured)",
    parts=parts,
    draw=picture,
    claims=(
        learns_without_privacy,
        private_is_sublinear,
        published_is_doing_nothing,
        least_noise_is_no_rescue,
    ),
    notes=lambda size: (
        "the confidence radius is made of released matrices; the published one is made of exact "
        "data and has no finite epsilon (E1)",
    ),
)
