"""Claims that compare a mean regret with a number fixed in advance."""

from __future__ import annotations

import numpy as np

from tacit.experiments.evidence import Evidence, Runs
from tacit.experiments.figure import Claim, Curve, Judge, Named, Size
from tacit.experiments.judge import reason


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


def mean_and_error(values: Runs) -> tuple[float, float]:
    """Mean final regret over all runs, and its standard error."""
    final = values.runs[:, -1]
    spread = float(final.std(ddof=1)) if len(final) > 1 else float("inf")
    return float(final.mean()), spread / float(np.sqrt(len(final)))


def below(key: str, bar: float, at: int, what: str, *, per_episode: bool) -> Judge:
    """The mean minus two standard errors is below a bar that was set for ``at`` episodes."""

    def judge(evidence: Evidence) -> Claim:
        runs = evidence.curve(key)
        K = runs.curve.episodes
        mean, error = mean_and_error(runs)
        scale = 1.0 / K if per_episode else 1.0
        error = min(error, abs(mean))
        holds = None if at != K else (mean - 2 * error) * scale < bar
        unit = "regret per episode" if per_episode else "regret"
        return Claim(
            claim=what,
            expected=f"{unit} after {at:,} episodes, minus two standard errors, below {bar:g}",
            measured={unit: mean * scale, "standard error": error * scale, "episodes": float(K)},
            holds=holds,
            why=reason(holds, "it is above", f"the bar is for {at:,} episodes, this run has {K:,}"),
        )

    return judge


def not_learning(keys: list[str], what: str, share: float = 0.8) -> Judge:
    """The second half of the users pays at least that share of what the first half paid."""

    def judge(evidence: Evidence) -> Claim:
        measured = {}
        for key in keys:
            runs = evidence.curve(key)
            half = runs.at(runs.curve.episodes // 2)
            measured[f"second half / first half, {key}"] = (runs.mean[-1] - half) / max(half, 1e-9)
        holds = all(value >= share for value in measured.values())
        return Claim(
            claim=what,
            expected=f"second half at least {share:g} of the first, at every epsilon",
            measured=measured,
            holds=holds,
            why=reason(holds, "some curve bends"),
        )

    return judge


def smaller(first: str, second: str, what: str) -> Judge:
    """One mean regret is below another by more than two standard errors of the difference."""

    def judge(evidence: Evidence) -> Claim:
        (one, e), (two, f) = (mean_and_error(evidence.curve(key)) for key in (first, second))
        gap, error = two - one, 2 * float(np.hypot(e, f))
        holds = True if gap > error else False if gap < -error else None
        return Claim(
            claim=what,
            expected=f"regret of {first} below that of {second}",
            measured={first: one, second: two},
            holds=holds,
            why=reason(holds, "it is the other way round"),
        )

    return judge
