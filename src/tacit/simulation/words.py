"""The result of a run in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tacit.simulation import returns

if TYPE_CHECKING:
    from tacit.simulation.result import Result


def lines_of(result: Result) -> Iterator[str]:
    """The problem, the regret or the returns, and what was guaranteed; headings stand out."""
    who = "users" if result.played else "episodes"
    yield f"{result.agent['name']} on {result.problem['name']}"
    yield from (_played_world if result.played else _known_world)(result.problem)
    if result.interrupted:
        yield (
            f"  interrupted at {result.completed:,} of {result.requested_episodes:,} {who}; what "
            "follows is that part"
        )
    if result.played:
        yield from _played(result)
    elif result.completed:
        yield from (_returns if result.problem["family"] == "episodic" else _regret)(result)
        if result.warning:
            yield f"  {result.warning}"
    yield f"  {result.seconds:.2f} s, {result.episodes_per_second:,.0f} {who}/s over all runs"
    for note in result.agent["notes"]:
        yield f"  note: {note}"
    yield "Privacy"
    for line in result.guarantee.statement().split("\n"):
        yield f"  {line}"


def _played_world(facts: Mapping[str, Any]) -> Iterator[str]:
    """What it is, of what nobody knows the truth of."""
    if facts["family"] == "episodic":
        low, high = facts["returns"]
        yield (
            f"  {facts['policy parameters']} parameters, horizon {facts['horizon']}, returns from "
            f"{low:g} to {high:g}"
        )
    else:
        low, high = facts["rewards"]
        yield (
            f"  {facts['states']} states (the last one: the episode has ended), {facts['actions']} "
            f"actions, horizon {facts['horizon']}, rewards from {low:g} to {high:g}"
        )


def _known_world(facts: Mapping[str, Any]) -> Iterator[str]:
    """The best there is, and what a learner must beat."""
    baseline = facts["baseline"]
    best = "largest declared return" if facts["family"] == "episodic" else "optimal value"
    yield (
        f"  {best} {facts['optimal_value']:.6g} per episode, "
        f"{baseline['name']} {baseline['value']:.6g}"
    )
    rescaling = facts.get("rescaling", {"offset": 0.0, "scale": 1.0})
    offset, scale = rescaling["offset"], rescaling["scale"]
    if (offset, scale) != (0.0, 1.0):
        yield f"  rewards rescaled: original = {offset:g} + {scale:g} x rescaled"


def _played(result: Result) -> Iterator[str]:
    """What people were returned, and how policies do."""
    if result.completed:
        yield f"  return: {returns.earned(result)}"
    yield f"  tested on {result.tests['episodes']} fresh episodes: {returns.tested(result)}"
    for line in returns.per_run(result) if len(result.policies) > 1 else ():
        yield f"    {line}"
    if result.warning:
        yield f"  {result.warning}"
    yield f"  {returns.note(result)}"


def _regret(result: Result) -> Iterator[str]:
    runs, last = len(result.seeds), result.completed
    mean, low, high = result.band()
    back = result.returning
    each = "episode" if back is None else "participation"
    interval = f", 95% interval {low[-1]:.5g} to {high[-1]:.5g}" if runs > 1 else ""
    yield (
        f"  regret after {last:,} {each}s: {mean[-1]:.5g} "
        f"(mean of {runs} run{'s' if runs > 1 else ''}{interval})"
    )
    # The first hundred and the last tenth of the episodes, where these were recorded.
    points = {0, *result.episodes.tolist()}
    for text, begin, end in (("first 100", 0, 100), ("last tenth", -(-last * 9 // 10), last)):
        if {begin, end} <= points and begin < end:
            rate = result.regret_per_episode(begin, end).mean()
            yield f"  regret per {each}, {text}: {rate:.4g}"
    if back is not None:
        yield (
            f"  {back.people:,} people in {back.days[-1]:.4g} days (attendance: {back.law}); "
            f"regret per person: {result.regret_per_person().mean():.4g}"
        )


def _returns(result: Result) -> Iterator[str]:
    """Of a search: what people were returned, all of them and the last tenth."""
    last, grid = result.completed, [0, *result.episodes.tolist()]
    for text, begin in (("of all people", 0), ("of the last tenth", -(-last * 9 // 10))):
        if begin in grid and begin < last:
            each = result.per_episode(result.reward, begin, last)
            mean, low, high = returns.band(result, each)
            over = over_runs(len(each), float(low), float(high))
            yield f"  mean return {text}, what they tried out included: {mean:.5g} ({over})"


def over_runs(runs: int, low: float, high: float) -> str:
    """What a mean is over, and its interval."""
    return "one run" if runs == 1 else f"mean of {runs} runs, 95% interval {low:.5g} to {high:.5g}"
