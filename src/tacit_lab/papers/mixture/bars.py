"""What figures on linear mixtures share: curves, and claims about numbers fixed in advance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tacit_lab.figures.evidence import Evidence
from tacit_lab.figures.figure import Claim, Curve, Named, Size
from tacit_lab.figures.judge import ERRORS, judged, mean, ratio, second_half

WALK = Named("remap-walk")


def curve(
    key: str, label: str, problem: Named, size: Size, seed: int, agent: str, **parameters: Any
) -> Curve:
    """Runs on one problem; its instances are independent seeds."""
    return Curve(key, label, Named(agent, parameters), (problem,) * size.instances, size, seed)


def below(
    key: str,
    bar: float,
    at: int,
    what: str,
    evidence: Evidence,
    *,
    per_episode: bool = False,
    why: str = "it is above",
) -> Claim:
    """The mean is below a bar that was set for ``at`` episodes, by two standard errors."""
    runs = evidence.curve(key)
    K = runs.curve.episodes
    found = mean(runs.runs[:, -1] / (K if per_episode else 1.0))
    error = (found.high - found.value) / ERRORS
    unit = "regret per episode" if per_episode else "regret"
    return judged(
        what,
        f"{unit} after {at:,} episodes below {bar:g}, by two standard errors",
        {unit: found, "standard error": error, "episodes": float(K)},
        found.below(bar) if at == K else None,
        why,
        "" if at == K else f"the bar is for {at:,} episodes, this run has {K:,}",
    )


rate_below = partial(below, per_episode=True)
"""The same for regret per episode."""


def not_learning(keys: Sequence[str], what: str, evidence: Evidence) -> Claim:
    """The second half of the users pays at least 0.8 of what the first half paid."""
    found = {f"second half / first half, {key}": second_half(evidence.curve(key)) for key in keys}
    return judged(
        what,
        "second half at least 0.8 of the first, at every epsilon",
        found,
        [half.above(0.8) for half in found.values()],
        "some curve bends",
    )


def smaller(first: str, second: str, what: str, evidence: Evidence) -> Claim:
    """One regret is below another, paired over seeds."""
    one, two = (evidence.curve(key) for key in (first, second))
    return judged(
        what,
        f"regret of {first} below that of {second}, paired over seeds",
        {first: float(one.final.mean()), second: float(two.final.mean())},
        ratio(one, two).below(1.0),
        "it is the other way round",
    )
