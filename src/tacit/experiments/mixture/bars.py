"""Claims that compare a mean regret with a number fixed in advance."""

from __future__ import annotations

from tacit.experiments.evidence import Evidence
from tacit.experiments.figure import Claim, Curve, Judge, Named, Size
from tacit.experiments.judge import ERRORS, mean, ratio, reason, second_half, together
from tacit.intervals import Interval


def curve(key: str, label: str, agent: Named, problem: Named, size: Size, seed: int = 0) -> Curve:
    """Runs on one problem; its instances are independent seeds."""
    return Curve(
        key=key,
        label=label,
        agent=agent,
        problems=(problem,) * size.instances,
        episodes=size.episodes,
        runs=size.runs,
        seed=seed,
    )


def below(
    key: str, bar: float, at: int, what: str, *, per_episode: bool, why: str = "it is above"
) -> Judge:
    """The mean is below a bar that was set for ``at`` episodes, by two standard errors."""

    def judge(evidence: Evidence) -> Claim:
        runs = evidence.curve(key)
        K = runs.curve.episodes
        found = mean(runs.runs[:, -1] / (K if per_episode else 1.0))
        holds = found.below(bar) if at == K else None
        unit = "regret per episode" if per_episode else "regret"
        return Claim(
            claim=what,
            expected=f"{unit} after {at:,} episodes below {bar:g}, by two standard errors",
            measured={unit: found.value, "standard error": error(found), "episodes": float(K)},
            holds=holds,
            why=reason(
                holds,
                why,
                "" if at == K else f"the bar is for {at:,} episodes, this run has {K:,}",
            ),
        )

    return judge


def error(found: Interval) -> float:
    """The standard error behind an interval of two."""
    return (found.high - found.value) / ERRORS


def not_learning(keys: list[str], what: str, share: float = 0.8) -> Judge:
    """The second half of the users pays at least that share of what the first half paid."""

    def judge(evidence: Evidence) -> Claim:
        found = {key: second_half(evidence.curve(key)) for key in keys}
        holds = together([half.above(share) for half in found.values()])
        return Claim(
            claim=what,
            expected=f"second half at least {share:g} of the first, at every epsilon",
            measured={f"second half / first half, {key}": r.value for key, r in found.items()},
            holds=holds,
            why=reason(holds, "some curve bends"),
        )

    return judge


def smaller(first: str, second: str, what: str) -> Judge:
    """One regret is below another, paired over seeds."""

    def judge(evidence: Evidence) -> Claim:
        one, two = (evidence.curve(key) for key in (first, second))
        holds = ratio(one, two).below(1.0)
        return Claim(
            claim=what,
            expected=f"regret of {first} below that of {second}, paired over seeds",
            measured={first: float(one.final.mean()), second: float(two.final.mean())},
            holds=holds,
            why=reason(holds, "it is the other way round"),
        )

    return judge
