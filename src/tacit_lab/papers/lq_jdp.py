"""Experiments on "Adaptive Control of Differentially Private Linear Quadratic Systems".

The paper has none; these are the benchmarks docs/papers/lq_jdp.md#x1 to #x4 on the systems of
docs/papers/lq_jdp.md#systems. Optimism without privacy, as published and with least noise;
tacit-control beside doing nothing and learners without privacy.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tacit.util.intervals import Interval
from tacit_lab.figures import draw
from tacit_lab.figures.figure import Claim, Curve, Evidence, Figure, Named, Size
from tacit_lab.figures.judge import every, growth, judged, judging, mean
from tacit_lab.papers.lq_certificate import CERTIFICATE

SYSTEMS = ("lq-scalar", "lq-double-integrator", "lq-thermal")
EPSILONS = (0.1, 1.0, 10.0)
REFERENCES = ("do-nothing", "certainty-equivalence", "thompson")


def systems(size: Size) -> tuple[str, ...]:
    """As many of the named systems as the size has instances."""
    return SYSTEMS[: size.instances]


def curve(key: str, label: str, agent: str, system: str, size: Size, **parameters: Any) -> Curve:
    """Runs of one agent on one system."""
    return Curve(f"{key}:{system}", label, Named(agent, parameters), (Named(system),), size)


def references(system: str, size: Size) -> list[Curve]:
    """Doing nothing, and two learners without privacy."""
    return [curve(name, name, name, system, size) for name in REFERENCES]


def levels(way: str, label: str, agent: str, system: str, size: Size, **more: str) -> list[Curve]:
    """A private agent at three levels."""
    return [
        curve(f"{way}@{epsilon:g}", label, agent, system, size, epsilon=epsilon, delta=1e-5, **more)
        for epsilon in EPSILONS
    ]


def idle(evidence: Evidence, system: str) -> float:
    """Regret of doing nothing, which is known exactly."""
    return float(evidence.curve(f"do-nothing:{system}").final.mean())


def ends(evidence: Evidence, key: str, system: str, over: float | None = None) -> Interval:
    """Mean final regret, by default over that of doing nothing."""
    unit = idle(evidence, system) if over is None else over
    return mean(evidence.curve(f"{key}:{system}").runs[:, -1] / unit)


def picture(title: str, evidence: Evidence) -> draw.Picture:
    """One panel of regret per system."""
    shown = systems(evidence.size)
    return draw.regrets(title, {system: evidence.matching(f"*:{system}") for system in shown})


def _everywhere(evidence: Evidence) -> list[tuple[str, str, float]]:
    """Every system at every level: what that is called, and both."""
    return [
        (f"{system}, epsilon {epsilon:g}", system, epsilon)
        for system in systems(evidence.size)
        for epsilon in EPSILONS
    ]


def optimism_parts(size: Size) -> list[Curve]:
    """OFU-RL, Private-OFU-RL in both calibrations, and the references."""
    curves = []
    for system in systems(size):
        curves += references(system, size)
        curves.append(curve("ofu-rl", "OFU-RL", "ofu-rl", system, size))
        for way in ("paper", "tight"):
            label = f"Private-OFU-RL {way}"
            curves += levels(way, label, "private-ofu-rl", system, size, calibration=way)
    return curves


def learns_without_privacy(evidence: Evidence) -> Claim:
    """X1: OFU-RL is sublinear."""
    shown = systems(evidence.size)
    powers = {f"x, {s}": growth(evidence.curve(f"ofu-rl:{s}")) for s in shown}
    ratios = {f"over doing nothing, {s}": ends(evidence, "ofu-rl", s) for s in shown}
    return judged(
        "without privacy OFU-RL has sublinear regret",
        "regret ~ k^x with x < 0.9 over the last decade, and below doing nothing",
        {**powers, **ratios},
        [*(x.below(0.9) for x in powers.values()), *(r.below(1.0) for r in ratios.values())],
        "at this length the confidence set is still too wide",
    )


private_is_sublinear = every(
    "Private-OFU-RL has regret of order sqrt(K)",
    "regret ~ k^x with x < 0.9 over the last decade, as published",
    lambda evidence: {
        f"x, {where}": growth(evidence.curve(f"paper@{epsilon:g}:{system}"))
        for where, system, epsilon in _everywhere(evidence)
    },
    lambda x: x.below(0.9),
    "vacuous at this size (E5): the confidence set contains the plant that is still, so "
    "that the learner does nothing and its regret is linear",
)
"""The theorem of Private-OFU-RL, with its own constants."""


def _over_idle(evidence: Evidence, calibration: str) -> dict[str, Interval]:
    """Regret of Private-OFU-RL over that of doing nothing, on every system at every level."""
    return {
        where: ends(evidence, f"{calibration}@{epsilon:g}", system)
        for where, system, epsilon in _everywhere(evidence)
    }


paper_mode_is_doing_nothing = every(
    "as published, Private-OFU-RL equals doing nothing at every epsilon up to 10^4 users",
    "regret over that of doing nothing is exactly 1",
    lambda evidence: _over_idle(evidence, "paper"),
    lambda ratio: ratio.value == 1.0,
    "some confidence set left out zero: are the constants as published?",
)
"""X2: paper mode coincides with u = 0."""


def least_noise_is_no_rescue(evidence: Evidence) -> Claim:
    """X3: tight calibration changes little."""
    ratios = _over_idle(evidence, "tight")
    small = [ratio for name, ratio in ratios.items() if not name.endswith(" 10")]
    return judged(
        "the least noise does not rescue optimism at 10^4 users",
        "over doing nothing: within 5% at epsilon up to 1, above a half at 10",
        ratios,
        [*(r.above(0.5) for r in ratios.values()), *(r.within(0.95, 1.05) for r in small)],
        "at this size it does learn something",
    )


OPTIMISM = Figure(
    id="lq-jdp/optimism",
    title="OFU-RL and Private-OFU-RL against doing nothing, on three linear systems",
    full=Size(10_000, 3, 2, "162 s of processor time (measured)"),
    quick=Size(1_000, 3, 2, "22 s of processor time, already compiled (measured)"),
    parts=optimism_parts,
    draw=partial(picture, "optimism for linear quadratic control"),
    claims=(
        learns_without_privacy,
        private_is_sublinear,
        paper_mode_is_doing_nothing,
        least_noise_is_no_rescue,
    ),
    notes=(
        "the confidence radius is made of released matrices; the published one is made of exact "
        "data and has no finite epsilon (E1)",
    ),
)

LONG = 10_000
KNOWN = {
    # the better of the two learners of docs/papers/lq_jdp.md#beyond, at ten thousand users
    0.1: {"lq-scalar": 1122.0, "lq-double-integrator": 1426.0, "lq-thermal": 1016.0},
    1.0: {"lq-scalar": 152.0, "lq-double-integrator": 261.0, "lq-thermal": 179.0},
    10.0: {"lq-scalar": 57.0, "lq-double-integrator": 78.0, "lq-thermal": 48.0},
}


def learners_parts(size: Size) -> list[Curve]:
    """tacit-control at three levels, and the references."""
    ours = ("tacit", "tacit-control", "tacit-control")
    return [
        each
        for system in systems(size)
        for each in (*references(system, size), *levels(*ours, system, size))
    ]


no_harm = every(
    "tacit-control: no single run is more than 10% worse than doing nothing",
    "largest regret of a run over that of doing nothing at most 1.1",
    lambda evidence: {
        where: float(evidence.curve(f"tacit@{epsilon:g}:{system}").runs[:, -1].max())
        / idle(evidence, system)
        for where, system, epsilon in _everywhere(evidence)
    },
    lambda worst: worst <= 1.1,
    "one run acted on a wrong model",
)
"""No run much worse than doing nothing."""


@judging
def at_least_as_good(evidence: Evidence, epsilon: float) -> Claim:
    """Against the better of the two known learners, at the length they were measured at."""
    shown = systems(evidence.size)
    means = {s: ends(evidence, f"tacit@{epsilon:g}", s, 1.0) for s in shown}
    limits = ", ".join(f"{KNOWN[epsilon][s]:g}" for s in shown)
    long = evidence.size.episodes == LONG
    return judged(
        f"tacit-control at epsilon {epsilon:g} is at least as good as PIE-CE and its gated form",
        f"mean regret at 10^4 users at most {limits}, by two standard errors",
        means,
        [means[s].below(KNOWN[epsilon][s]) for s in shown] if long else None,
        "more regret than the better of them had",
        "" if long else "known at 10^4 users only: run the full size",
    )


def far_below_optimism(evidence: Evidence) -> Claim:
    """Paper mode is doing nothing, so the ratio to it is the gain over the paper."""
    shares = {system: ends(evidence, "tacit@1", system) for system in systems(evidence.size)}
    long = evidence.size.episodes >= LONG
    return judged(
        "at epsilon 1 regret is far below that of the published algorithm, which does nothing",
        "at least 5 times less at 10^4 users",
        {system: 1.0 / share.value for system, share in shares.items()},
        [share.below(1 / 5) for share in shares.values()] if long else None,
        "less than 5 times",
        "" if long else "stated for 10^4 users: run the full size",
    )


LEARNERS = Figure(
    id="lq-jdp/learners",
    title="tacit-control, doing nothing and learners without privacy, on three linear systems",
    full=Size(LONG, 3, 10, "102 s of processor time (measured)"),
    quick=Size(1_000, 3, 3, "20 s of processor time, estimated from the full size"),
    parts=learners_parts,
    draw=partial(picture, "linear quadratic control under joint privacy"),
    claims=(no_harm, *map(at_least_as_good, EPSILONS), far_below_optimism),
)

FIGURES = (OPTIMISM, LEARNERS, CERTIFICATE)
