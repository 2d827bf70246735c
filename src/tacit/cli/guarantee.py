"""``tacit guarantee``: what would be promised, before anything is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.cli import options
from tacit.cli.display import Line, Told, tell

if TYPE_CHECKING:
    from tacit.forecast import NoiseForecast
    from tacit.privacy.guarantee import Guarantee


@dataclass(frozen=True, kw_only=True)
class GuaranteeOptions(options.Subject):
    """What ``tacit guarantee`` takes."""

    reveal: options.Reveal = None
    episodes: options.Episodes = 10_000
    plot: options.Plot = None
    as_json: options.Json = False


@options.command(GuaranteeOptions)
def guarantee(request: GuaranteeOptions) -> None:
    """Say what would be guaranteed and forecast it; run nothing.

    At the end stands what theorems say of the agent's regret. The plot is the trade-off curve: what
    a test misses at least, by its false alarms.

    Example: tacit guarantee river-swim ldp-obi --epsilon 1 --episodes 1e5

    Example: tacit guarantee river-swim tacit-joint --epsilon 1 -R participations=any -R period=30d
    """
    from tacit.bounds import regret_bound
    from tacit.experiment import bind
    from tacit.forecast import forecast
    from tacit.simulation.plot import check_target, plot_tradeoff

    files = [] if request.plot is None else [request.plot]
    for file in files:
        check_target(file)
    problem, agent, rule = request.chosen()
    bound = bind(problem, agent, request.episodes, request.reveal or (), rule)
    stated, expected = bound.guarantee, forecast(bound)
    regret = regret_bound(problem, agent, bound)
    for file in files:
        plot_tradeoff(stated, file)
    content = {"guarantee": stated.to_json(), "forecast": expected.to_json()}
    content["bound"] = regret.to_json()
    title = Line(f"{agent.name} on {problem.name}", style="bold")
    lines = (f"  {line}" for line in (*lines_of(stated, expected), regret.statement()))
    tell(Told(content, [title, *lines], files), as_json=request.as_json)


def lines_of(guarantee: Guarantee, expected: NoiseForecast) -> list[str]:
    """A guarantee in words, its noise, and what the noise does to averages."""
    lines = guarantee.statement().split("\n")
    lines += [f"Noise: {name} {scale:.6g}" for name, scale in guarantee.noise.items()]
    if not guarantee.noise:
        return [*lines, "Noise: none"]
    return [*lines, *_forecasts(expected)]


def _forecasts(expected: NoiseForecast) -> Iterator[str]:
    alike: dict[float, list[str]] = {}  # blocks by their noise
    for block, std in expected.noise_std.items():
        alike.setdefault(std, []).append(block)
    for std, blocks in alike.items():
        users = {precision: n[blocks[0]] for precision, n in expected.users_needed.items()}
        needed = ", ".join(f"{n:,} for {precision}" for precision, n in users.items())
        yield (
            f"Forecast: after {expected.users:,} reports the noise in one cell of the average "
            f"{', '.join(blocks)} per report has standard deviation {std:.4g}; reports needed: "
            f"{needed}"
        )
