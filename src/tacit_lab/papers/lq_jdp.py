"""Experiments on "Adaptive Control of Differentially Private Linear Quadratic Systems".

The paper has none; these are the benchmarks docs/papers/lq_jdp.md#x1 to #x4 on the systems of
docs/papers/lq_jdp.md#systems. Optimism without privacy, and private in all three calibrations;
tacit-control beside doing nothing, learners without privacy, and optimism at the same guarantee.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tacit.agents.published import CALIBRATIONS
from tacit.privacy.accounting import gaussian_mu
from tacit.problems.catalogue import make_problem
from tacit.util.intervals import Interval
from tacit_lab.figures import draw
from tacit_lab.figures.figure import Claim, Curve, Evidence, Figure, Named, Size
from tacit_lab.figures.judge import every, growth, judged, judging, mean
from tacit_lab.papers.lq_certificate import CERTIFICATE

SYSTEMS = ("lq-scalar", "lq-double-integrator", "lq-thermal")
EPSILONS = (0.1, 1.0, 10.0)
REFERENCES = ("do-nothing", "certainty-equivalence", "thompson")
BREAK_EVEN = {
    # users until a confidence set without noise leaves out the still plant, from the page's #e5
    0.1: {"lq-scalar": 5.6e6, "lq-double-integrator": 1.1e7, "lq-thermal": 5.8e7},
    1.0: {"lq-scalar": 4.4e5, "lq-double-integrator": 8.8e5, "lq-thermal": 5.0e6},
    10.0: {"lq-scalar": 3.5e4, "lq-double-integrator": 7.2e4, "lq-thermal": 4.0e5},
}


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
    """OFU-RL, Private-OFU-RL in all three calibrations, and the references."""
    curves = []
    for system in systems(size):
        curves += references(system, size)
        for calibration in ("paper", "tight"):
            chosen = {"calibration": calibration}
            label = f"OFU-RL {calibration}"
            curves.append(curve(f"ofu-rl {calibration}", label, "ofu-rl", system, size, **chosen))
        for way in CALIBRATIONS:
            label = f"Private-OFU-RL {way}"
            curves += levels(way, label, "private-ofu-rl", system, size, calibration=way)
    return curves


def learns_without_privacy(evidence: Evidence) -> Claim:
    """X1: OFU-RL, which plans in every episode, is sublinear."""
    shown = systems(evidence.size)
    powers = {f"x, {s}": growth(evidence.curve(f"ofu-rl paper:{s}")) for s in shown}
    ratios = {f"over doing nothing, {s}": ends(evidence, "ofu-rl paper", s) for s in shown}
    return judged(
        "without privacy OFU-RL has sublinear regret",
        "regret ~ k^x with x < 0.9 over the last decade, and below doing nothing",
        {**powers, **ratios},
        [*(x.below(0.9) for x in powers.values()), *(r.below(1.0) for r in ratios.values())],
        "at this length the confidence set is still too wide",
    )


def _over_idle(evidence: Evidence, calibration: str) -> dict[str, Interval]:
    """Regret of Private-OFU-RL over that of doing nothing, on every system at every level."""
    return {
        where: ends(evidence, f"{calibration}@{epsilon:g}", system)
        for where, system, epsilon in _everywhere(evidence)
    }


def private_is_sublinear(evidence: Evidence) -> Claim:
    """The theorem of Private-OFU-RL, with its own constants: of many users, not of these."""
    places, K = _everywhere(evidence), evidence.size.episodes
    rates = {
        f"x, {where}": growth(evidence.curve(f"paper@{epsilon:g}:{system}"))
        for where, system, epsilon in places
    }
    over = [ratio.value for ratio in _over_idle(evidence, "paper").values()]
    limits = [BREAK_EVEN[epsilon][system] for _, system, epsilon in places]
    return judged(
        "Private-OFU-RL has regret of order sqrt(K)",
        "regret ~ k^x with x < 0.9 over the last decade, as published",
        rates,
        None if 10 * max(limits) > K else [x.below(0.9) for x in rates.values()],
        "its regret is not sublinear where its confidence set leaves out the still plant",
        f"asymptotic: the confidence set holds the still plant up to {min(limits):,.0f} users "
        f"and more (E5); measured over these {K:,} is {min(over):.4g} to {max(over):.4g} times "
        "what doing nothing loses",
    )


paper_mode_is_doing_nothing = every(
    "as published, Private-OFU-RL equals doing nothing at every epsilon up to 10^4 users",
    "regret over that of doing nothing is exactly 1, corrected or not",
    lambda evidence: {
        f"{way}, {where}": ratio
        for way in ("paper", "corrected")
        for where, ratio in _over_idle(evidence, way).items()
    },
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
    full=Size(10_000, 3, 2, "157 s of processor time (measured)"),
    quick=Size(1_000, 3, 2, "19 s of processor time, already compiled (measured)"),
    parts=optimism_parts,
    draw=partial(picture, "optimism for linear quadratic control"),
    claims=(
        learns_without_privacy,
        private_is_sublinear,
        paper_mode_is_doing_nothing,
        least_noise_is_no_rescue,
    ),
    notes=(
        "calibrations: paper, corrected (the same wherever the published noise is enough) and "
        "tight; OFU-RL plans in every episode as published, at geometric times in tight",
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


def request_for(system: str, epsilon: float, delta: float = 1e-5) -> float:
    """What published Private-OFU-RL must be asked for to give that (docs/papers/lq_jdp.md#e3)."""
    gain = float(make_problem(system).task(1).known["bounds"][3])
    share = math.sqrt(2) * ((1 + gain**2) / (1 + gain) ** 2 + 0.5)
    return math.sqrt(8 * math.log(2 / delta)) * gaussian_mu(epsilon, delta) / share


def rivals(system: str, size: Size) -> list[Curve]:
    """Private-OFU-RL at the true epsilon 1, in all three calibrations."""
    asked, agent = (
        {**dict.fromkeys(CALIBRATIONS, 1.0), "paper": request_for(system, 1.0)},
        "private-ofu-rl",
    )
    return [
        curve(way, f"{agent} {way}", agent, system, size, epsilon=e, delta=1e-5, calibration=way)
        for way, e in asked.items()
    ]


def learners_parts(size: Size) -> list[Curve]:
    """tacit-control at three levels, the references, and optimism at one of them."""
    ours = ("tacit", "tacit-control", "tacit-control")
    return [
        each
        for system in systems(size)
        for each in (
            *references(system, size),
            *levels(*ours, system, size),
            *rivals(system, size),
        )
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
    """Against the best calibration of Private-OFU-RL, at the same true guarantee."""
    shares = {}
    for system in systems(evidence.size):
        best = min(float(evidence.curve(f"{way}:{system}").final.mean()) for way in CALIBRATIONS)
        shares[system] = ends(evidence, "tacit@1", system, best)
    long = evidence.size.episodes >= LONG
    return judged(
        "at epsilon 1 regret is far below that of Private-OFU-RL in its best calibration",
        "at the same true guarantee, at least 5 times less at 10^4 users",
        {system: 1.0 / share.value for system, share in shares.items()},
        [share.below(1 / 5) for share in shares.values()] if long else None,
        "less than 5 times",
        "" if long else "stated for 10^4 users: run the full size",
    )


LEARNERS = Figure(
    id="lq-jdp/learners",
    title="tacit-control, doing nothing and learners without privacy, on three linear systems",
    full=Size(LONG, 3, 10, "139 s of processor time (measured)"),
    quick=Size(1_000, 3, 3, "8 s of processor time, already compiled (measured)"),
    parts=learners_parts,
    draw=partial(picture, "linear quadratic control under joint privacy"),
    claims=(no_harm, *map(at_least_as_good, EPSILONS), far_below_optimism),
    notes=(
        "private-ofu-rl is corrected, tight, and published at the request that truly gives "
        "epsilon 1",
    ),
)

FIGURES = (OPTIMISM, LEARNERS, CERTIFICATE)
