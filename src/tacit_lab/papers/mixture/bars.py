"""What figures on linear mixtures share: curves, and claims about numbers fixed in advance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from tacit_lab.figures.figure import Claim, Curve, Evidence, Judge, Named, Size
from tacit_lab.figures.judge import ERRORS, every, in_order, judged, judging, mean, second_half

WALK = Named("remap-walk")


def curve(
    key: str, label: str, problem: Named, size: Size, seed: int, agent: str, **parameters: Any
) -> Curve:
    """Runs on one problem; its instances are independent seeds."""
    return Curve(key, label, Named(agent, parameters), (problem,) * size.instances, size, seed)


@judging
def below(
    evidence: Evidence,
    key: str,
    bar: float,
    at: int,
    what: str,
    unit: Literal["regret", "regret per episode"] = "regret",
    why: str = "it is above",
) -> Claim:
    """The mean is below a bar that was set for ``at`` episodes, by two standard errors."""
    runs = evidence.curve(key)
    K = runs.curve.episodes
    found = mean(runs.runs[:, -1] / (1.0 if unit == "regret" else K))
    error = (found.high - found.value) / ERRORS
    return judged(
        what,
        f"{unit} after {at:,} episodes below {bar:g}, by two standard errors",
        {unit: found, "standard error": error, "episodes": float(K)},
        found.below(bar) if at == K else None,
        why,
        "" if at == K else f"the bar is for {at:,} episodes, this run has {K:,}",
    )


rate_below = partial(below, unit="regret per episode")
"""The same for regret per episode."""


def not_learning(keys: Sequence[str], what: str) -> Judge:
    """The second half of the users pays at least 0.8 of what the first half paid."""
    return every(
        what,
        "second half at least 0.8 of the first, at every epsilon",
        lambda evidence: {
            f"second half / first half, {key}": second_half(evidence.curve(key)) for key in keys
        },
        lambda half: half.above(0.8),
        "some curve bends",
    )


def smaller(first: str, second: str, what: str) -> Judge:
    """One regret is below another, paired over seeds."""
    return in_order(
        what,
        f"regret of {first} below that of {second}, paired over seeds",
        {first: first, second: second},
        [(first, second)],
        "it is the other way round",
    )
