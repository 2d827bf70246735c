"""What results say of worlds whose truth nobody knows: returns with bands, and test episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Array
from tacit.util.intervals import Interval, half_width, mean_interval

if TYPE_CHECKING:
    from tacit.simulation.result import Result

NOTE = (
    "Returns are outcomes of this simulation, not released values: the agent never sees them, and "
    "the guarantee does not cover them."
)


ONCE = (
    "Everybody simulated here took part once. The guarantee also covers people who come back as "
    "the rule allows; what they would add or gain is not simulated."
)

BEHIND = 0.5
"""A run has failed that gained less than this share of what the best run did.

A convention: where runs are further apart than that, their mean describes none of them.
"""

WHO = {"uniform": "uniform actions", "constant": "a constant action", "policy": "learned policies"}
"""Whose test episodes they are."""


def band(result: Result, returns: Array) -> tuple[Array, Array, Array]:
    """Mean over runs and the ends of its interval, within what is possible."""
    mean = returns.mean(axis=0)
    half = half_width(returns) if len(returns) > 1 else np.full_like(mean, np.nan)
    least, most = possible(result)
    if returns.min() < least or returns.max() > most:  # rewards outside the declared range
        return mean, mean - half, mean + half
    return mean, np.maximum(mean - half, least), np.minimum(mean + half, most)


def possible(result: Result) -> tuple[float, float]:
    """Least and largest return of an episode, as declared."""
    if "returns" in result.problem:
        low, high = result.problem["returns"]
        return low, high
    offset, scale = result.problem["rescaling"]["offset"], result.problem["rescaling"]["scale"]
    return result.problem["horizon"] * offset, result.problem["horizon"] * (offset + scale)


def per_user(result: Result) -> Array:
    """Mean return of the users since the checkpoint before [runs, checkpoints]."""
    users = np.diff(result.episodes, prepend=0)
    mean: Array = np.diff(result.reward, axis=1, prepend=0.0) / users
    return mean


def facts(result: Result) -> dict[str, Any]:
    """What such results hold besides curves, as plain values."""
    each = late(result) if result.completed else np.zeros(0)
    ends = [float(end) for end in band(result, each)] if result.completed else [np.nan] * 3
    mean, low, high = (None if np.isnan(end) else end for end in ends)
    return {
        "returns": {"late": mean, "ci95": [low, high], "per_seed": each.tolist()},
        "tests": dict(result.tests),
        **({"gain": gain(result)} if "difference" in result.tests else {}),
        "failed": [{"run": seed, "why": why} for seed, why in failed_runs(result).items()],
        "note": note(result),
    }


def late(result: Result) -> Array:
    """Mean return of the last users of every run: a tenth of them, or the least more."""
    grid = np.concatenate([[0], result.episodes])
    i = int(np.searchsorted(grid, 0.9 * result.completed, side="right")) - 1
    return result.per_episode(result.reward, int(grid[i]), result.completed)


def earned(result: Result) -> str:
    """The return of the last users, with its interval."""
    runs, (mean, low, high) = len(result.seeds), band(result, late(result))
    over = "one run" if runs == 1 else f"the same in each of {runs} runs"
    if runs > 1 and low < high:
        over = f"mean of {runs} runs, 95% interval over runs {low:.4g} to {high:.4g}"
    return f"{mean:.4g} per user in the last tenth of {result.completed:,} ({over})"


def tested(result: Result) -> str:
    """How the learned policies did on fresh episodes, in words."""
    beside = ", ".join(f"{name} {mean:.4g}" for _, name, mean in _fixed(result))
    if not result.policies:
        return f"{beside} per episode; there is no learned policy, the runs were interrupted"
    runs, gain = len(result.seeds), result.tests["difference"]
    here = "{:.3g} to {:.3g}".format(*gain["ci95"])
    gained = _over_runs(result, gain, "uniform")
    if runs == 1:
        interval = f"{here} over test episodes, of this policy only: one run tells of no other"
    else:
        interval = (
            f"{gained.low:.3g} to {gained.high:.3g} over runs (over test episodes, of these "
            f"{runs} policies only: {here})"
        )
    return (
        f"learned polic{'ies' if runs > 1 else 'y'} {result.tests['policy']['mean']:.4g} per "
        f"episode, {beside}; gain over uniform actions {gained.value:.3g}, 95% interval "
        f"{interval}"
    )


def per_run(result: Result) -> list[str]:
    """A line for every run: what its policy returned on fresh episodes, and whether it failed.

    A run has failed if its policy is not shown to be better than uniform actions, or is shown
    to be worse than the best constant action, or to have gained less than half of what the best
    run did; each by 95% intervals over its test episodes (``tests["runs"]``).
    """
    if "runs" not in result.tests:  # interrupted, or of an earlier version
        means = _means(result, "policy") if "policy" in result.tests else ()
        return [f"run {k}: {mean:.4g}" for k, mean in enumerate(means)]
    lines, failed = [], failed_runs(result)
    for seed, run in zip(result.seeds, result.tests["runs"], strict=True):
        mean, (low, high) = run["return"]["mean"], run["return"]["ci95"]
        why = f"; failed: {failed[seed]}" if seed in failed else ""
        interval = f" (95% interval {low:.4g} to {high:.4g} over test episodes)"
        if low == high:  # what never differed has no interval
            interval = f" in each of {result.tests['episodes']} test episodes"
        lines.append(f"run {seed}: {mean:.4g}{interval}{why}")
    return lines


def failed_runs(result: Result) -> dict[int, str]:
    """The runs that failed, and how; by the rule of :func:`per_run`."""
    runs = [] if result.reference else list(result.tests.get("runs", ()))
    most = max((run["over_uniform"]["ci95"][0] for run in runs), default=0.0)
    reasons = {}
    for seed, run in zip(result.seeds, runs, strict=False):
        low, high = run["over_uniform"]["ci95"]
        if low <= 0.0:
            reasons[seed] = "not shown to be better than uniform actions"
        elif run["over_constant"]["ci95"][1] < 0.0:
            reasons[seed] = f"worse than {result.tests['constant']['name']} alone"
        elif high < BEHIND * most:
            reasons[seed] = "it gained less than half of what the best run did"
    return reasons


def _fixed(result: Result) -> list[tuple[str, str, float]]:
    """What does not learn: its key, what it is called, and its mean return."""
    rows = [("uniform", "uniform actions", result.tests["uniform"]["mean"])]
    if "constant" in result.tests:  # not if interrupted, nor in results of earlier versions
        constant = result.tests["constant"]
        rows.append(("constant", f"{constant['name']} alone", constant["mean"]))
    return rows


def _means(result: Result, who: str) -> Array:
    return np.array(result.tests[who]["per_seed"])


def _over_runs(
    result: Result, gain: Mapping[str, Any], fixed: str, confidence: float = 0.95
) -> Interval:
    """Mean gain of a run over what does not learn, with its interval over runs.

    Never narrower than that of the policies at hand: runs that happen to agree do not know more
    than was tried. Of a single run it is that.
    """
    low, high = gain["ci95"]
    if len(result.seeds) > 1:
        runs = mean_interval(_means(result, "policy") - _means(result, fixed), confidence)
        low, high = min(low, runs.low), max(high, runs.high)
    return Interval(gain["mean"], low, high)


def gain(result: Result) -> dict[str, Any]:
    """Over uniform actions, as plain values; ``ci95`` is over runs: one run has none."""
    these, several = result.tests["difference"], len(result.seeds) > 1
    gained = _over_runs(result, these, "uniform")
    ends = [gained.low, gained.high] if several else [None, None]
    return {"mean": gained.value, "ci95": ends, "ci95_of_these_policies": these["ci95"]}


def note(result: Result) -> str:
    """What the returns are, who was not simulated, and what was cut."""
    back = result.guarantee.rule is not None or result.guarantee.participations != 1
    cut = {who: n for who, n in result.tests.get("outside", {}).items() if n}
    sentences = [NOTE, *([ONCE] if back else [])]
    if cut:
        low, high = possible(result)
        each = result.tests["episodes"] * max(1, len(result.policies))
        words = ", ".join(f"{n} of {each} of {WHO[who]}" for who, n in cut.items())
        sentences.append(
            f"An agent sees returns cut at {low:g} and {high:g}. Of test episodes these were "
            f"outside: {words}."
        )
    return " ".join(sentences)


def warning(result: Result) -> str:
    """Whether the policies did no better than what does not learn, and which runs failed.

    Better is shown by a one-sided t test over runs at 5%, and by the test episodes. Empty if
    there is nothing to warn of.
    """
    if result.reference or not result.policies:
        return ""
    gains = {"uniform": result.tests["difference"]}
    gains |= {"constant": result.tests["constant"]["gain"]} if "constant" in result.tests else {}
    level = [
        f"{called} ({mean:.4g})"
        for key, called, mean in _fixed(result)
        if _over_runs(result, gains[key], key, 0.9).low <= 0.0
    ]
    sentences, failed, means = [], failed_runs(result), _means(result, "policy")
    if level:
        sentences.append(
            f"Not shown to be better than {' or '.join(level)}: what was learned returned "
            f"{means.mean():.4g}."
        )
    if failed and len(result.seeds) > 1:
        which = "; ".join(
            f"run {seed} ({means[result.seeds.index(seed)]:.4g}), {why}"
            for seed, why in failed.items()
        )
        sentences.append(f"{len(failed)} of {len(result.seeds)} runs failed: {which}.")
    return " ".join(sentences)
