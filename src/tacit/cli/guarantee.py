"""``tacit guarantee``: what would be promised, before anything is run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tacit.cli import options
from tacit.cli.display import Line, Told, tell

if TYPE_CHECKING:
    from tacit.forecast import NoiseForecast
    from tacit.privacy.guarantee import Guarantee


def guarantee(
    problem: options.ProblemName,
    agent: options.AgentName,
    problem_facts: options.ProblemFacts = None,
    agent_facts: options.AgentFacts = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    return_facts: options.RuleFacts = None,
    reveal: options.Reveal = None,
    episodes: options.Episodes = 10_000,
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Say what would be guaranteed and forecast it; run nothing.

    The plot is the trade-off curve: what a test misses at least, by its false alarms.

    Example: tacit guarantee river-swim ldp-obi --epsilon 1 --episodes 1e5

    Example: tacit guarantee river-swim tacit-joint --epsilon 1 -R participations=any -R period=30d
    """
    from tacit.experiment import bind
    from tacit.forecast import forecast
    from tacit.simulation.plot import check_target, plot_tradeoff

    if plot is not None:
        check_target(plot)
    truth = options.chosen_problem(problem, agent, problem_facts)
    learner = options.chosen_agent(agent, agent_facts, epsilon, delta)
    bound = bind(truth, learner, episodes, reveal or (), options.rule_of(return_facts))
    stated, expected = bound.guarantee, forecast(bound)
    if plot is not None:
        plot_tradeoff(stated, plot)

    found = {"guarantee": stated.to_json(), "forecast": expected.to_json()}
    lines: list[str | Line] = [
        Line(f"{learner.name} on {truth.name}", style="bold"),
        *(f"  {line}" for line in lines_of(stated, expected)),
    ]
    tell(Told(found, lines, [] if plot is None else [plot]), as_json=as_json)


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
        needed = ", ".join(
            f"{by_block[blocks[0]]:,} for {precision}"
            for precision, by_block in expected.users_needed.items()
        )
        yield (
            f"Forecast: after {expected.users:,} reports the noise in one cell of the average "
            f"{', '.join(blocks)} per report has standard deviation {std:.4g}; reports needed: "
            f"{needed}"
        )
